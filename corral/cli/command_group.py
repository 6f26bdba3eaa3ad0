"""The help of a command with subcommands."""

from __future__ import annotations

from typing import Final

import click

_WHOLE: Final = 10_000
"""More characters than the first sentence of any help has."""


class CommandGroup(click.Group):
    """A command with subcommands, whose help lists them with whole sentences: click cuts those at the line's end."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the first sentence of its help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in commands if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
