"""A comparison goes on as the journal grows: it says what one from the start would, and keeps no job that is over."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from corral.control.core.driver import Work
from corral.control.journal.folder import PACKED, JournalFolder
from corral.control.journal.records import Begun, Checkpoint, Record, Step, encoded
from corral.control.journal.rules import Rules
from corral.control.shadow import comparison
from corral.control.shadow.comparison import Comparison, Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FolderSource
from corral.control.shadow.unplayed import Unplayed
from corral.control.shadow_following import Following
from corral.model.policy_shadow import ShadowReport
from corral.model.store_writes import IntentKind
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.shadow.shadows import FIFO, Kept, records_of
from tests.examples import at_least

HOUR = 3600.0
HOURS = 12
BETWEEN = HOURS // at_least(2, HOURS)
"""From one hour that is compared from the start to the next: each by `make test`."""


@pytest.fixture(autouse=True)
def two_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours are settled after two hours, and not after a day."""
    monkeypatch.setattr(comparison, "READ_AHEAD", 2 * HOUR)


def a_life(seed: int, *, simulated: bool = False) -> list[Record]:
    """Hours of a scheduler that is built anew now and then; many jobs outlast the two hours.

    One that is `simulated` has checkpoints, too, which no server's journal has.
    """
    draw = Random(seed)
    played = Journaled(Rules("fair", documents=False), unexplained=simulated)
    jobs = []
    for number in range(50):
        at = draw.uniform(0, HOURS - 2) * HOUR
        seconds = draw.choice([60.0, 900.0, 3000.0, 3 * HOUR, inf])
        work = Work(
            seconds, code=draw.choice([0, 0, 0, 1]),
            start_seconds=draw.choice([0.0, 40.0]), stop_seconds=draw.choice([0.0, 9.0]),
        )  # fmt: skip
        more: dict[str, Any] = {"maxDuration": int(seconds) + 1} if seconds < inf and draw.random() < 0.5 else {}
        more |= {"priority": draw.choice([0, 0, 10]), "retryPolicy": {"maxRetries": draw.choice([0, 2])}}
        devices, replicas = draw.choice([1, 2, 4]), draw.choice([1, 1, 2])
        jobs.append(played.submit(f"job-{number % 5}", at, devices=devices, replicas=replicas, work=work, **more))
    for hour in range(1, HOURS + 1):
        played.run(hour * HOUR - draw.uniform(100, 2000))
        for _ in range(4):
            job = draw.choice(jobs)
            if job in played.core.world.jobs:
                kind = draw.choice([IntentKind.STOP, IntentKind.SUSPEND, IntentKind.RESUME, IntentKind.STOP])
                played.driver.request(job, kind, "ann")
        played.run(hour * HOUR)
        if simulated and hour % 3 == 1:
            played.checkpoint()
        elif hour % 3:
            played.begin_again()
    return records_of(played)


def hours_of(records: Sequence[Record]) -> Iterator[tuple[float, list[Record]]]:
    """The records of each hour, with its end and a minute and a half."""
    for hour in range(1, HOURS + 1):
        until = BEGIN + hour * HOUR + 90.0
        yield until, [each for each in records if until - HOUR < at(each) <= until or (at(each) <= until and hour == 1)]


def at(record: Record) -> float:
    return record.begun.at if isinstance(record, Checkpoint) else record.at


def asked(policy: str = "srtf", **more: Any) -> Question:
    return Question(CandidateRules(policy), policy, **more)


@pytest.mark.parametrize(
    ("seed", "more"),
    [
        (1, {}),
        pytest.param(2, {"since": BEGIN + 4000.0}, marks=pytest.mark.large),
        pytest.param(3, {"anew": True}, marks=pytest.mark.large),
        (4, {"within": 5.0, "most": 3}),
    ],
)
def test_each_hour_it_says_what_a_comparison_from_the_start_would(
    seed: int, more: dict[str, Any], tmp_path: Path
) -> None:
    """The journal's files are rotated and packed, and those that were read are deleted."""
    written = JournalFolder(tmp_path / "journal", most_bytes=10**9, most_seconds=1e9)
    question = asked(**more)
    following = Following(FolderSource(tmp_path / "journal"), question)
    so_far: list[Record] = []
    reports: list[ShadowReport] = []
    deleted = 0
    for now, part in hours_of(a_life(seed, simulated="since" in more)):
        for each in part:
            if isinstance(each, Begun | Checkpoint):
                written.begin_file()
            written.add(encoded(each), at(each))
        so_far += part
        following.read()
        if question.since > now:
            continue
        found = asyncio.run(following.report(now))
        assert found is not None
        if (len(reports) + 1) % BETWEEN == 0:
            assert found == compare(Kept(so_far), replace(question, idle_until=now)), f"hour {len(reports)}"
        reports.append(found)
        written.pack()
        for file in (tmp_path / "journal").glob(f"*{PACKED}"):
            file.unlink()
            deleted += 1
    written.close()
    assert deleted >= 4 and len(reports) >= HOURS - 1
    assert following.finish(now) == reports[-1] and not reports[-1].problem
    assert reports[-1].total.decisions.otherwise and reports[-1].earlier + reports[-1].later > 3
    assert reports[-1].hours[:3] != reports[4].hours[:3] or reports[-1].assumptions != reports[4].assumptions


@pytest.mark.parametrize("seed", [2, 5])
def test_tasks_that_outlast_what_is_known_ahead_end_as_they_did(seed: int) -> None:
    report = compare(Kept(a_life(seed)), asked("fair"))
    found = report.total.decisions
    assert found.alike > 20 and not report.problem
    assert (found.only_in_force, found.only_candidate, found.elsewhere) == (0, 0, 0), report.differences
    assert report.earlier == report.later == 0


def test_the_same_whether_it_is_read_at_once_or_record_by_record() -> None:
    records = a_life(5)
    data = [encoded(each) for each in records]
    at_once, step_by_step = Comparison(asked()), Comparison(asked())
    at_once.read(data)
    for each in data:
        step_by_step.read([each])
    assert at_once.finish() == step_by_step.finish()


def test_a_day_ahead_is_as_good_as_all_of_it_for_jobs_that_wait_less(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Journaled(FIFO, nodes=1)
    for number in range(40):
        seconds = 300.0 + 60 * (number * 7 % 13)
        played.submit(f"job-{number}", 600.0 * number, devices=4, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(40 * HOUR)
    source = Kept(records_of(played))
    soon = compare(source, asked())
    monkeypatch.setattr(comparison, "READ_AHEAD", inf)
    assert compare(source, asked()) == soon


def test_what_it_keeps_does_not_grow_with_the_jobs_that_are_over() -> None:
    for jobs in (at_least(60, 100), at_least(120, 300)):
        goes_on = Comparison(asked())
        goes_on.read(encoded(each) for each in short_jobs(jobs))
        held = held_by(goes_on)
        assert held["Ran"] > 10 and held.total() < 50, held  # of the two hours and of the hour that is not over
        report = goes_on.finish()
        assert report.total.in_force.started == report.total.candidate.started == jobs


def short_jobs(count: int) -> list[Record]:
    """One job after the other on one node; each waits for some others."""
    played = Journaled(FIFO, nodes=1)
    for number in range(count):
        seconds = 200.0 + 100 * (number * 7 % 5)
        played.submit(f"job-{number}", 410.0 * number, devices=4, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(410.0 * count + 2000.0)
    assert sum(isinstance(each, Step) for each in records_of(played)) > 2 * count
    return records_of(played)


def held_by(root: object) -> Counter[str]:
    """How many objects of some classes can be reached from one, by name; classes and modules lead nowhere."""
    wanted = {"LiveJob", "_Row", "Ran", "_Calls", "Started"}
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or type(each).__name__ in {"module", "function"}:
            continue
        seen.add(id(each))
        if type(each).__name__ in wanted:
            found[type(each).__name__] += 1
        waiting += gc.get_referents(each)
    return found


def test_records_that_wait_come_out_as_they_went_in() -> None:
    draw = Random(7)
    records = [draw.randbytes(draw.randrange(1, 9000)) for _ in range(300)]
    waiting = Unplayed()
    out = []
    for each in records:
        waiting.add(each)
        if draw.random() < 0.3:
            out.append(waiting.take())
    while (record := waiting.take()) is not None:
        out.append(record)
    assert out == records
    waiting.add(b"one")
    waiting.clear()
    assert waiting.take() is None
