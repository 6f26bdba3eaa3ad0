"""What counts for a budget: what was held in the window, and what live jobs may still hold in it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite, QueueRecord
from corral.model.budgets import Budget, Standing, TopUp, family, window_of
from corral.model.store_writes import NewJob
from corral.store import Store
from tests.store.makers import ME, START, Ticking, attempted, batch, ended, new_job

HOUR = 3600.0
LINE = AuditWrite(START, "root", "budget.change", "budget:x", "administrator", True, {})


def asking(devices: float, hours: float = 0.0, **more: Any) -> NewJob:
    """A job of some devices that may run for some hours; 0 is no limit."""
    job = new_job(doc=f'{{"spec":{{"maxDurationSeconds":{int(hours * HOUR)}}}}}', created_at=START, **more)
    return msgspec.structs.replace(job, summary=msgspec.structs.replace(job.summary, devices=devices))


def budget(name: str = "research", hours: float = 10.0, kind: str = "queue", window: str = "week") -> Budget:
    return Budget(kind, name, window, hours, 0.8, START, "root")


async def stands(store: Store, queue: str = "research", user: str = "ann", at: float = START) -> Standing:
    (found,) = await store.standings(at, queue=queue, user=user)
    return found


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("window", "begin", "end"),
    [
        ("day", "2026-12-31", "2027-01-01"),
        ("week", "2026-12-28", "2027-01-04"),
        ("month", "2026-12-01", "2027-01-01"),
    ],
)
def test_windows_begin_at_midnight_in_utc_on_monday_and_on_the_first(window: str, begin: str, end: str) -> None:
    assert window_of(window, utc("2026-12-31T23:59:59")) == (utc(begin), utc(end))
    assert window_of(window, utc(begin))[0] == utc(begin)


def test_a_family_of_queues_ends_where_parents_go_in_a_circle() -> None:
    assert family("a", {"b": "a", "c": "b", "d": "", "a": "c"}) == ("a", "b", "c")


async def test_a_job_counts_by_its_longest_time_and_what_it_did_not_use_is_free_when_it_ends(
    store: Store, clock: Ticking
) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    await store.put_budget(budget(hours=10.0), LINE)
    job = asking(2.0, hours=3.0, queue="research")
    (stored,) = await store.submit_all([job], budgets=[await stands(store)])
    assert stored.notes == ()
    assert (await stands(store)).promised == 6 * HOUR
    started = attempted(job.id, started_at=START, device_millis=2000)
    running = msgspec.structs.replace(ended(job, phase="running"), live=True)
    run = msgspec.structs.replace(running.run, started_at=START, ended_at=None)
    await store.commit(batch(lease.epoch, jobs=(msgspec.structs.replace(running, run=run),), attempts=(started,)))
    now = await stands(store, at=START + HOUR)
    assert (now.used, now.promised) == (2 * HOUR, 4 * HOUR)
    over = attempted(job.id, started_at=START, ended_at=START + HOUR, code=0, device_millis=2000)
    await store.commit(batch(lease.epoch, jobs=(ended(job, at=START + HOUR),), attempts=(over,)))
    after = await stands(store, at=START + 2 * HOUR)
    assert (after.used, after.promised) == (2 * HOUR, 0.0)
    await store.commit(batch(lease.epoch, removed_jobs=(job.id,)))
    assert (await stands(store, at=START + 2 * HOUR)).promised == 0.0


async def test_a_job_without_a_limit_counts_to_the_end_of_the_window(store: Store) -> None:
    await store.put_budget(budget(hours=1e6), LINE)
    await store.submit_all([asking(1.0, queue="research")], budgets=[await stands(store)])
    found = await stands(store)
    assert found.promised == found.end - START


async def test_what_would_exceed_is_refused_with_what_is_left_and_a_warning_comes_before(store: Store) -> None:
    await store.put_budget(budget(hours=10.0), LINE)
    (first,) = await store.submit_all([asking(4.0, hours=2.0, queue="research")], budgets=[await stands(store)])
    (note,) = first.notes
    assert note == "The budget of queue research for this week is 80 % used with this job: 8.0 of 10.0 device-hours."
    too_much = asking(3.0, hours=1.0, queue="research")
    said = "The budget of queue research for this week has 2.0 of 10.0 device-hours left, and this may use 3.0"
    with pytest.raises(Conflict, match=re.escape(said)):
        await store.submit_all([too_much], budgets=[await stands(store)])
    assert await store.load_job(too_much.id) is None
    await store.submit_all([asking(2.0, hours=1.0, queue="research")], budgets=[await stands(store)])
    with pytest.raises(Conflict, match="for this week is used up"):
        await store.submit_all([asking(0.1, hours=1.0, queue="research")], budgets=[await stands(store)])
    assert await store.submit_all([asking(0.0, queue="research")], budgets=[await stands(store)])
    more = TopUp(5.0, START, "root", "a deadline")
    (found,) = await store.standings(START)
    assert await store.top_up("queue", "research", "week", found.begin, more, LINE)
    await store.submit_all([asking(3.0, hours=1.0, queue="research")], budgets=[await stands(store)])
    later = await stands(store, at=found.end + 1)
    assert (later.allowed, later.top_ups) == (10 * HOUR, ())


async def test_of_submissions_at_once_no_more_are_taken_than_fit(store: Store) -> None:
    await store.put_budget(budget(hours=10.0), LINE)
    seen = await stands(store)
    jobs = [asking(2.0, hours=1.0, queue="research") for _ in range(12)]
    told = await asyncio.gather(*(store.submit_all([job], budgets=[seen]) for job in jobs), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in told) == 5
    assert {each.code for each in told if isinstance(each, Conflict)} == {"budget-used-up"}
    assert (await stands(store)).promised == 10 * HOUR


async def test_a_queues_budget_counts_the_queues_below_it_and_a_users_budget_all_his_jobs(store: Store) -> None:
    await store.put_queues([QueueRecord("research"), QueueRecord("nlp", {"parent": "research"}), QueueRecord("ops")])
    for each in (budget(), budget("ann", kind="user", window="month"), budget("bob", kind="user")):
        await store.put_budget(each, LINE)
    nlp = await store.standings(START, queue="nlp", user="ann")
    assert [each.budget.name for each in nlp] == ["research", "ann"]
    assert [each.budget.name for each in await store.standings(START, queue="ops", user="ann")] == ["ann"]
    await store.submit_all([asking(1.0, hours=1.0, queue="nlp")], budgets=nlp)
    await store.submit_all([asking(1.0, hours=2.0, queue="ops")], budgets=[])
    stand = {each.budget.name: each.promised for each in await store.standings(START)}
    assert stand == {"research": HOUR, "ann": 3 * HOUR, "bob": 0.0}


async def test_a_budget_that_is_removed_takes_what_was_added_with_it(store: Store) -> None:
    assert not await store.top_up("queue", "research", "week", 0.0, TopUp(1.0, START, "root", "why"), LINE)
    assert not await store.remove_budget("queue", "research", "week", LINE)
    await store.put_budget(budget(), LINE)
    (found,) = await store.standings(START)
    assert await store.top_up("queue", "research", "week", found.begin, TopUp(1.0, START, "root", "why"), LINE)
    assert await store.remove_budget("queue", "research", "week", LINE)
    await store.put_budget(budget(hours=3.0), LINE)
    assert (await stands(store)).allowed == 3 * HOUR
    assert [each.device_hours for each in await store.budgets()] == [3.0]
