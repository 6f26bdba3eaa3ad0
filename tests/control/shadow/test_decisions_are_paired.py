"""Decisions of two schedulers about one job are one, if both made them at about the same time."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.shadow.decisions import Decision, Kind
from corral.control.shadow.differences import Differences
from corral.control.shadow.pairing import Pair, Pairing
from corral.control.shadow.starts import Started, Starts
from corral.kernel.ids import JobId


def made(at: float, job: str = "a", kind: Kind = Kind.START, nodes: tuple[str, ...] = ("n1",)) -> Decision:
    return Decision(at, kind, JobId(job), job, "ann", "q", nodes)


def test_a_decision_of_both_is_one_within_some_seconds() -> None:
    pairing = Pairing(60.0)
    assert pairing.add(made(100.0), candidate=False) is None
    assert pairing.add(made(100.0, "b"), candidate=True) is None
    assert pairing.add(made(110.0, kind=Kind.PREEMPT), candidate=True) is None
    assert pairing.due_at == 160.0
    found = pairing.add(made(160.0), candidate=True)
    assert found == Pair(made(100.0), made(160.0)) and not found.elsewhere
    assert pairing.settle(160.0) == [Pair(None, made(100.0, "b"))]
    assert pairing.settle(169.0) == [] and pairing.due_at == 170.0
    assert pairing.settle(200.0) == [Pair(None, made(110.0, kind=Kind.PREEMPT))]
    assert pairing.due_at is None and pairing.drop() == []


def test_the_nodes_of_both_are_compared() -> None:
    pairing = Pairing(60.0)
    pairing.add(made(0.0, nodes=("n1", "n2")), candidate=True)
    found = pairing.add(made(1.0, nodes=("n1", "n1")), candidate=False)
    assert found is not None and found.elsewhere
    assert not Pair(made(0.0), None).elsewhere


def test_what_may_still_find_a_partner_can_be_taken_out() -> None:
    pairing = Pairing(60.0)
    for job in ("a", "b", "c"):
        pairing.add(made(0.0, job), candidate=False)
    pairing.add(made(1.0, "b"), candidate=True)
    assert pairing.drop() == [Pair(made(0.0, job), None) for job in ("a", "c")] and pairing.due_at is None
    assert pairing.add(made(2.0), candidate=True) is None


@given(seed=st.integers(0, 1000))
def test_each_decision_is_told_once(seed: int) -> None:
    draw = Random(seed)
    given_ = [
        (draw.random() < 0.5, made(at, draw.choice("abc"), draw.choice(list(Kind))))
        for at in sorted(draw.uniform(0, 500) for _ in range(40))
    ]
    pairing, found = Pairing(30.0), []
    for candidate, decision in given_:
        found += pairing.settle(decision.at)
        pair = pairing.add(decision, candidate=candidate)
        found += [pair] if pair is not None else []
    found += pairing.settle(1e9)
    for candidate in (False, True):
        told = [pair[candidate] for pair in found if pair[candidate] is not None]
        assert sorted(told, key=lambda each: each.at) == [each for side, each in given_ if side is candidate]  # type: ignore[union-attr]
    both = [pair for pair in found if None not in pair]
    assert all(abs(pair[0].at - pair[1].at) <= 30.0 for pair in both)  # type: ignore[union-attr]
    assert pairing.due_at is None


def test_a_difference_is_completed_when_the_other_decides_the_same_later() -> None:
    differences = Differences(2)
    differences.add(Pair(made(0.0), None), "It waits.")
    differences.add(Pair(None, made(10.0, "b")), "")
    differences.add(Pair(None, made(20.0, "c")), "")
    differences.add(Pair(None, made(500.0)), "")
    differences.add(Pair(made(600.0, "b"), None), "")
    differences.add(Pair(made(700.0, "b"), None), "")
    listed = [(each.name, each.in_force, each.candidate, each.why) for each in differences.told()]
    assert listed == [
        ("a", "1970-01-01T00:00:00.000Z", "1970-01-01T00:08:20.000Z", "It waits."),
        ("b", "1970-01-01T00:10:00.000Z", "1970-01-01T00:00:10.000Z", ""),
    ]
    assert differences.left_out == 2


def test_starts_are_compared_job_by_job() -> None:
    starts = Starts(60.0)
    starts.leave_out([JobId("old")])
    for job, in_force, candidate in (("a", 0.0, 300.0), ("b", 500.0, 100.0), ("c", 10.0, 70.0), ("old", 5.0, 500.0)):
        starts.add(JobId(job), Started(in_force, job, "ann", "q"), candidate=False)
        starts.add(JobId(job), Started(candidate, job, "ann", "q"), candidate=True)
    starts.add(JobId("a"), Started(900.0, "a", "ann", "q"), candidate=True)
    starts.add(JobId("d"), Started(400.0, "d", "ann", "q"), candidate=True)
    starts.close(1000.0)
    assert (starts.earlier, starts.later, starts.same) == (2, 1, 1)
    assert [(each.name, each.seconds, each.complete) for each in starts.gains] == [("d", 600, False), ("b", 400, True)]
    assert [(each.name, each.seconds) for each in starts.losses] == [("a", -300)]


@pytest.mark.parametrize("candidate", [True, False])
def test_a_job_that_is_stopped_before_it_starts_counts_as_started_then(candidate: bool) -> None:
    starts = Starts(60.0)
    for job, started, ended in (("a", 97.0, 100.0), ("b", 10.0, 100.0), ("c", 103.0, 100.0)):
        starts.add(JobId(job), Started(started, job, "ann", "q"), candidate=candidate)
        starts.end(JobId(job), ended, candidate=not candidate)
    starts.end(JobId("a"), 500.0, candidate=candidate)
    starts.close(1000.0)
    moved = starts.gains if candidate else starts.losses
    assert [(each.name, abs(each.seconds), each.complete) for each in moved] == [("b", 90.0, False)]
    assert starts.same == 2 and starts.earlier + starts.later == 1


def test_the_largest_differences_are_kept_of_any_number() -> None:
    starts = Starts(0.0)
    for number in range(3000):
        job, seconds = JobId(f"j{number}"), float(number * 7919 % 3000 - 1500)
        starts.add(job, Started(0.0, job, "ann", "q"), candidate=True)
        starts.add(job, Started(seconds, job, "ann", "q"), candidate=False)
    assert [each.seconds for each in starts.gains] == [1499.0 - at for at in range(10)]
    assert [each.seconds for each in starts.losses] == [-1500.0 + at for at in range(10)]
    assert starts.earlier + starts.later + starts.same == 3000
