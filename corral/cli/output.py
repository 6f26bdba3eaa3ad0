"""Print results as a table, JSON, YAML or names; tables are built here, because that is faster than a library."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from corral.client.schema import ShareView

FORMATS: Final = ("table", "json", "yaml", "name")
Function = TypeVar("Function", bound=Callable[..., Any])

_STATES: Final = {
    "waiting": ("◌", "yellow"),
    "starting": ("◔", "cyan"),
    "running": ("●", "blue"),
    "stopping": ("◑", "magenta"),
    "succeeded": ("✔", "green"),
    "failed": ("✘", "red"),
    "stopped": ("■", "bright_black"),
}


NOT_MEASURED: Final = "-"
"""A cell of what was not measured, or of no devices."""


def output_option(command: Function) -> Function:
    """Add the option `-o table|json|yaml|name` to a command."""
    return click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print it."
    )(command)


def coloured() -> bool:
    """Return whether standard output is a terminal that wants colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(data: Any, output: str, *, names: Sequence[str] = ()) -> bool:
    """Print `data` unless a table is wanted; return whether it was printed."""
    if output == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        click.echo(yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True), nl=False)
    elif output == "name":
        for name in names:
            click.echo(name)
    else:
        return False
    return True


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: frozenset[int] = frozenset()) -> str:
    """Return aligned columns, two blanks apart; columns in `right` are flush right, and the last is not padded."""
    shown = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(heading), *(_width(row[at]) for row in shown)]) for at, heading in enumerate(headings)]
    lines = [_line([paint(heading, dim=True) for heading in headings], widths, right)]
    lines += [_line(row, widths, right) for row in shown]
    return "\n".join(lines)


def paint(text: str, colour: str = "", *, bold: bool = False, dim: bool = False) -> str:
    """Return `text` in a colour, if the output is coloured."""
    return click.style(text, fg=colour or None, bold=bold or None, dim=dim or None) if coloured() else text


def state(word: str) -> str:
    """Return a job's state with its mark and colour."""
    mark, colour = _STATES.get(word, ("·", ""))
    return paint(f"{mark} {word}" if coloured() else word, colour)


def part_words(share: ShareView | None) -> str:
    """Return the fraction of a device that a task has; "" for a whole device."""
    if not share:
        return ""
    compute, memory = f"{share['computePercent']:.3g}%", f"{share['memoryPercent']:.3g}%"
    return f" {compute}" if compute == memory else f" {compute}, memory {memory}"


def devices_of(job: Mapping[str, Any], between: str = "/") -> str:
    """Return the number of devices that a job requests, after the number that it holds if that differs (`2/12`)."""
    held, asked = job.get("devicesHeld", 0), job["devices"]
    part = held and held != asked and job["state"] in ("starting", "running", "stopping")
    return f"{held}{between}{asked}" if part else str(asked or "")


def age(time: str | None, until: str | None = None) -> str:
    """Return the time since `time` (or from it to `until`), short: `42s`, `3m12s`, `5h`, `3d`."""
    if not time:
        return ""
    begin = datetime.fromisoformat(time)
    end = datetime.fromisoformat(until) if until else datetime.now(UTC)
    return span((end - begin).total_seconds())


def span(seconds: float) -> str:
    """Return a duration in at most two units."""
    whole = max(0, round(seconds))
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{whole}s"


def fields(pairs: Mapping[str, object]) -> str:
    """Return `Name: value` lines, without empty values."""
    kept = {name: _cell(value) for name, value in pairs.items() if value not in (None, "", [], ())}
    width = max((len(name) for name in kept), default=0) + 1
    return "\n".join(f"{paint((name + ':').ljust(width), dim=True)} {value}" for name, value in kept.items())


def say(message: str) -> None:
    """Print a message for people on standard error, apart from the command's output."""
    click.echo(message, err=True)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _width(text: str) -> int:
    return len(click.unstyle(text)) if "\x1b" in text else len(text)


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    built = []
    for at, cell in enumerate(cells):
        pad = " " * (widths[at] - _width(cell))
        built.append(pad + cell if at in right else cell + pad)
    return "  ".join(built).rstrip()
