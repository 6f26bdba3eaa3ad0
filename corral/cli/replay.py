"""`corral replay`: run the scheduler over a journal of decisions again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.exit_codes import OK, USAGE
from corral.cli.output import output_option, say, show, span
from corral.cli.progress import progress_bar
from corral.cli.sim_options import FILE, FOLDER
from corral.cli.times import seconds_of
from corral.kernel.errors import NotFound
from corral.kernel.units import counted
from corral.spec.errors import shorten

if TYPE_CHECKING:
    from corral.control.journal.blocks import BlockWriter
    from corral.control.journal.comparison import Compared
    from corral.control.journal.records import Decision
    from corral.control.journal.replay import Difference, Replayed
    from corral.kernel.ids import JobId

DIFFERS: Final = 1
"""The exit code of a replay that decided otherwise."""
_SHOWN: Final = 20
"""The most decisions of a step that are shown of either side."""
_SAID: Final = ("event", "wait")
_LONGEST: Final = 400
"""The most characters of a line about a decision."""


class Replay(CommandGroup):
    """A command group that names the command for a file, which is what people give."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begins with, or fail with a suggestion for a file."""
        if args and args[0] not in self.commands and os.path.isfile(args[0]):
            ctx.fail(f"There is no command {args[0][:100]!r}. Did you mean corral replay run {args[0][:100]}?")
        return super().resolve_command(ctx, args)


@click.group("replay", cls=Replay)
def replay_command() -> None:
    """Replay journals of decisions, without a server."""


@replay_command.command("run")
@click.argument("file", type=FILE)
@click.option("--from", "since", default="", metavar="TIME", help="Begin at the last checkpoint before this time.")
@click.option("--until", default="", metavar="TIME", help="End before the first step after this time.")
@click.option("--record", type=FILE, help="Go on after a difference, and write what is decided now to this journal.")
@click.option("--policy", default="", metavar="NAME", help="Let the jobs live on under this policy instead.")
@click.option("--documents", type=FOLDER, metavar="DIR", help="Let them live on under the documents of this folder.")
@click.option("--all", "everything", is_flag=True, help="With another policy or documents: list every job.")
@output_option
def run_command(
    file: Path,
    since: str,
    until: str,
    record: Path | None,
    policy: str,
    documents: Path | None,
    everything: bool,
    output: str,
) -> int:
    """Give the scheduler all that a journal says it was told, and compare each decision with what it decided then.

    It ends at the first decision that differs and shows both. A TIME is of the form 2026-11-27T10:00:00Z. Exit codes:
    0 all are equal, 1 one differs, 2 the file cannot be read to its end; 3 there is no such file.

    With --policy or --documents the jobs live on under other rules, and their tasks run as long as they did: it shows
    waits by queue and by job, as they were and as they would have been. The exit code is then 0 or 2.

    \b
    corral sim run --trace trace.csv --cluster 8x8 --journal week.journal
    corral replay run week.journal
    corral replay run week.journal --policy srtf
    """
    from corral.control.journal.replay import replay

    begin, end = seconds_of("--from", since), seconds_of("--until", until)
    if not file.exists():
        raise NotFound("no-file", f"{file} is not there.")
    if policy or documents is not None:
        if begin is not None or end is not None or record is not None:
            raise click.UsageError(
                "--policy and --documents play the whole journal: leave out --from, --until, --record."
            )
        return _live_on(file, policy, documents, everything=everything, output=output)
    with (
        _kept(record) as kept,
        file.open("rb") as opened,
        progress_bar(os.fstat(opened.fileno()).st_size, "Replaying") as advance,
    ):
        found = replay(
            opened,
            since=begin,
            until=inf if end is None else end,
            told=lambda _: advance(opened.tell()),
            kept=kept,
        )
    if not show(record_of(found), output):
        click.echo(text_of(found))
    if found.problem:
        say(found.problem)
    if found.difference is not None:
        return DIFFERS
    return USAGE if found.problem else OK


def _live_on(file: Path, policy: str, documents: Path | None, *, everything: bool, output: str) -> int:
    """Show what would have become of a journal's jobs under other rules."""
    from corral.cli.replay_life import life_of, life_text

    with file.open("rb") as opened:
        found, problem = life_of(opened, policy, documents)
    if not show(found, output):
        click.echo(life_text(found, everything=everything))
    if problem:
        say(problem)
    return USAGE if problem else OK


@replay_command.command("bisect")
@click.argument("file", type=FILE)
@click.option(
    "--good", required=True, metavar="REF", help="A git revision, a wheel, or a folder or environment with `corral`."
)
@click.option("--bad", required=True, metavar="REF", help="Another one.")
@output_option
def bisect_command(file: Path, good: str, bad: str, output: str) -> int:
    """Replay a journal by two versions of Corral and show the first step in which they start or stop something else.

    Each version runs in a process of its own, with the packages that are installed here; an environment (`python -m
    venv`) has its own. A git revision is one of the repository of the present folder. Exit codes: 0 they decide the
    same, 1 they do not, 2 one cannot replay the file.

    \b
    corral replay bisect week.journal --good v1.2 --bad HEAD
    """
    from corral.cli.replay_revisions import compared

    if not file.exists():
        raise NotFound("no-file", f"{file} is not there.")
    found = compared(file, good, bad)
    if not show(comparison_record(found), output):
        click.echo(comparison_text(found, good, bad))
    return OK if found.equal else DIFFERS


def comparison_record(found: Compared) -> dict[str, Any]:
    """Return a comparison of two versions for programs."""
    there = found.good or found.bad
    return {
        "equal": found.equal,
        "steps": found.steps,
        "storedFrom": found.stored_from,
        "difference": None if there is None else {
            "step": there.number,
            "at": _rfc3339(there.at),
            "good": [] if found.good is None else [_decision(each) for each in found.good.decisions],
            "bad": [] if found.bad is None else [_decision(each) for each in found.bad.decisions],
        },
    }  # fmt: skip


def comparison_text(found: Compared, good: str, bad: str) -> str:
    """Return a comparison of two versions for people."""
    there, steps = found.good or found.bad, counted(found.steps, "step")
    if there is None:
        end = f"Step {found.stored_from} is the first that stores something else." if found.stored_from else ""
        return f"Compared {steps}: both versions start and stop the same. {end}".rstrip()
    lines = [f"Compared {steps}: step {there.number} at {_rfc3339(there.at)} is the first that decides otherwise.", ""]
    for ref, step in ((good, found.good), (bad, found.bad)):
        decisions = () if step is None else step.decisions
        commands = [f"  {_words({}, each)}" for each in decisions if each.verb in ("start", "stop")]
        events = [
            f"  {shorten(f'{each.attempt}: {each.why}', _LONGEST)}"
            for each in decisions
            if each.verb in _SAID and each.why
        ]
        lines += [f"{shorten(ref, _LONGEST)}:", *(_first(commands) or ["  nothing was started or stopped"])]
        lines += ["  Its events:", *(f"  {each}" for each in _first(events))] if events else []
    return "\n".join(lines)


@contextmanager
def _kept(record: Path | None) -> Iterator[BlockWriter | None]:
    """Give what writes a journal whole or not at all, if one is wanted."""
    from corral.control.journal.files import written_whole

    if record is None:
        yield None
        return
    with written_whole(record) as blocks:
        yield blocks


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
        *_reasons(there.recorded_reasons),
        "Now:",
        *_lines(there, there.replayed),
        *_reasons(there.replayed_reasons),
    ]
    if there.explained:
        lines += ["The events of the step now:", *_first([f"  {shorten(each, _LONGEST)}" for each in there.explained])]
    return "\n".join(lines)


def _lines(there: Difference, decisions: tuple[Decision, ...]) -> list[str]:
    return _first([f"  {_words(there.names, each)}" for each in decisions]) or ["  nothing was started or stopped"]


def _reasons(reasons: Sequence[str]) -> list[str]:
    return _first([f"  {shorten(each, _LONGEST)}" for each in reasons])


def _words(names: Mapping[JobId, str], decision: Decision) -> str:
    name = names.get(decision.job)
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
        "recordedReasons": list(there.recorded_reasons),
        "replayedReasons": list(there.replayed_reasons),
        "names": dict(there.names),
    }


def _decision(each: Decision) -> dict[str, Any]:
    return {name: getattr(each, name) for name in each.__struct_fields__}


def _rfc3339(at: float) -> str:
    from corral.model.records import rfc3339

    return rfc3339(at)
