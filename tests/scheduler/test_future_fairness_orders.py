"""The order `shockwave`: forecasts by hand, what it prefers, how long it follows a decision; joint orders of packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler import (
    Cluster,
    History,
    HistoryRecalled,
    JobHistory,
    Policy,
    Regime,
    WorkReported,
    find_policy,
    find_preempt,
)
from corral.scheduler.policy.contention import Contention
from corral.scheduler.policy.faults import CheckedJointOrder
from corral.scheduler.policy.future_fairness import FutureFairness
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.regime_estimate import predicted_seconds
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

ORDER = FutureFairness()


def test_the_number_of_jobs_is_a_mean_over_the_time_since() -> None:
    jobs = Contention()
    assert jobs.mean(0.0, 10.0) == 0.0
    for at, count in ((0.0, 2), (10.0, 4), (10.0, 6), (20.0, 6), (30.0, 0)):
        jobs.note(count, at)
    assert jobs.mean(0.0, 30.0) == pytest.approx((2 * 10 + 6 * 20) / 30)
    assert jobs.mean(5.0, 15.0) == pytest.approx(4.0)
    assert jobs.mean(-100.0, 10.0) == 2.0, "before the first note nothing is known"
    assert jobs.mean(30.0, 40.0) == 0.0
    assert jobs.mean(40.0, 40.0) == 0.0
    for at in range(31, 6000):
        jobs.note(at % 2, float(at))
    assert jobs.mean(3000.0, 5999.0) == pytest.approx(0.5, abs=0.01), "old steps are thinned out"


def known(service: float, progress: float | None, *regimes: Regime) -> JobHistory:
    return JobHistory(service, service, 1, progress, regimes=regimes)


def test_remaining_work_is_predicted_by_the_regimes_so_far() -> None:
    """Two regimes take half of the work each, before they are seen; .3 and .1 done make that .8 / 1.4 and .6 / 1.4.

    So .271 and .329 are left, at 1,000 and 500 s for all of the work.
    """
    job = gang("job", max_duration_seconds=5000)
    assert predicted_seconds(job, known(300.0, 0.3, Regime(16.0, 0.3, 300.0)), 60.0) == pytest.approx(700.0)
    two = known(350.0, 0.4, Regime(16.0, 0.3, 300.0), Regime(32.0, 0.1, 50.0))
    assert predicted_seconds(job, two, 60.0) == pytest.approx((0.8 / 1.4 - 0.3) * 1000 + (0.6 / 1.4 - 0.1) * 500)
    assert predicted_seconds(job, two._replace(service_seconds=400.0), 60.0) == pytest.approx(385.714, abs=0.001)
    assert predicted_seconds(job, known(2000.0, None), 60.0) == 3000.0, "what it declares"
    assert predicted_seconds(gang("job"), known(20.0, None), 60.0) == 40.0
    assert predicted_seconds(gang("job"), known(200.0, None), 60.0) == 200.0
    assert predicted_seconds(job, known(9000.0, 1.0, Regime(16.0, 1.0, 8000.0)), 60.0) == 1.0


def test_history_tells_regimes_apart_and_keeps_them() -> None:
    found, job = History(), JobId("job")
    found.holds(job, 1000, 0.0)
    for at, progress, size in ((100.0, 0.2, 16.0), (150.0, 0.2, 16.0), (200.0, 0.3, 32.0), (300.0, 0.25, 16.0)):
        found.report(WorkReported(job, at, progress, batch_size=size), (1, 1))
    regimes = found.of(job, 300.0).regimes
    assert [(each.batch_size, each.seconds) for each in regimes] == [(16.0, 200.0), (32.0, 100.0)]
    assert [each.progress for each in regimes] == pytest.approx([0.15, 0.1])
    served = found.served(job)
    assert served is not None
    again = History()
    again.recall(job, served)
    assert again.of(job, 300.0).regimes == regimes
    other = Cluster()
    other.apply(HistoryRecalled(job, served))
    assert other.history.of(job, 300.0).regimes == regimes


def test_rho_by_hand() -> None:
    """Four devices and eight jobs, of which there were four for the first half: the mean is 6, and counts 0.9."""
    history = History()
    history.contention.note(4, 0.0)
    history.contention.note(8, 500.0)
    found = ORDER.forecast(gang("job", max_duration_seconds=2000), 4.0, 8, history, 1000.0)
    assert (found.age, found.left, found.share) == (1000.0, 2000.0, 0.5)
    assert found.fair == pytest.approx(2000 * (0.9 * 6 + 0.1 * 8) / 4)
    assert found.rho == pytest.approx((1000 + 2000 / 0.5) / 3100)


def keys(history: History, gangs: Sequence[GangRequest], devices: float, now: float) -> list[str]:
    history.contention.note(len(gangs), now)
    history.prepared = ORDER.prepare(gangs, devices, history, now)
    return [each.job for each in sorted(gangs, key=lambda each: ORDER.key(each, history, now))]


def test_the_makespan_comes_first_then_short_and_late_jobs() -> None:
    jobs = [
        gang("longest", max_duration_seconds=20_000),
        gang("middle", max_duration_seconds=2000),
        gang("short", max_duration_seconds=300),
        gang("unknown"),
    ]
    assert keys(History(), jobs, 4.0, 0.0) == ["longest", "short", "unknown", "middle"]
    assert keys(History(), [*jobs, gang("late", at=-30_000.0, max_duration_seconds=2000)], 4.0, 0.0)[:2] == [
        "longest", "short",
    ]  # fmt: skip
    assert keys(History(), jobs[1:], 1.0, 0.0) == ["short", "unknown", "middle"], (
        "work bounds the makespan on one device"
    )


def test_a_decision_is_followed_for_a_round_or_until_jobs_come_or_go() -> None:
    history, first = History(), [gang("a", max_duration_seconds=500), gang("b", max_duration_seconds=400)]
    begun = history.prepared = ORDER.prepare(first, 1.0, history, 0.0)
    assert ORDER.prepare(first, 1.0, history, 959.0) is begun
    assert ORDER.prepare(first, 1.0, history, 960.0) is not begun
    more = [*first, gang("c", max_duration_seconds=100, at=50.0)]
    assert ORDER.prepare(more, 1.0, history, 119.0) is begun
    assert ORDER.key(more[2], history, 119.0) > max(ORDER.key(each, history, 119.0) for each in first)
    history.prepared = ORDER.prepare(more, 1.0, history, 120.0)
    assert ORDER.key(more[2], history, 120.0) < min(ORDER.key(each, history, 120.0) for each in first)


def test_a_question_does_not_change_the_decision() -> None:
    policy = replace(find_policy("shockwave"), preempt=find_preempt("order"))
    life = Life([node("n1")], policy=policy)
    life.submit(*(gang(f"job-{number}", role(1, 4), max_duration_seconds=1000 + number) for number in range(4)))
    life.cycle(at=0.0)
    decided = life.cluster.history.prepared
    assert decided is not None
    assert life.planner.explain(JobId("job-3"), 5000.0) is not None
    assert life.cluster.history.prepared is decided
    life.cycle(at=5000.0)
    assert life.cluster.history.prepared is not decided


@dataclass(frozen=True)
class ByNumber:
    """An order of a package that looks at all gangs together: an odd number of them goes backwards."""

    fails: bool = False
    changes_with_time = True

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        if self.fails:
            raise LookupError("no market today")
        return -1.0 if len(gangs) % 2 else 1.0

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        sign = history.prepared if isinstance(history.prepared, float) else 1.0
        return (sign * gang.submitted_at, gang.submitted_at)


@pytest.mark.parametrize(("jobs", "first"), [(2, "job-0"), (3, "job-2")])
def test_an_installed_order_sees_all_gangs_together(jobs: int, first: str) -> None:
    life = Life([node("n1")], policy=Policy("all", CheckedJointOrder("all", ByNumber(), True)))
    life.submit(*(gang(f"job-{number}", role(1, 4), at=float(number)) for number in range(jobs)))
    found = life.cycle(at=10.0)
    assert [each.job for each in found.placements][:1] == [first]


def test_a_joint_order_that_fails_is_replaced_by_the_default_one() -> None:
    life = Life([node("n1")], policy=Policy("all", CheckedJointOrder("all", ByNumber(fails=True), True)))
    life.submit(gang("job-0", role(1, 4), at=1.0))
    found = life.cycle(at=10.0)
    assert [each.job for each in found.placements] == ["job-0"]
    assert [(each.part, each.message) for each in found.faults] == [("order", "raised LookupError: no market today")]
