"""A candidate decides on the inputs of a journal, beside what was decided; nothing is written."""

from __future__ import annotations

from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corral.control.core.driver import Work
from corral.control.core.inputs import CordonsRead
from corral.control.journal.records import Begun, Step
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.cordons import Cordon, Drain
from corral.model.policy_shadow import ShadowReport
from corral.model.store_writes import IntentKind
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.shadow.shadows import FIFO, Kept, beside, differences, records_of, total
from tests.examples import examples


def fifo(**more: Any) -> Journaled:
    """A core under `fifo`, of two nodes with four devices each."""
    return Journaled(FIFO, **more)


def three_jobs() -> Journaled:
    """On one node a job that runs, then a long and a short one that wait for it."""
    played = fifo(nodes=1)
    for name, at, seconds in (("runs", 0.0, 1000.0), ("long", 10.0, 2000.0), ("short", 20.0, 60.0)):
        played.submit(name, at, devices=4, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(10_000.0)
    return played


def assert_alike(report: ShadowReport) -> None:
    """The candidate decides the same in everything, at about the same times."""
    assert not report.problem and not report.differences
    found = total(report)
    assert (found.only_in_force, found.only_candidate, found.elsewhere) == (0, 0, 0), found
    assert report.earlier == report.later == 0
    for hour in report.hours:
        assert hour.in_force.started == hour.candidate.started
        assert hour.in_force.preempted == hour.candidate.preempted
        assert hour.in_force.devices == pytest.approx(hour.candidate.devices, abs=0.05)


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 10_000))
@example(seed=278)  # a job is preempted before it has started, and never started after that
@example(seed=1430)  # a job is stopped before it has started, and starts while it ends
@example(seed=2064)  # a task ends by itself at the moment at which it is told to end
def test_under_the_rules_in_force_it_decides_the_same(seed: int) -> None:
    draw = Random(seed)
    policy = draw.choice(["fifo", "fair", "srtf+order"])
    played = Journaled(Rules(policy, documents=False))
    jobs = [
        played.submit(
            f"job-{number}", draw.uniform(0, 4000), devices=draw.choice([1, 2, 4]), replicas=draw.choice([1, 1, 2]),
            work=Work(
                draw.uniform(10, 3000), code=draw.choice([0, 0, 0, 1]),
                start_seconds=draw.choice([0.0, 7.0]), stop_seconds=draw.choice([0.0, 3.0]),
            ),
            priority=draw.choice([0, 0, 10]), maxDuration=5000, retryPolicy={"maxRetries": draw.choice([0, 2])},
        )
        for number in range(14)
    ]  # fmt: skip
    played.run(2000.0)
    played.driver.request(draw.choice(jobs), IntentKind.STOP, "ann")
    played.run(50_000.0)
    report = beside(played, policy)
    assert total(report).alike >= 6
    assert_alike(report)


def test_it_is_told_where_it_decides_otherwise() -> None:
    report = beside(three_jobs(), "srtf")
    assert differences(report) == [("start", "long", 1000.0, 1060.0), ("start", "short", 3000.0, 1000.0)]
    assert [each.why for each in report.differences] == ["Needs 4 devices; 0 of 4 are free."] * 2
    assert report.decisions["start"].alike == 1 and total(report).only_candidate == 2
    assert [(each.name, each.seconds) for each in report.gains] == [("short", 2000.0)]
    assert (report.earlier, report.later, report.same) == (1, 0, 2)
    first, second = report.hours
    assert (first.seconds, second.seconds) == (800.0, 2261.0) and first.devices == 4
    assert (first.in_force.waiting, first.candidate.waiting, first.in_force.devices) == (2, 2, 4.0)
    assert (second.in_force.wait_p95, second.candidate.wait_p95) == (2980.0, 1050.0)
    assert report.total.candidate.wait_p50 == 980.0 and report.total.seconds == 3061.0
    (queue,) = report.total.queues
    assert queue.queue == "default" and queue.in_force == report.total.in_force


def test_a_preemption_of_the_candidate_alone_says_for_whom() -> None:
    played = fifo(nodes=1)
    played.submit("long", 0.0, devices=4, work=Work(5000.0), maxDuration=5001)
    played.submit("short", 100.0, devices=4, work=Work(60.0), maxDuration=61)
    played.run(20_000.0)
    report = beside(played, "srtf+order")
    kinds = [(each.kind, each.name) for each in report.differences]
    assert ("preempt", "long") in kinds and ("start", "short") in kinds
    (preempted,) = [each for each in report.differences if each.kind == "preempt"]
    assert "short" in preempted.why and preempted.in_force is None
    assert (report.total.in_force.preempted, report.total.candidate.preempted) == (0, 1)


def test_documents_are_tried_and_the_journal_keeps_its_own() -> None:
    played = fifo(nodes=1)
    for name, seconds in (("one", 1000.0), ("two", 60.0)):
        played.submit(name, 0.0, devices=2, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(2000.0)
    before = played.file.getvalue()
    bound = '{"apiVersion":"corral.dev/v1alpha1","kind":"Queue","name":"default","limit":{"devices":"2"}}'
    report = beside(played, documents=[bound])
    assert differences(report) == [("start", "two", 0.0, 1000.0)]
    assert "limit" in report.differences[0].why or "devices" in report.differences[0].why
    played.blocks.flush()
    assert played.file.getvalue().startswith(before)


def test_it_may_fork_at_any_time() -> None:
    played = three_jobs()
    report = beside(played, "srtf", since=900.0)
    assert report.begin.endswith("02:01:40.000Z") and report.total.seconds == 2161.0
    assert differences(report) == [("start", "long", 1000.0, 1060.0), ("start", "short", 3000.0, 1000.0)]
    late = beside(played, "srtf", since=1500.0)
    assert total(late).otherwise == 0 and late.decisions["start"].alike == 1
    early = beside(played, "srtf", until=500.0)
    assert early.total.seconds == 20.0 and total(early).alike == 1
    assert (
        beside(played, "srtf", since=-1000.0).notes[0].startswith("The journal is kept from 2001-09-09T01:46:40.000Z")
    )


def test_it_may_begin_each_hour_anew() -> None:
    played = fifo(nodes=1)
    played.submit("runs", 0.0, devices=4, work=Work(700.0), maxDuration=701)
    for name, seconds in (("long", 9000.0), ("short", 60.0)):
        played.submit(name, 10.0, devices=4, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(20_000.0)
    at_once, anew = beside(played, "srtf"), beside(played, "srtf", anew=True)
    assert differences(at_once) == [("start", "long", 700.0, 760.0), ("start", "short", 9700.0, 700.0)]
    assert total(anew).only_candidate <= total(at_once).only_candidate
    assert [hour.candidate.devices for hour in anew.hours[1:3]] == [hour.in_force.devices for hour in anew.hours[1:3]]


def test_runs_that_are_not_over_take_as_long_as_is_to_be_expected() -> None:
    played = fifo(nodes=1)
    for number in range(6):
        played.submit(f"done-{number}", 0.0, devices=4, work=Work(100.0))
    played.submit("goes-on", 600.0, devices=4, work=Work(inf))
    played.submit("behind", 601.0, devices=4, work=Work(50.0), priority=10)
    played.run(700.0)
    report = beside(played, "fair", idle_until=5000.0)
    assert report.total.seconds == 5000.0
    assert "Of 2 jobs the journal has no end: run as long as ended jobs of the same queue." in report.assumptions


def test_a_resumed_task_goes_on_where_it_was() -> None:
    played = fifo(nodes=1)
    job = played.submit("resumes", 0.0, devices=4, work=Work(1000.0))
    played.run(600.0)
    played.driver.request(job, IntentKind.SUSPEND, "ann")
    played.run(700.0)
    played.works["resumes"] = Work(400.0)
    played.driver.request(job, IntentKind.RESUME, "ann")
    played.run(5000.0)
    assert_alike(beside(played, "fifo"))
    assert_alike(beside(played, "fifo", since=650.0))
    assert_alike(beside(played, "fifo", since=800.0))


def test_cordons_and_a_control_that_takes_over_are_no_break() -> None:
    played = fifo(nodes=2)
    for number in range(6):
        played.submit(f"job-{number}", 0.0, devices=4, work=Work(100.0))
    name = next(iter(played.core.machines.nodes))
    played.driver.at(BEGIN + 60, CordonsRead({name: Cordon(name, "ann", "", BEGIN + 60, Drain.NONE)}))
    played.driver.store.closed_nodes = {name: Cordon(name, "ann", "", BEGIN + 60, Drain.NONE)}
    played.run(150.0)
    played.begin_again()
    played.run(1000.0)
    assert_alike(beside(played, "fifo"))


def test_after_a_time_without_a_journal_it_begins_anew() -> None:
    played = fifo(nodes=1)
    played.submit("first", 0.0, devices=4, work=Work(500.0))
    played.run(50.0)
    before = len(records_of(played))
    played.submit("unseen", 60.0, devices=4, work=Work(100.0))
    played.run(70.0)
    unseen = len(records_of(played))
    played.begin_again()
    played.submit("last", 80.0, devices=4, work=Work(100.0))
    played.run(2000.0)
    records = records_of(played)
    report = beside(Kept([*records[:before], *records[unseen:]]), "fifo")
    assert (
        "The journal lacks the requests between 2001-09-09T01:46:40.000Z and 2001-09-09T01:47:50.000Z"
        in report.notes[0]
    )
    assert not report.problem and total(report).otherwise == 0 and total(report).alike == 3


def test_a_journal_that_cannot_be_followed_is_compared_up_to_there() -> None:
    records = records_of(three_jobs())
    *others, last = records
    assert isinstance(last, Step)
    altered = beside(Kept([*others, msgspec.structs.replace(last, digest=b"12345678")]), "srtf")
    assert f"Step {last.number} of the journal is decided otherwise by this version" in altered.problem
    assert total(altered).only_candidate == 2
    number = len(records) // 2
    missing = beside(Kept([*records[:number], *records[number + 1 :]]), "srtf")
    assert "a part of it is missing" in missing.problem
    assert beside(Kept(records, "It was cut off."), "srtf").problem == "It was cut off."
    with pytest.raises(InvalidInput, match="a part of it is missing"):
        beside(Kept([records[0], records[1], *records[3:]]), "srtf", since=3000.0)


def test_it_ends_when_it_is_asked_to_with_what_it_has() -> None:
    asked = iter([False] * 6 + [True] * 1000)
    report = beside(three_jobs(), "srtf", stop=lambda: next(asked))
    assert report.notes[-1].startswith("It was stopped at 2001-09-09T")
    assert 0 < report.total.seconds < 3061.0


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"policy": "nope"}, InvalidInput, "There is no policy 'nope'"),
        ({"documents": ["no JSON"]}, InvalidInput, "is not JSON text"),
        ({"policy": "srtf", "since": 100_000.0}, NotFound, "before the time from which it is to be compared"),
        ({"policy": "srtf", "idle_until": 1e9}, InvalidInput, "at most 744 are compared at once; use --from and --to"),
    ],
)
def test_what_cannot_be_compared_is_refused(more: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        beside(three_jobs(), **more)


def test_a_journal_without_steps_has_nothing_to_compare() -> None:
    begun = [each for each in records_of(fifo()) if isinstance(each, Begun)]
    for records in (begun, []):
        with pytest.raises(NotFound, match="has no step of that time"):
            beside(Kept(records), "srtf")
