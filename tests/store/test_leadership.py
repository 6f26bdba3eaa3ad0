"""Only one process holds the leadership at a time; two leaders would allocate one device twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from sqlalchemy import insert
from sqlalchemy.exc import DBAPIError

from corral.store import LeadershipLost, Store, open_store, tables
from corral.store.connections import lock_order, parse_url, writer_engine
from tests.store.makers import ME, OTHER, Ticking
from tests.testbeds.postgresql import PostgresServer

More = Callable[[], Awaitable[Store]]


async def test_the_first_leads_and_another_waits_for_the_time_to_live(
    store: Store, open_more: More, clock: Ticking
) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    other = await open_more()
    for _ in range(3):
        assert await other.lead(OTHER) is None
        clock.advance(2)
        lease = await store.renew(lease)
    clock.advance(2.9)
    assert await other.lead(OTHER) is None, "it has only just seen the last renewal"
    clock.advance(3)
    taken = await other.lead(OTHER)
    assert taken is not None and taken.epoch == lease.epoch + 1
    with pytest.raises(LeadershipLost):
        await store.renew(lease)


async def test_a_candidate_never_trusts_a_clock_but_its_own(store: Store, open_more: More, clock: Ticking) -> None:
    assert await store.lead(ME) is not None
    clock.advance(10**6)
    other = await open_more()
    assert await other.lead(OTHER) is None
    clock.advance(3)
    assert await other.lead(OTHER) is not None


async def test_a_holder_that_is_provably_gone_is_replaced_at_once(store: Store, open_more: More) -> None:
    lease = await store.lead(ME)
    asked = []
    taken = await (await open_more()).lead(OTHER, takeover=lambda holder: asked.append(holder) or True)
    assert lease is not None and taken is not None and taken.epoch == lease.epoch + 1
    assert asked == [ME]


async def test_a_released_lease_is_free_at_once(store: Store, open_more: More) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    assert await store.leader() == ME
    await store.release(lease)
    assert await store.leader() is None
    other = await open_more()
    taken = await other.lead(OTHER)
    assert taken is not None
    await store.release(lease)
    assert await other.leader() == OTHER, "a deposed leader releases nothing"


async def test_the_same_holder_leads_anew_with_a_new_epoch(store: Store) -> None:
    first, second = await store.lead(ME), await store.lead(ME)
    assert first is not None and second is not None and second.epoch == first.epoch + 1


async def test_what_is_decided_once_is_the_same_for_all_who_decide_it(store: Store, open_more: More) -> None:
    others = [await open_more() for _ in range(3)]
    answers = await asyncio.gather(
        *(each.first_setting("uid", f"uid-{place}") for place, each in enumerate([store, *others]))
    )
    assert len(set(answers)) == 1
    assert await store.first_setting("uid", "late") == answers[0] == await store.setting("uid")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("rows", "within"),
    [(1, False), (3, False), (1, True)],
    ids=["after-one-statement", "after-a-pipeline", "within-a-pipeline"],
)
async def test_a_machine_that_falls_silent_within_a_transaction_holds_up_nobody_for_long(
    postgres: PostgresServer, clock: Ticking, rows: int, within: bool
) -> None:
    url = postgres.create()
    store = await open_store(url, clock=clock)
    silent = writer_engine(parse_url(url))
    try:
        with silent.connect() as connection:
            transaction = connection.begin()
            assert lock_order(connection)
            connection.execute(insert(tables.settings), [{"key": f"{row}", "value": "1"} for row in range(rows)])
            if within:
                driver = connection.connection.driver_connection
                assert isinstance(driver, psycopg.Connection)
                driver.pgconn.enter_pipeline_mode()
                driver.pgconn.send_query_params(b"SELECT 1", None)
                driver.pgconn.send_flush_request()
                assert driver.pgconn.flush() == 0
            async with asyncio.timeout(60):
                assert await store.lead(ME) is not None
            with pytest.raises(DBAPIError):
                transaction.commit()
    finally:
        silent.dispose()
        await store.close()
