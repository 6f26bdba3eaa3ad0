"""Given estimates are stored beside the loop: the first of a job, then one an hour, with what came true."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from corral.control.estimates import keeper
from corral.control.estimates.given import given_in
from corral.control.estimates.keeper import EstimateKeeper
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Unavailable
from corral.model.estimates import GivenEstimate, LivedEstimate
from corral.model.what_if import Course, Courses, Known, WaitingJob

START = 1_700_000_000.0


class Records:
    """Estimates in memory; a store that may fail."""

    def __init__(self) -> None:
        self.stored: list[GivenEstimate] = []
        self.open: dict[str, float] = {}
        self.came = 0
        self.fails = False
        self.forgotten: list[float] = []
        self.lived: list[LivedEstimate] = []

    async def add_estimates(self, given: Sequence[GivenEstimate]) -> None:
        if self.fails:
            raise Unavailable("store-down", "The store does not answer.")
        self.stored += given
        self.open |= {each.job: each.at for each in given}

    async def open_estimates(self) -> dict[str, float]:
        return dict(self.open)

    async def latest_starts(self, limit: int) -> list[LivedEstimate]:
        return self.lived

    async def complete_estimates(self, now: float) -> int:
        return self.came

    async def forget_estimates(self, now: float) -> None:
        self.forgotten.append(now)


def given(job: str, at: float) -> GivenEstimate:
    return GivenEstimate(job, "research", at, "7", 86400.0, 5, 10.0, 20.0, 30.0)


def test_courses_give_quantiles_of_the_jobs_that_wait() -> None:
    def course(**starts: float) -> Course:
        return Course(starts, {}, Known(), [], [], 4, [])

    jobs = (WaitingJob("a", "a", "ann", "research", 1.0, 5.0), WaitingJob("new", "new", "ann", "lab", 1.0, 0.0, True))
    before = (course(a=30.0, new=1.0), course(a=10.0), course())
    (found,) = given_in(Courses(START, 7, jobs, before, before, "7"), 3600.0)
    assert found == GivenEstimate("a", "research", START, "7", 3600.0, 3, 10.0, 30.0, None, (10.0, 30.0, None))


async def test_one_estimate_an_hour_is_stored_of_each_job() -> None:
    records, clock = Records(), VirtualClock(START)
    kept = EstimateKeeper(records, clock)
    for at in (0, 5, 3599, 3600, 7000):
        kept.given([given("a", START + at)])
    kept.given([given("b", START + 7000)])
    await kept.keep()
    await kept.keep()
    assert [(each.job, each.at - START) for each in records.stored] == [("a", 0), ("a", 3600), ("b", 7000)]


async def test_nothing_is_lost_while_the_store_does_not_answer() -> None:
    records, clock = Records(), VirtualClock(START)
    kept = EstimateKeeper(records, clock)
    kept.given([given("a", START)])
    records.fails = True
    with pytest.raises(Unavailable):
        await kept.keep()
    records.fails = False
    await kept.keep()
    assert [each.job for each in records.stored] == ["a"]


async def test_what_waits_to_be_stored_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_MOST_PENDING", 3)
    records = Records()
    kept = EstimateKeeper(records, VirtualClock(START))
    kept.given(given(str(number), START) for number in range(9))
    await kept.keep()
    assert [each.job for each in records.stored] == ["0", "1", "2"]


async def test_jobs_that_have_started_are_forgotten_and_may_be_estimated_again() -> None:
    records, clock = Records(), VirtualClock(START)
    kept = EstimateKeeper(records, clock)
    kept.given([given("a", START)])
    await kept.keep()
    records.open, records.came = {}, 1
    await kept.keep()
    kept.given([given("a", START + 60)])
    await kept.keep()
    assert [each.at - START for each in records.stored] == [0, 60]


async def test_what_came_true_corrects_the_next_estimates() -> None:
    records = Records()
    kept = EstimateKeeper(records, VirtualClock(START))
    told = (40.0, 140.0, 340.0)
    records.lived = [
        LivedEstimate(GivenEstimate("a", "research", START, "7", 3600.0, 5, *told, told), START + 340)
        for _ in range(20)
    ]
    records.came = 1
    await kept.keep()
    assert kept.correction.applied(told) == pytest.approx((340.0, 340.0, 340.0))


async def test_after_a_restart_the_stored_ones_count_and_old_ones_go_once_an_hour() -> None:
    records, clock = Records(), VirtualClock(START)
    records.open = {"a": START - 60}
    kept, ready = EstimateKeeper(records, clock), asyncio.Event()
    running = asyncio.create_task(kept.run(ready))
    ready.set()
    while not records.forgotten:
        await asyncio.sleep(0)
    kept.given([given("a", START)])
    await kept.keep()
    assert records.stored == [] and len(records.forgotten) == 1
    running.cancel()
