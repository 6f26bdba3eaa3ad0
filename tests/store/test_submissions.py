"""Submissions per hour are counted in the store: every front sees the count, and so does a restarted one."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from corral.kernel.errors import TooManyRequests
from corral.model.accounts import User
from corral.model.store_writes import NewJob, SubmitLimit
from corral.store import Store, open_store
from tests.store.makers import START, Ticking, new_job

OURS, OPENPAI = SubmitLimit("corral", 3), SubmitLimit("openpai", 3)


def at(seconds: float, user: str = "ann") -> NewJob:
    return new_job(user=user, created_at=START + seconds)


async def test_two_fronts_and_one_that_starts_anew_count_together(store: Store, store_url: str) -> None:
    other = await open_store(store_url, clock=Ticking())
    for number, front in enumerate((store, other, store)):
        await front.submit_all([at(number)], limit=OURS)
    await other.close()
    again = await open_store(store_url, clock=Ticking())
    for front in (store, again):
        with pytest.raises(TooManyRequests) as refused:
            await front.submit_all([at(100)], limit=OURS)
        assert refused.value.code == "too-many-calls" and refused.value.details == {"retryAfter": 3500}
    assert await again.submissions("ann", "corral", START + 100) == 3
    await again.close()


async def test_of_many_at_once_as_many_are_stored_as_may_be_and_others_are_not_touched(store: Store) -> None:
    calls = [store.submit_all([at(number / 100)], limit=OURS) for number in range(20)]
    calls += [store.submit_all([at(number / 100, "bob")], limit=OURS) for number in range(2)]
    calls += [store.submit_all([at(0.5)], limit=OPENPAI), store.submit_all([at(0.5)])]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    stored = [not isinstance(answer, BaseException) for answer in answers]
    assert sum(stored[:20]) == 3 and all(stored[20:])


async def test_an_hour_after_the_first_the_count_begins_anew(store: Store) -> None:
    for seconds in (0, 10, 20):
        await store.submit_all([at(seconds)], limit=OURS)
    with pytest.raises(TooManyRequests):
        await store.submit_all([at(3599)], limit=OURS)
    assert await store.submissions("ann", "corral", START + 3600) == 0
    await store.submit_all([at(3600)], limit=OURS)
    assert await store.submissions("ann", "corral", START + 3601) == 1


async def test_an_array_counts_once_and_what_was_sent_before_or_refused_does_not(store: Store) -> None:
    await store.submit_all([at(0), at(0), at(0)], limit=OURS)
    sent = msgspec.structs.replace(at(1), idempotency_key="k", request_hash="h")
    for _ in range(3):
        await store.submit_all([sent], limit=OURS)
    with pytest.raises(TooManyRequests):
        await store.submit_all([at(2)], limit=OURS, most_tasks=-1)
    assert await store.submissions("ann", "corral", START + 3) == 2


async def test_an_account_that_is_made_again_begins_with_none(store: Store) -> None:
    await store.add_user(User("ann"))
    await store.add_user(User("root", "admin"))
    await store.submit_all([at(0, "bob")], limit=OURS)
    for _ in range(3):
        with pytest.raises(TooManyRequests, match="Too many submissions"):
            for _ in range(4):
                await store.submit_all([msgspec.structs.replace(at(0), unique_name="none")], limit=OURS)
        await _end_all(store)
        await store.remove_user("ann")
        await store.add_user(User("ann"))
    assert await store.submissions("bob", "corral", START) == 1


async def _end_all(store: Store) -> None:
    from sqlalchemy import update

    from corral.store import tables

    await store.change(update(tables.jobs).values(live=False))
