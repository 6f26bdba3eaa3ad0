"""Each order plays a small trace to its end: who runs when, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corral.scheduler import Policy, find_place, find_policy, find_preempt, with_part
from corral.sim.comparison import Question
from corral.sim.machines import plain_site
from corral.sim.results import JobResult
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob


def preemptive(name: str) -> Policy:
    return replace(find_policy(name), preempt=find_preempt("order"), consolidation=False, review_seconds=60.0)


def played(policy: Policy, *jobs: TraceJob, told: bool = True) -> dict[str, JobResult]:
    """The results by job, on one node with four devices."""
    site = plain_site("1x4")
    assert site is not None
    return {each.name: each for each in Simulation(jobs, site, policy, Knobs(told=told)).run().jobs}


def test_gittins_learns_from_ended_jobs_who_is_near_the_end() -> None:
    """36 jobs need 400 device-seconds and 4 need 4,000, one after the other; then a long job meets two short ones.

    A new job costs 444 device-seconds per end. The long job yields at 448, when most jobs are over and 3,552 are left.
    After 3,584 it needs 416 more, and is not interrupted again.
    """
    past = [
        TraceJob(f"past-{number}", number * 2000.0, 1000.0 if number % 10 == 9 else 100.0, 4) for number in range(40)
    ]
    begin = 100_000.0
    jobs = (
        TraceJob("long", begin, 1000.0, 4),
        TraceJob("early", begin + 50.0, 100.0, 4),
        TraceJob("late", begin + 1050.0, 100.0, 4),
    )
    found = played(preemptive("gittins"), *past, *jobs, told=False)
    early, long, late = (found[name] for name in ("early", "long", "late"))
    assert (early.started, early.ended) == pytest.approx((begin + 112.0, begin + 212.0), abs=0.01)
    assert (long.interruptions, late.interruptions) == (1, 0)
    assert (long.ended, late.started) == pytest.approx((begin + 1100.0, begin + 1100.0), abs=0.01)
    unlearned = played(preemptive("gittins"), *jobs, told=False)
    assert unlearned["long"].interruptions == 0, "before jobs are over it is LAS, whose level ends at 57,600"


def test_finish_time_fairness_bounds_the_slowdown_of_short_jobs() -> None:
    """A short job waits half its time, a middle one a fourth; by arrival they wait for the end of the long one."""
    jobs = (
        TraceJob("long", 0.0, 10_000.0, 4),
        TraceJob("short", 10.0, 100.0, 4),
        TraceJob("middle", 200.0, 1_000.0, 4),
    )
    found = played(preemptive("finish-time-fairness"), *jobs)
    assert found["short"].started == pytest.approx(60.0), "after the first minute of the long one"
    assert found["middle"].started == pytest.approx(500.0, abs=60.0)
    assert max((each.ended - each.submitted) / each.seconds for each in found.values()) < 1.6
    by_arrival = played(find_policy("fifo"), *jobs)
    assert max((each.ended - each.submitted) / each.seconds for each in by_arrival.values()) > 100


SIZES = (
    TraceJob("all", 0.0, 100.0, 4),
    TraceJob("one", 10.0, 50.0, 1),
    TraceJob("four", 20.0, 60.0, 4),
    TraceJob("two", 30.0, 70.0, 2),
)


@pytest.mark.parametrize(
    ("name", "one", "four", "two"),
    [("smallest-first", 100.0, 170.0, 100.0), ("largest-first", 160.0, 100.0, 160.0), ("fifo", 100.0, 150.0, 210.0)],
)
def test_jobs_start_by_their_size(name: str, one: float, four: float, two: float) -> None:
    found = played(find_policy(name), *SIZES)
    assert [found[job].started for job in ("one", "four", "two")] == [one, four, two]


def test_a_random_order_is_not_that_of_arrival_and_is_the_same_each_time() -> None:
    jobs = [TraceJob(f"job-{number}", float(number), 100.0, 4) for number in range(12)]
    once, again = (
        {name: each.started for name, each in played(find_policy("random"), *jobs).items()} for _ in range(2)
    )
    assert once == again
    assert sorted(once.values()) == [100.0 * number for number in range(12)]
    assert sorted(once, key=once.__getitem__) != list(once)


def test_parts_are_named_beside_the_policy() -> None:
    site = plain_site("1x4")
    assert site is not None
    rules = Question(Path("trace.csv"), "1x4", "fifo+best-fit+order", Knobs()).rules(site)
    assert rules.name == "fifo+best-fit+order" and rules.preemption
    assert (rules.place, rules.preempt) == (find_place("best-fit"), find_preempt("order"))


def test_a_place_part_decides_where_the_jobs_of_a_trace_run() -> None:
    """A job of one device fills the first node, or by a hash breaks the second, so that a job of four waits."""
    site = plain_site("2x4")
    assert site is not None
    jobs = [TraceJob("three", 0.0, 1000.0, 3), TraceJob("one", 1.0, 1000.0, 1), TraceJob("four", 2.0, 100.0, 4)]
    found = [
        {job.name: job.started for job in Simulation(jobs, site, policy, Knobs()).run().jobs}["four"]
        for policy in (with_part(find_policy("fifo"), name) for name in ("tightest", "best-fit", "random-fit"))
    ]
    assert found[:2] == pytest.approx([2.0, 2.0], abs=1.0)
    assert found[2] == pytest.approx(2.0, abs=1.0) or found[2] == pytest.approx(1000.0, abs=2.0)
