"""The help of a command with subcommands lists them with whole sentences, in a narrow terminal too."""

from __future__ import annotations

from collections.abc import Iterator

import click

from corral.cli.command_table import corral


def _groups(command: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, click.Group]]:
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        if isinstance(found, click.Group):
            yield " ".join((*path, name)), found
            yield from _groups(found, (*path, name))


def test_no_line_of_a_list_of_subcommands_is_cut() -> None:
    cut = []
    groups = dict(_groups(corral, ("corral",)))
    for name, group in groups.items():
        context = click.Context(group, info_name=name, terminal_width=80)
        shown = " ".join(group.get_help(context).partition("Commands:\n")[2].split())
        listed = [found for each in group.list_commands(context) if (found := group.get_command(context, each))]
        cut += [
            f"{name} {command.name}"
            for command in listed
            if not command.hidden and command.get_short_help_str(10_000) not in shown
        ]
    assert {"corral deploy", "corral deploy certs", "corral openpai", "corral profile"} <= groups.keys()
    assert not cut
