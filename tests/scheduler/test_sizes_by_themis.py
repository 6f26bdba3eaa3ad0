"""T3 and T5 of scheduling.md, for elastic jobs: leases end, newcomers start, and no device is idle that a job can use."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.scheduler import Policy, WorkReported
from corral.scheduler.policy.goodput import Size, StepTime, fit
from corral.scheduler.policy.themis_sizes import ThemisSizes
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

LEASE = 600.0
THEMIS = Policy("themis", preemption=True, allot=ThemisSizes(lease_seconds=LEASE))


def three_jobs(policy: Policy = THEMIS) -> Life:
    life = Life([node("n1", devices=8), node("n2", devices=8)], policy=policy)
    for name in ("a", "b", "c"):
        life.submit(gang(name, role(16, minimum=1)))
    life.settle(0.0)
    return life


def test_t5_no_device_is_idle_that_a_job_can_use() -> None:
    life = three_jobs()
    for now in (1.0, LEASE + 1, 2 * LEASE + 2):
        life.settle(now)
        assert sum(life.sizes().values()) == 16


def test_t3_a_newcomer_on_full_machines_starts_within_a_lease() -> None:
    life = three_jobs()
    life.settle(1.0)
    life.submit(gang("new", role(16, minimum=2), at=100.0))
    life.settle(100.0)
    assert "new" in life.running, "spare tasks yield to what waits, as under every policy"
    life.settle(100.0 + LEASE)
    assert life.sizes()["new"] >= 2


def test_a_size_is_kept_for_a_lease_and_then_auctioned_again() -> None:
    life = three_jobs()
    life.settle(1.0)
    before = life.sizes()
    life.settle(LEASE / 2)
    assert life.sizes() == before
    smallest = min(before, key=lambda each: before[each])
    for name in before:  # the smallest job has nearly all its work before it, the others have nearly finished
        life.planner.fold(WorkReported(JobId(name), LEASE - 1, 0.01 if name == smallest else 0.99))
    for lease in (1, 2):
        life.settle(lease * LEASE + lease)
    assert life.sizes()[smallest] > before[smallest] and sum(life.sizes().values()) == 16


def test_the_job_that_was_treated_worst_gets_most_of_what_is_auctioned() -> None:
    life = Life(
        [node("n1", devices=8)], policy=Policy("themis", preemption=True, allot=ThemisSizes(lease_seconds=60.0))
    )
    life.submit(gang("late", role(8, minimum=1), at=-5000.0), gang("early", role(8, minimum=1), at=0.0))
    life.settle(0.0)
    for now in (61.0, 122.0, 183.0):
        for name in ("late", "early"):
            life.planner.fold(WorkReported(JobId(name), now, 0.1))
        life.settle(now)
    assert life.sizes()["late"] > life.sizes()["early"] >= 1


def test_without_an_elastic_job_no_later_plan_is_due() -> None:
    life = three_jobs()
    assert life.cycle(1.0).again_at is not None, "leases end with time"
    life.end("a", "b", "c")
    assert life.cycle(2.0).again_at is None
    assert life.cycle(3.0).again_at is None


def test_a_job_bids_by_the_throughput_that_it_declares() -> None:
    part = ThemisSizes(fairness=0.0, lease_seconds=60.0)
    life = Life([node("n1", devices=16)], policy=Policy("themis", preemption=True, allot=part))
    flat, scales = (
        tuple((size, 1, speed) for size, speed in of) for of in (((1, 1.0), (16, 1.1)), ((1, 1.0), (16, 16.0)))
    )
    declared = {"flat": flat, "scales": scales}
    life.submit(*(gang(name, role(16, minimum=1), scaling=profile) for name, profile in declared.items()))
    life.settle(0.0)
    for now in (61.0, 122.0):
        life.settle(now)
    sizes = life.sizes()
    assert sizes["scales"] > sizes["flat"] >= 1 and sum(sizes.values()) == 16


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=6),
    st.floats(0.0, 1.0),
    st.floats(0.0, 5000.0),
)
def test_targets_are_possible_and_no_more_than_there_is(
    jobs: list[tuple[int, int, int]], fairness: float, now: float
) -> None:
    life = Life([node("n1", devices=8), node("n2", devices=8)])
    for number, (least, more, devices) in enumerate(jobs):
        life.submit(gang(f"job{number}", role(least + more, devices, minimum=least), at=-100.0 * number))
    life.planner.policy = Policy("themis", preemption=True, allot=ThemisSizes(fairness, 60.0))
    life.settle(now)
    life.settle(now + 61.0)
    assert sum(life.sizes().values()) <= 16


@pytest.mark.parametrize("fairness", [0.0, 0.8, 1.0])
def test_every_filter_leaves_each_running_job_its_smallest_size(fairness: float) -> None:
    life = three_jobs(Policy("themis", preemption=True, allot=ThemisSizes(fairness, LEASE)))
    for now in (LEASE + 1, 2 * LEASE + 2):
        life.settle(now)
        assert min(life.sizes().values()) >= 1 and sum(life.sizes().values()) == 16


def test_a_profile_is_fitted_once_for_all_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []

    def count(throughput: Mapping[Size, float]) -> StepTime | None:
        fitted.append(throughput)
        return fit(throughput)

    monkeypatch.setattr("corral.scheduler.policy.themis_sizes.fit", count)
    life = Life([node("n1", devices=8)], policy=THEMIS)
    profile = ((1, 1, 1.25), (2, 1, 2.5), (8, 1, 3.75))
    life.submit(*(gang(name, role(8, minimum=1), scaling=profile) for name in ("a", "b", "c")))
    life.settle(0.0)
    life.settle(LEASE + 1)
    assert len(fitted) == 1
    life.planner.fold(WorkReported(JobId("a"), 2 * LEASE, throughput=2.0))
    life.settle(2 * LEASE + 2)
    assert len(fitted) == 2 and fitted[-1] != fitted[0], "one job reported something of its own"
