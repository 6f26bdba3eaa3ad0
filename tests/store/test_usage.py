"""The use of devices agrees with the attempts to the second, before and after jobs are removed."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.model.usage import DAY, By, Held, UsageRow, Use
from corral.store import Store
from tests.examples import examples
from tests.store.makers import ME, START, attempted, batch, ended, new_job

DAY_0 = START // DAY * DAY


class Made(NamedTuple):
    """An attempt of a test."""

    job: int
    started: float
    seconds: float
    millis: int
    code: int


MADE = st.builds(
    Made,
    st.integers(0, 3),
    st.floats(0, 3 * DAY).map(lambda at: DAY_0 + at),
    st.floats(0.5, 2 * DAY),
    st.sampled_from([0, 250, 1000, 4000]),
    st.sampled_from([0, 1, -210, -1003]),
)


async def lived(store: Store, made: list[Made]) -> tuple[list[str], int]:
    """Store four jobs of two users and queues with their attempts; returns the ids of the jobs and the epoch."""
    lease = await store.lead(ME)
    assert lease is not None
    jobs = [
        new_job(user="ann" if at % 2 else "bob", queue="q1" if at < 2 else "q2", tags=(f"t{at}",)) for at in range(4)
    ]
    for job in jobs:
        await store.submit(job)
    attempts = [
        attempted(
            jobs[each.job].id, index=at, user=jobs[each.job].user, node=f"local/n{at % 2}", started_at=each.started,
            ended_at=each.started + each.seconds, code=each.code, device_millis=each.millis,
        )
        for at, each in enumerate(made)
    ]  # fmt: skip
    last = max([each.started + each.seconds for each in made], default=START)
    await store.commit(batch(lease.epoch, attempts=tuple(attempts), jobs=tuple(ended(job, at=last) for job in jobs)))
    return [job.id for job in jobs], lease.epoch


def summed(found: list[UsageRow]) -> dict[str, tuple[float, ...]]:
    return {
        each.key: tuple(round(x, 3) for x in (each.device_seconds, each.lost_device_seconds, each.task_seconds))
        for each in found
    }


def expected(made: list[Made], begin: float, end: float, key: list[str]) -> dict[str, tuple[float, ...]]:
    sums: dict[str, Use] = {}
    for each in made:
        held = Held(each.started, each.started + each.seconds, each.millis, each.code)
        sums[key[each.job]] = sums.get(key[each.job], Use()).plus(held.within(begin, end))
    return {name: tuple(round(x, 3) for x in use) for name, use in sums.items() if use.task_seconds}


def near(one: dict[str, tuple[float, ...]], other: dict[str, tuple[float, ...]]) -> bool:
    return one.keys() == other.keys() and all(one[key] == pytest.approx(other[key], abs=0.01) for key in one)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MADE, max_size=12), st.floats(0, 3 * DAY), st.floats(0, 2 * DAY))
async def test_sums_agree_with_the_attempts(store: Store, made: list[Made], begin: float, length: float) -> None:
    begin += DAY_0
    ids, epoch = await lived(store, made)
    users, queues, tags = ["bob", "ann", "bob", "ann"], ["q1", "q1", "q2", "q2"], ["t0", "t1", "t2", "t3"]
    now = DAY_0 + 10 * DAY
    try:
        for by, keys in ((By.USER, users), (By.QUEUE, queues), (By.JOB, ids), (By.TAG, tags)):
            found = await store.usage_between(begin, begin + length, by, now=now)
            assert near(summed(found), expected(made, begin, begin + length, keys))
        whole = summed(await store.usage_between(DAY_0, now, By.USER, now=now))
        of_ann = await store.usage_between(DAY_0, now, By.QUEUE, now=now, user="ann")
        assert near(summed(of_ann), expected([each for each in made if each.job % 2], DAY_0, now, queues))
    finally:
        await store.commit(batch(epoch, removed_jobs=tuple(ids)))
    after = await store.usage_between(DAY_0, now, By.USER, now=now)
    kept = await store.usage_between(DAY_0, now, By.JOB, now=now)
    assert near(summed(after), whole)
    assert near({"": tuple(map(sum, zip(*whole.values(), strict=True)))} if whole else {}, summed(kept))
    await _forget(store)


async def _forget(store: Store) -> None:
    """Each example begins without the use of the one before."""
    from sqlalchemy import delete

    from corral.store import tables

    await store.write(lambda transaction: transaction.write(delete(tables.usage_days)))


async def test_what_runs_counts_up_to_now_and_what_never_started_not_at_all(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    runs = attempted(job.id, index=0, user="ann", node="local/n1", started_at=START + 10, device_millis=2000)
    waits = attempted(job.id, index=1, user="ann", node="local/n1", device_millis=2000)
    await store.commit(batch(lease.epoch, attempts=(runs, waits)))
    (row,) = await store.usage_between(START, START + 1000, By.NODE, now=START + 70)
    assert row == UsageRow("local/n1", "", 120.0, 0.0, 60.0)
    assert await store.usage_between(START - 100, START, By.NODE, now=START + 70) == []
    for strange in ("\0", "\ud800"):
        assert (
            await store.usage_between(START, START + 9, By.USER, now=START + 70, user=strange, queues=[strange]) == []
        )
    (named,) = await store.usage_between(START, START + 40, By.JOB, now=START + 70)
    assert (named.key, named.name, named.device_seconds) == (job.id, job.name, 60.0)
