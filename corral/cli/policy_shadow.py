"""The command `corral policy shadow`: a candidate policy beside the one in force, on the inputs of a journal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import OK, USAGE
from corral.cli.output import say
from corral.cli.policy_shadow_server import Asked, check_asked, is_elsewhere, report_of
from corral.cli.policy_shadow_text import hour_line, markdown, text
from corral.cli.progress import StatusLine
from corral.cli.server import data_option, make_settings
from corral.cli.sim_options import FILE, FOLDER
from corral.cli.times import seconds_of
from corral.kernel.units import parse_duration

if TYPE_CHECKING:
    from corral.control.shadow.comparison import Question
    from corral.control.shadow.source import Source
    from corral.model.policy_shadow import ShadowReport

FORMS: Final = ("table", "markdown", "json")
_DAY: Final = 86_400.0
_HOUR: Final = 3_600.0
_AFTER_THE_HOUR: Final = 90.0
"""Seconds after an hour at which it is told: by then its decisions are paired."""


@click.command("shadow")
@click.argument("policy", default="", metavar="[POLICY]")
@click.option("--documents", type=FOLDER, metavar="DIR", help="The documents of this folder instead of those in force.")
@click.option("--file", type=FILE, metavar="JOURNAL", help="An exported journal, instead of that of the server here.")
@click.option("--from", "since", default="", metavar="TIME", help="From when on; default: a day ago, or all of FILE.")
@click.option("--to", "until", default="", metavar="TIME", help="Until when.")
@click.option("--for", "lasting", default="", metavar="DURATION", help="Go on beside the server for so long from now.")
@click.option("--follow", is_flag=True, help="Go on beside the server until Ctrl-C, and show each hour.")
@click.option("--anew", is_flag=True, help="Let the candidate begin each hour with what is in force then.")
@click.option(
    "--within",
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Equal decisions that are not further apart are alike.",
)
@click.option(
    "--differences",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    help="How many decisions that differ are listed.",
)
@click.option("--server", is_flag=True, help="Have the server compare, by its own journal, over the API.")
@data_option
@click.option("-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help="How to print it.")
def shadow_command(policy: str, documents: Path | None, output: str, *, server: bool, **asked: Any) -> int:
    """Let a candidate decide beside the policy in force on the same inputs, and show where it decides otherwise.

    It never acts: it reads the journal of the server on this machine, and decides in its own memory. With --server, or
    where no journal is here, the server that you are signed in to does it (administrators only). Requests, machines and
    the run times of tasks are as they were. The report shows, hour by hour, decisions and waits under both.
    A TIME is of the form 2026-11-27T10:00:00Z. Exit codes: 0 it was compared, 2 the journal cannot be read to its end
    (what is whole of it is shown), 3 there is none.

    \b
    corral policy shadow srtf                          the last 24 hours
    corral policy shadow --documents quotas --follow   from now on, until Ctrl-C
    corral policy shadow srtf --file week.journal -o markdown
    """
    if _asks_server(server=server, **asked):
        report = _of_server(policy, documents, **asked)
    else:
        run = _run_of(policy, documents, **asked)
        with _interrupted() as stopped, _status() as status:
            report = run.followed(stopped, status) if run.follows else run.report(stopped, status)
    click.echo(_FORMS[output](report), nl=False)
    if report.problem:
        say(report.problem)
    return USAGE if report.problem else OK


def _asks_server(
    *, server: bool, file: Path | None, lasting: str, follow: bool, data_folder: Path | None, **_: Any
) -> bool:
    """Whether the server compares. Raises click.UsageError for options that do not go with that."""
    follows = follow or bool(lasting)
    check_asked(server=server, file=file, follows=follows, data_folder=data_folder)
    here = file is not None or follows or data_folder is not None
    return server or (not here and is_elsewhere(_journal_of(data_folder)))


def _of_server(
    policy: str, documents: Path | None, *, since: str, until: str, anew: bool, within: str, differences: int, **_: Any
) -> ShadowReport:
    _check(policy, documents, follows=False, both=False, file=None, until=until)
    texts = None if documents is None else _texts(documents)
    asked = Asked(policy, texts, since, until, anew, _seconds("--within", within), differences)
    return report_of(asked)


@dataclass(frozen=True)
class Run:
    """A comparison to be made once, or again and again beside the server."""

    source: Source
    question: Question
    ends_at: float | None
    """When following ends, in seconds since 1970; None: nothing is followed."""

    @property
    def follows(self) -> bool:
        """Whether it goes on beside the server."""
        return self.ends_at is not None

    def report(self, stopped: Event, status: StatusLine) -> ShadowReport:
        """Compare what is there; Ctrl-C ends it with what has been compared."""
        from corral.control.shadow.comparison import compare
        from corral.model.records import rfc3339

        status.tell("reading how long tasks ran")
        return compare(
            self.source,
            replace(self.question, stop=stopped.is_set, told=lambda at: status.tell(f"compared to {rfc3339(at)}")),
        )

    def followed(self, stopped: Event, status: StatusLine) -> ShadowReport:
        """Wait until Ctrl-C or the end, show each whole hour meanwhile, and compare all of it then."""
        from corral.control.shadow.comparison import last_moment
        from corral.control.shadow.source import FolderSource
        from corral.control.shadow_following import Following

        assert self.ends_at is not None and isinstance(self.source, FolderSource)
        os.nice(5)
        ends_at = min(self.ends_at, last_moment(self.question.since))
        is_ending = Event()
        following = Following(self.source, replace(self.question, stop=lambda: is_ending.is_set() and stopped.is_set()))
        told, next_at = 0, _after_the_hour(time.time())
        while not stopped.is_set() and (now := time.time()) < ends_at:
            status.tell("beside the server; Ctrl-C shows the report")
            if now >= next_at:
                following.read()
                report = asyncio.run(following.report(now, stopped.is_set))
                over = () if report is None else report.hours[:-1]
                for hour in over[told:]:
                    status.clear_line()
                    say(hour_line(hour))
                told, next_at = max(told, len(over)), _after_the_hour(now)
            stopped.wait(min(1.0, max(0.0, ends_at - now)))
        stopped.clear()
        is_ending.set()
        status.tell("comparing the last hours")
        following.read()
        return following.finish(min(time.time(), ends_at))


def _run_of(
    policy: str,
    documents: Path | None,
    *,
    file: Path | None,
    since: str,
    until: str,
    lasting: str,
    follow: bool,
    anew: bool,
    within: str,
    differences: int,
    data_folder: Path | None,
) -> Run:
    """Raises click.UsageError, and what reading the documents raises."""
    from corral.control.shadow.comparison import Question
    from corral.control.shadow.source import FileSource, FolderSource

    follows, now = follow or bool(lasting), time.time()
    _check(policy, documents, follows=follows, both=follow and bool(lasting), file=file, until=until)
    begin, end, seconds = seconds_of("--from", since), seconds_of("--to", until), _seconds("--for", lasting)
    if begin is None:
        begin = -inf if file is not None else now if follows else now - _DAY
    names = [each for each in (policy, str(documents) if documents is not None else "") if each]
    source: Source
    if file is not None:
        source = FileSource(file)
    else:
        source = FolderSource(_journal_of(data_folder))
    question = Question(
        _rules(policy, documents),
        " with ".join(names),
        begin,
        inf if end is None else end,
        anew=anew,
        most=differences,
        within=_seconds("--within", within),
    )
    return Run(source, question, now + seconds if follows else None)


def _check(
    policy: str, documents: Path | None, *, follows: bool, both: bool, file: Path | None, until: str
) -> None:  # fmt: skip
    if not policy and documents is None:
        raise click.UsageError("Name a policy, such as `corral policy shadow srtf`, or a folder with --documents.")
    if both:
        raise click.UsageError("--for and --follow do not go together: --for ends by itself.")
    if follows and (file is not None or until):
        raise click.UsageError("--for and --follow go with the server's own journal: leave out --file and --to.")


def _rules(policy: str, documents: Path | None) -> Any:
    from corral.control.shadow.lives import CandidateRules

    return CandidateRules(policy, None if documents is None else _texts(documents))


def _texts(documents: Path) -> tuple[str, ...]:
    """The canonical texts of a folder's documents."""
    from corral.model.configuration import canonical
    from corral.sim.policy_test.documents import documents_of

    return tuple(canonical(each) for each in documents_of(documents).documents())


def _journal_of(data_folder: Path | None) -> Path:
    return make_settings(data_folder=data_folder).data_folder / "journal"


def _seconds(option: str, duration: str) -> float:
    if not duration:
        return inf
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def _after_the_hour(now: float) -> float:
    return ((now - _AFTER_THE_HOUR) // _HOUR + 1) * _HOUR + _AFTER_THE_HOUR


@contextmanager
def _interrupted() -> Iterator[Event]:
    """Have the first Ctrl-C set an event, and a second one end the command."""
    stopped = Event()

    def note(*_: object) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _status() -> Iterator[StatusLine]:
    status = StatusLine()
    try:
        yield status
    finally:
        status.clear()


def _json(report: ShadowReport) -> str:
    import msgspec

    return json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False) + "\n"


_FORMS: Final[dict[str, Callable[[ShadowReport], str]]] = {"table": text, "markdown": markdown, "json": _json}
