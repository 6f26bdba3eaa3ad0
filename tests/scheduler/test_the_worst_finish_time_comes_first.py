"""The order `finish-time-fairness`: rho by hand and by its definition, that it grows with the wait, and how it preempts."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler import History, WorkReported, find_policy, find_preempt
from corral.scheduler.policy.finish_time_fairness import FinishTimeFairness
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

ORDER = FinishTimeFairness()


def history(**received: float) -> History:
    """Jobs that held one device for so many seconds, and hold nothing now."""
    found = History()
    for job, seconds in received.items():
        found.holds(JobId(job), 1000, 0.0)
        found.released(JobId(job), 0, seconds, wholly=True)
    return found


def job(name: str, seconds: int, at: float = 0.0) -> GangRequest:
    """A job of one task that declares a duration."""
    return gang(name, role(1, 4), max_duration_seconds=seconds, at=at)


def test_rho_of_five_jobs_by_hand() -> None:
    """At 1,000 s: rho is 1 + waited / needed."""
    known = history(resumed=200.0, reports=300.0)
    known.report(WorkReported(JobId("reports"), 900.0, 0.25), (1, 1))
    jobs = {
        "unknown": (job("unknown", 0), 1 + 1000 / 3600),
        "reports": (job("reports", 9000), 1 + 700 / 1200),
        "short": (job("short", 100, 900.0), 2.0),
        "long": (job("long", 1000), 2.0),
        "resumed": (job("resumed", 400), 3.0),
    }
    for each, rho in jobs.values():
        assert ORDER.rho(each, known, 1000.0) == pytest.approx(rho)
    gangs = [each for each, _ in jobs.values()]
    assert [each.job for each in sorted(gangs, key=lambda each: ORDER.key(each, known, 1000.0))] == [
        "resumed", "long", "short", "reports", "unknown",
    ]  # fmt: skip


SECONDS = st.floats(0.0, 1e6)


@settings(max_examples=examples(200))
@given(st.integers(1, 10**6), SECONDS, SECONDS)
def test_rho_is_the_finish_time_from_now_on_over_the_time_alone(declared: int, received: float, waited: float) -> None:
    received = min(received, float(declared))
    now, remaining = received + waited, declared - received
    found = ORDER.rho(job("job", declared), history(job=received), now)
    assert found == pytest.approx((now + remaining) / (received + remaining))


@settings(max_examples=examples(200))
@given(st.integers(1, 10**6), st.integers(0, 10**6), st.floats(0.0, 1e6), st.floats(0.26, 1e3))
def test_a_job_that_waited_a_quarter_of_its_time_is_before_every_new_one(
    declared: int, others: int, received: float, part: float
) -> None:
    received = min(received, float(declared))
    now = received + declared * part
    known = history(old=received)
    assert ORDER.key(job("old", declared), known, now) < ORDER.key(job("new", others, now), known, now)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), min_size=2, max_size=6, unique=True))
def test_jobs_with_equal_needs_go_by_submission(declared: int, at: list[int]) -> None:
    gangs = [job(f"job-{each}", declared, float(each)) for each in at]
    ordered = sorted(gangs, key=lambda each: ORDER.key(each, History(), 2e6))
    assert [each.submitted_at for each in ordered] == sorted(map(float, at))


def test_two_jobs_share_by_turns_that_become_longer() -> None:
    """Each needs 1,000 s. The second one begins at rho 1.25, and the first one goes on at rho 1.5."""
    life = Life([node("n1")], policy=replace(find_policy("finish-time-fairness"), preempt=find_preempt("order")))
    life.submit(job("first", 1000))
    life.settle(0.0)
    life.submit(job("second", 1000))
    begun = list[float]()
    for minute in range(1, 17):
        life.settle(60.0 * minute)
        if len(life.receipts) > len(begun):
            begun.append(60.0 * minute)
    assert life.rules() == [("first", Rule.ORDER), ("second", Rule.ORDER)]
    assert begun == [300.0, 840.0], "waited 300 of 250, then 540 of 500"


def test_the_rho_of_a_running_job_falls_only_where_its_estimate_grows() -> None:
    life = Life([node("n1", 12)], policy=find_policy("finish-time-fairness"))
    gangs = job("declared", 10_000), job("reports", 10_000), job("unknown", 0)
    life.submit(*gangs)
    life.cycle(100.0)
    life.planner.fold(WorkReported(JobId("reports"), 100.0, 0.5))
    known = life.cluster.history
    assert [ORDER.moves_back_at(each, known, 200.0) for each in gangs] == [inf, 260.0, 1900.0]
    assert ORDER.moves_back_at(gangs[2], known, 5000.0) == 5060.0
    for each, moves_at in zip(gangs, (9000.0, 260.0, 1900.0), strict=True):
        assert ORDER.rho(each, known, moves_at) == pytest.approx(ORDER.rho(each, known, moves_at - 50.0), rel=0.2)
