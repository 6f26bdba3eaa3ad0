"""Every command that a page or a message names exists, with its options."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from corral.cli.command_table import COMMANDS, corral
from tests.house.page_commands import ELSEWHERE, ROOT, blocks, calls, pages, why_not_here

NAMED = re.compile(r"(?:`|\(|; run )corral ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?(?=[ `).;,'\"\n])")


@pytest.mark.parametrize("block", blocks(), ids=lambda block: f"{block.page}: {block.heading}")
def test_every_command_in_a_block_has_its_options(block: object) -> None:
    for command in block.commands:  # type: ignore[attr-defined]
        for words in calls(command):
            parse(words, command)


def parse(words: list[str], command: str) -> None:
    """Parse a command line with click, without checking that its files exist."""
    name, group, context = "corral", corral, click.Context(corral, info_name="corral")
    inner: click.Command = group
    try:
        while isinstance(inner, click.Group):
            if words and words[0].startswith("-") and inner.invoke_without_command:
                words = inner.make_parser(context).parse_args(list(words))[1]
            if not words and context.parent is not None:
                return
            assert words, f"{command}: {name} alone does nothing"
            told, found, words = inner.resolve_command(context, words)
            assert found is not None, f"{command}: there is no command {words[:1]}"
            name = told or name
            inner, context = found, click.Context(found, info_name=name, parent=context)
        inner.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        raise AssertionError(f"{command}: {error.format_message()}") from None


def test_what_is_said_to_run_elsewhere_stands_on_a_page() -> None:
    written = [command for block in blocks() for command in block.commands]
    assert not [beginning for beginning in ELSEWHERE if not any(each.startswith(beginning) for each in written)]
    assert any(not why_not_here(command) for command in written)


@pytest.mark.parametrize("path", [*pages(), *sorted((ROOT / "corral").rglob("*.py"))], ids=lambda path: path.name)
def test_a_command_that_a_text_names_exists(path: Path) -> None:
    for name, second in NAMED.findall(path.read_text()):
        assert name in COMMANDS, f"{path}: corral {name}"
        command = corral.get_command(click.Context(corral), name)
        if second and isinstance(command, click.Group):
            assert command.get_command(click.Context(command), second), f"{path}: corral {name} {second}"
