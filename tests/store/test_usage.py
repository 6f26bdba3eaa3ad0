"""The use of devices agrees with the attempts to the second, before and after jobs are removed."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, text

from corral.kernel.ids import AttemptId, JobId
from corral.model.usage import DAY, GIB, By, Held, Measured, UsageRow, Use, Used
from corral.store import Store, tables
from corral.store.control_writes import _attempt_row
from corral.store.database_errors import LeadershipLost
from corral.store.job_writes import _job_row
from corral.store.writer import Transaction
from tests.examples import examples
from tests.store.makers import ME, START, attempted, batch, ended, new_job

DAY_0 = START // DAY * DAY
NOTHING = Used([], Use(), 0)


class Made(NamedTuple):
    """An attempt of a test."""

    job: int
    started: float
    seconds: float
    millis: int
    code: int
    model: str = ""
    cpu_millis: int = 0
    memory_bytes: int = 0
    measured: Measured = Measured()


MADE = st.builds(
    Made,
    st.integers(0, 3),
    st.floats(0, 3 * DAY).map(lambda at: DAY_0 + at),
    st.floats(0.5, 2 * DAY),
    st.sampled_from([0, 250, 1000, 4000]),
    st.sampled_from([0, 1, -210, -1003]),
    st.sampled_from(["", "h100", "a100"]),
    st.sampled_from([0, 500, 4000]),
    st.sampled_from([0, GIB // 2, 64 * GIB]),
    st.just(Measured()) | st.builds(Measured, *[st.floats(0, 1e5)] * 7),
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
            ended_at=each.started + each.seconds, code=each.code, device_millis=each.millis, model=each.model,
            cpu_millis=each.cpu_millis, memory_bytes=each.memory_bytes,
        )
        for at, each in enumerate(made)
    ]  # fmt: skip
    last = max([each.started + each.seconds for each in made], default=START)
    await store.commit(batch(lease.epoch, attempts=tuple(attempts), jobs=tuple(ended(job, at=last) for job in jobs)))
    measured = {attempt.id: each.measured for attempt, each in zip(attempts, made, strict=True) if any(each.measured)}
    for part in (Measured(1, 2, 3, 4, 5, 6, 7), Measured(-1, -2, -3, -4, -5, -6, -7)):  # amounts are added
        await store.add_measured(lease.epoch, {id_: each.plus(part) for id_, each in measured.items()})
    return [job.id for job in jobs], lease.epoch


def summed(found: list[UsageRow]) -> dict[str, tuple[float, ...]]:
    return {each.key: tuple(round(getattr(each, name), 3) for name in Use._fields) for each in found}


def expected(made: list[Made], begin: float, end: float, key: list[str] | None = None) -> dict[str, tuple[float, ...]]:
    """The sums of the attempts by the key of their job, by default by device model."""
    sums: dict[str, Use] = {}
    for each in made:
        name = each.model if key is None else key[each.job]
        last = each.started + each.seconds
        twice = each.measured.plus(each.measured)
        held = Held(each.started, last, each.millis, each.code, each.cpu_millis, each.memory_bytes, twice)
        sums[name] = sums.get(name, Use()).plus(held.within(begin, end))
    return {name: tuple(round(x, 3) for x in use) for name, use in sums.items() if use.task_seconds}


def added(sums: dict[str, tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*sums.values(), strict=True))) if sums else Use()


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
            found = (await store.usage_between(begin, begin + length, by, now=now)).rows
            assert near(summed(found), expected(made, begin, begin + length, keys))
        found, total, _ = await store.usage_between(begin, begin + length, By.MODEL, now=now)
        assert near(summed(found), expected(made, begin, begin + length))
        assert total == pytest.approx(added(expected(made, begin, begin + length)), abs=0.01)
        whole = summed((await store.usage_between(DAY_0, now, By.USER, now=now)).rows)
        of_ann = (await store.usage_between(DAY_0, now, By.QUEUE, now=now, user="ann")).rows
        assert near(summed(of_ann), expected([each for each in made if each.job % 2], DAY_0, now, queues))
    finally:
        await store.commit(batch(epoch, removed_jobs=tuple(ids)))
    after = (await store.usage_between(DAY_0, now, By.USER, now=now)).rows
    kept = (await store.usage_between(DAY_0, now, By.JOB, now=now)).rows
    assert near(summed(after), whole)
    assert near({"": added(whole)} if whole else {}, summed(kept))
    models = await store.usage_between(DAY_0, now, By.MODEL, now=now)
    assert near(summed(models.rows), expected(made, DAY_0, now))
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
    ((row,), total, count) = await store.usage_between(START, START + 1000, By.NODE, now=START + 70)
    assert (total, count) == (Use(120.0, 0.0, 60.0), 1)
    assert row == UsageRow("local/n1", "", 120.0, 0.0, 60.0)
    assert await store.usage_between(START - 100, START, By.NODE, now=START + 70) == NOTHING
    for strange in ("\0", "\ud800"):
        assert (
            await store.usage_between(START, START + 9, By.USER, now=START + 70, user=strange, queues=[strange])
            == NOTHING
        )
    (named,) = (await store.usage_between(START, START + 40, By.JOB, now=START + 70)).rows
    assert (named.key, named.name, named.device_seconds) == (job.id, job.name, 60.0)


async def test_only_what_is_stored_and_led_is_added_and_it_goes_with_its_job(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    runs = attempted(job.id, started_at=START, ended_at=START + 100, code=0)
    await store.commit(batch(lease.epoch, attempts=(runs,), jobs=(ended(job, at=START + 100),)))
    gone = AttemptId("0000000000000.0.worker.0.0")
    await store.add_measured(lease.epoch, {runs.id: Measured(100.0, 50.0, 200.0, 36e5), gone: Measured(1, 1, 1, 1)})
    with pytest.raises(LeadershipLost):
        await store.add_measured(lease.epoch + 1, {runs.id: Measured(1, 1, 1, 1)})
    (row,) = (await store.usage_between(START, START + 50, By.USER, now=START + 200)).rows
    used = row.measured_task_seconds, row.used_cpu_seconds, row.used_memory_gib_seconds, row.energy_joules
    assert used == (50.0, 25.0, 100.0, 18e5)
    rows = "SELECT count(*) FROM attempt_use"
    assert await store.read(lambda connection: connection.execute(text(rows)).scalar()) == 1
    await store.commit(batch(lease.epoch, removed_jobs=(job.id,)))
    assert await store.read(lambda connection: connection.execute(text(rows)).scalar()) == 0
    days = await store.usage_between(START // DAY * DAY, START + DAY, By.MODEL, now=START + DAY)
    assert (days.total.used_cpu_seconds, days.total.energy_joules) == pytest.approx((50.0, 36e5))


async def test_what_devices_idle_counts_as_wasted_once_where_their_attempt_came_to_nothing(store: Store) -> None:
    both = Measured(90.0, device_seconds=90.0, used_device_seconds=30.0, idle_device_seconds=60.0)
    done = Made(0, DAY_0, 100.0, 1000, 0, "h100", measured=both)
    (job, *_), epoch = await lived(store, [done, done._replace(code=1)])
    now = DAY_0 + DAY
    (row,) = (await store.usage_between(DAY_0, now, By.JOB, now=now)).rows
    assert row.key == job and (row.device_seconds, row.lost_device_seconds) == (200.0, 100.0)
    assert row.measured_device_seconds == pytest.approx(360.0)  # each is stored twice
    assert (row.used_device_seconds, row.idle_device_seconds) == pytest.approx((120.0, 120.0))
    await store.commit(batch(epoch, removed_jobs=(JobId(job),)))
    days = (await store.usage_between(DAY_0, now, By.MODEL, now=now)).total
    assert (days.used_device_seconds, days.idle_device_seconds) == pytest.approx((120.0, 120.0))


async def test_a_report_by_job_holds_no_more_rows_than_it_shows(store: Store) -> None:
    many, shown = 20_000, 100
    jobs = [_job_row(new_job(name=f"job-of-some-length-{at}")) for at in range(many)]
    attempts = [_attempt_row(attempted(JobId(str(row["id"])), started_at=START, ended_at=START + 1 + at,
        device_millis=1000)) for at, row in enumerate(jobs)]  # fmt: skip

    def add(transaction: Transaction) -> None:
        for part in range(0, many, 1000):
            transaction.write(insert(tables.jobs), jobs[part : part + 1000])
            transaction.write(insert(tables.attempts), attempts[part : part + 1000])

    await store.write(add)
    wanted = {str(row["id"]) for row in jobs[-shown:]}
    await store.usage_between(START, START + DAY, By.USER, now=START + DAY)
    tracemalloc.start()
    try:
        found = await store.usage_between(START, START + many, By.JOB, now=START + many, most=shown)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {row.key for row in found.rows} == wanted and found.row_count == many
    assert found.rows[0].device_seconds == many
    assert found.total.device_seconds == pytest.approx(many * (many + 1) / 2 - 1e-6, rel=1e-9)
    assert peak < 2 * 1024**2  # all rows would take 8 MB


async def test_an_attempt_keeps_the_model_of_its_devices_when_its_node_is_gone(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    began = attempted(job.id, started_at=START, device_millis=1000, model="h100")
    await store.commit(batch(lease.epoch, attempts=(began,)))
    over = attempted(job.id, started_at=START, ended_at=START + 5, code=0, device_millis=1000)
    await store.commit(batch(lease.epoch, attempts=(over,)))
    (row,) = (await store.usage_between(START, START + 9, By.MODEL, now=START + 9)).rows
    assert (row.key, row.device_seconds) == ("h100", 5.0)


async def test_groups_by_queue_and_model_add_up_to_the_rows(store: Store) -> None:
    made = [Made(0, DAY_0, 10.0, 1000, 0, "h100"), Made(2, DAY_0, 20.0, 1000, 0, "a100"), Made(2, DAY_0, 5.0, 0, 0)]
    await lived(store, made)
    now = DAY_0 + DAY
    groups = await store.usage_groups(DAY_0, now, By.USER, now=now, keys=["bob", "ann"])
    assert {(each.key, each.queue, each.model, each.use.device_seconds) for each in groups} == {
        ("bob", "q1", "h100", 10.0), ("bob", "q2", "a100", 20.0), ("bob", "q2", "", 0.0)
    }  # fmt: skip
    whole = await store.usage_groups(DAY_0, now, By.USER, now=now)
    assert {(each.key, each.queue, each.model) for each in whole} == {
        ("", "q1", "h100"), ("", "q2", "a100"), ("", "q2", "")
    }  # fmt: skip
