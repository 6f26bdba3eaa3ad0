"""Estimates of starts are completed with what came true, and forgotten when they are old or too many."""

from __future__ import annotations

import pytest

from corral.model.estimates import KEPT_SECONDS, GivenEstimate, LivedEstimate
from corral.store import Store, estimate_records
from tests.store.makers import ME, START, batch, ended, new_job, told


def given(job: str, at: float = START, queue: str = "research") -> GivenEstimate:
    return GivenEstimate(job, queue, at, "7", 86400.0, 5, 10.0, 20.0, None, (15.0, 20.0, None))


async def test_the_first_start_after_an_estimate_completes_it(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job, other = new_job(), new_job()
    await store.submit(job)
    await store.submit(other)
    first, second, waits = given(job.id), given(job.id, START + 100), given(other.id, START + 50)
    await store.add_estimates([first, second, waits])
    assert await store.open_estimates() == {job.id: START + 100, other.id: START + 50}
    starts = [told(job.id, "job.started", START + at) for at in (-10, 60, 160, 300)]
    await store.commit(batch(lease.epoch, facts=(*starts, told(job.id, "job.preempted", START + 70))))
    assert await store.complete_estimates(START + 400) == 2
    assert await store.complete_estimates(START + 500) == 0
    assert await store.estimates(START) == [
        LivedEstimate(first, started=START + 60),
        LivedEstimate(waits),
        LivedEstimate(second, started=START + 160),
    ]
    assert await store.open_estimates() == {other.id: START + 50}


async def test_jobs_that_end_or_go_without_a_start_are_told_apart(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    stopped, ran = new_job(), new_job()
    for job in (stopped, ran):
        await store.submit(job)
    await store.add_estimates([given(stopped.id), given(ran.id), given("gone")])
    over = (ended(stopped, at=START + 30), ended(ran, at=START + 40))
    await store.commit(batch(lease.epoch, jobs=over, facts=(told(ran.id, "job.started", START + 5),)))
    assert await store.complete_estimates(START + 400) == 3
    came = {each.given.job: (each.started, each.ended) for each in await store.estimates(0.0)}
    assert came == {stopped.id: (None, START + 30), ran.id: (START + 5, None), "gone": (None, START + 400)}


async def test_estimates_are_listed_by_time_and_queue(store: Store) -> None:
    await store.add_estimates([given("a"), given("b", START + 5, "vision"), given("c", START + 9)])
    assert [each.given.job for each in await store.estimates(START + 5)] == ["b", "c"]
    assert [each.given.job for each in await store.estimates(START, ["research"])] == ["a", "c"]
    assert await store.estimates(START, []) == []


async def test_old_estimates_and_those_beyond_the_bound_are_deleted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate_records, "MOST_KEPT", 3)
    await store.add_estimates([given(f"job-{number}", START + number) for number in range(5)])
    await store.forget_estimates(START + 10)
    assert sorted(await store.open_estimates()) == ["job-2", "job-3", "job-4"]
    await store.forget_estimates(START + 4 + KEPT_SECONDS)
    assert sorted(await store.open_estimates()) == ["job-4"]
