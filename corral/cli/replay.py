"""`corral replay`: run the scheduler over a journal of decisions again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import OK, USAGE
from corral.cli.output import output_option, say, show, span
from corral.cli.sim_options import FILE
from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.units import counted
from corral.spec.errors import shorten

if TYPE_CHECKING:
    from corral.control.journal.records import Decision
    from corral.control.journal.replay import Difference, Replayed

DIFFERS: Final = 1
"""The exit code of a replay that decided otherwise."""
_SHOWN: Final = 20
"""The most decisions of a step that are shown of either side."""
_LONGEST: Final = 400
"""The most characters of a line about a decision."""


@click.group("replay")
def replay_command() -> None:
    """Replay journals of decisions, without a server."""


@replay_command.command("run")
@click.argument("file", type=FILE)
@click.option("--from", "since", default="", metavar="TIME", help="Begin at the last checkpoint before this time.")
@click.option("--until", default="", metavar="TIME", help="End before the first step after this time.")
@output_option
def run_command(file: Path, since: str, until: str, output: str) -> int:
    """Give the scheduler all that a journal says it was told, and compare each decision with what it decided then.

    It ends at the first decision that differs and shows both. A TIME is of the form 2026-11-27T10:00:00Z. Exit codes:
    0 all are equal, 1 one differs, 2 the file cannot be read to its end; 3 there is no such file.

    \b
    corral sim run --trace trace.csv --cluster 8x8 --journal week.journal
    corral replay run week.journal
    """
    from corral.control.journal.replay import replay

    begin, end = _time("--from", since), _time("--until", until)
    if not file.exists():
        raise NotFound("no-file", f"{file} is not there.")
    with (
        file.open("rb") as opened,
        click.progressbar(length=os.fstat(opened.fileno()).st_size, label="Replaying", file=sys.stderr) as bar,
    ):
        found = replay(
            opened, since=begin, until=inf if end is None else end, told=lambda _: bar.update(opened.tell() - bar.pos)
        )
    if not show(record_of(found), output):
        click.echo(text_of(found))
    if found.problem:
        say(found.problem)
    if found.difference is not None:
        return DIFFERS
    return USAGE if found.problem else OK


def record_of(found: Replayed) -> dict[str, Any]:
    """Return a replay for programs; times are of RFC 3339."""
    return {
        "equal": found.difference is None,
        "whole": not found.problem,
        "problem": found.problem,
        "steps": found.steps,
        "events": found.events,
        "from": _rfc3339(found.first_at) if found.steps else "",
        "to": _rfc3339(found.last_at) if found.steps else "",
        "journalOf": found.version,
        "difference": None if found.difference is None else _difference(found.difference),
    }


def text_of(found: Replayed) -> str:
    """Return a replay for people."""
    steps, events = counted(found.steps, "step"), counted(found.events, "event")
    writer = shorten(found.version, 50)
    what = f"{steps} with {events}, {span(found.last_at - found.first_at)} of a journal of Corral {writer}"
    if found.difference is None:
        return f"Replayed {what}: every decision is equal."
    there = found.difference
    lines = [
        f"Replayed {what}: step {there.number} at {_rfc3339(there.at)} decided otherwise.",
        "",
        "In the journal:",
        *_lines(there, there.recorded),
        "Now:",
        *_lines(there, there.replayed),
    ]
    if there.explained:
        lines += ["The events of the step now:", *_first([f"  {shorten(each, _LONGEST)}" for each in there.explained])]
    return "\n".join(lines)


def _lines(there: Difference, decisions: tuple[Decision, ...]) -> list[str]:
    return _first([f"  {_words(there, each)}" for each in decisions]) or ["  nothing was started or stopped"]


def _words(there: Difference, decision: Decision) -> str:
    name = there.names.get(decision.job)
    attempt = f"{name} ({decision.attempt})" if name else decision.attempt
    place = f" on {decision.node}" if decision.node else ""
    devices = f", devices {', '.join(map(str, decision.devices))}" if decision.devices else ""
    why = f": {decision.why}" if decision.why else ""
    return shorten(f"{decision.verb} {attempt}{place}{devices}{why}", _LONGEST)


def _first(lines: Sequence[str]) -> list[str]:
    shown = list(lines[:_SHOWN])
    return shown + ([f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])


def _difference(there: Difference) -> dict[str, Any]:
    return {
        "step": there.number,
        "at": _rfc3339(there.at),
        "recorded": [_decision(each) for each in there.recorded],
        "replayed": [_decision(each) for each in there.replayed],
        "events": list(there.explained),
        "names": dict(there.names),
    }


def _decision(each: Decision) -> dict[str, Any]:
    return {name: getattr(each, name) for name in each.__struct_fields__}


def _time(option: str, text: str) -> float | None:
    """Return a time in seconds since 1970; None for no text."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text[:50]!r} is no time; write it as 2026-11-27T10:00:00Z."
        raise InvalidInput("no-time", message) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _rfc3339(at: float) -> str:
    from corral.model.records import rfc3339

    return rfc3339(at)
