"""While the database is down calls fail; afterwards everything works again and no data is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import msgspec
import psycopg
import pytest
from sqlalchemy import text

from corral.control.lease import Leadership
from corral.kernel.errors import Unavailable
from corral.store import Store, open_store
from tests.store.makers import ME, Ticking, batch, new_job, told
from tests.testbeds.postgresql import PostgresServer, binaries

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: tests/testbeds/apt.sh postgresql")
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
async def store(own_postgres: PostgresServer, clock: Ticking) -> AsyncIterator[Store]:
    opened = await open_store(own_postgres.create(), clock=clock, role="front")
    opened.begin_to_serve("front")
    yield opened
    if not own_postgres.running:
        own_postgres.start()
    await opened.close()


async def test_while_it_is_away_calls_are_unavailable_and_afterwards_go_on(
    store: Store, own_postgres: PostgresServer
) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    await asyncio.to_thread(own_postgres.stop)
    for call in (
        store.submit(new_job()),
        store.load_live(),
        store.commit(batch(lease.epoch, facts=(told(job.id),))),
        store.ping(),
    ):
        with pytest.raises(Unavailable) as refused:
            await call
        assert refused.value.code == "store-unreachable" and refused.value.retry_after > 0
        assert "\n" not in refused.value.message and "127.0.0.1" not in refused.value.message
    await asyncio.to_thread(own_postgres.start)
    assert (await store.submit(new_job())).created
    assert (await store.renew(lease)).epoch == lease.epoch
    assert len(await store.load_live()) == 2


async def test_a_restart_that_nobody_noticed_costs_no_answer(store: Store, own_postgres: PostgresServer) -> None:
    await store.submit(new_job())
    assert len(await store.load_live()) == 1
    await asyncio.to_thread(own_postgres.stop)
    await asyncio.to_thread(own_postgres.start)
    assert (await store.submit(new_job())).created
    assert len(await store.load_live()) == 2


async def test_no_acknowledged_submit_is_lost_in_an_outage(store: Store, own_postgres: PostgresServer) -> None:
    acknowledged: set[str] = set()
    unknown = 0
    done = asyncio.Event()

    async def caller() -> None:
        nonlocal unknown
        while not done.is_set():
            job = new_job()
            try:
                acknowledged.add((await store.submit(job)).id)
            except Unavailable as error:
                unknown += error.code == "store-outcome-unknown"
                await asyncio.sleep(0.01)

    callers = [asyncio.create_task(caller()) for _ in range(16)]
    for _ in range(2):
        target = len(acknowledged) + 100
        while len(acknowledged) < target:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(own_postgres.stop)
        await asyncio.to_thread(own_postgres.start)
    target = len(acknowledged) + 100
    while len(acknowledged) < target:
        await asyncio.sleep(0.01)
    done.set()
    await asyncio.gather(*callers)
    stored = {job.id for job in await store.load_live()}
    assert acknowledged <= stored
    assert len(stored - acknowledged) <= unknown


async def test_a_listener_hears_again_after_an_outage(store: Store, own_postgres: PostgresServer) -> None:
    await asyncio.to_thread(own_postgres.stop)
    await asyncio.to_thread(own_postgres.start)
    await store.submit(new_job())
    while not await store.wakeup.wait(30):
        pass
    while await store.wakeup.wait(0.2):
        pass
    waiting = asyncio.create_task(store.wakeup.wait(60))
    await store.submit(new_job())
    assert await waiting


async def test_a_database_that_is_not_there_is_unavailable_at_the_start(clock: Ticking) -> None:
    with pytest.raises(Unavailable):
        await open_store("postgresql://corral@127.0.0.1:1/nothing", clock=clock)


async def test_a_database_that_is_frozen_is_waited_for_no_longer_than_a_call_may_take(
    store: Store, own_postgres: PostgresServer
) -> None:
    first = new_job()
    await store.submit(first)
    await store.load_live()
    own_postgres.freeze()
    try:
        for _ in range(2):  # on existing connections, and on new ones
            calls = [
                store.submit(new_job()),
                store.submit(new_job()),
                store.ping(),
                *(store.load_live() for _ in "12345"),
            ]
            async with asyncio.timeout(30):  # without a limit of its own the first took 75 s
                answers = await asyncio.gather(*calls, return_exceptions=True)
            assert {answer.code for answer in answers if isinstance(answer, Unavailable)} == {"store-unreachable"}
            assert all(isinstance(answer, Unavailable) for answer in answers), answers
        assert store.trouble()
    finally:
        own_postgres.thaw()
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(Unavailable):
                assert (await store.submit(new_job())).created
                break
    assert len(await store.load_live()) == 2, "what was told to be refused was not stored"


async def test_a_write_that_may_have_happened_is_answered_so_and_its_key_settles_it(
    store: Store, own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(own_postgres.url(f"test_{own_postgres._made}"), autocommit=True) as connection:
        connection.execute(_SLOW_COMMIT)
    job = msgspec.structs.replace(new_job(), idempotency_key="one")
    more = store.limits.more
    async with asyncio.timeout(120):
        with monkeypatch.context() as patched, pytest.raises(Unavailable) as refused:
            patched.setattr(store.limits, "seconds", 1.0)  # from its commit on
            patched.setattr(store.limits, "more", lambda call: more(call) if call.committing else 60.0)
            await store.submit(job)
    assert refused.value.code == "store-outcome-unknown"
    assert "Idempotency-Key" in refused.value.message
    again = msgspec.structs.replace(new_job(), idempotency_key="one")
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(Unavailable):
                settled = await store.submit(again)
                break
    assert not settled.created and settled.id == job.id
    assert [live.id for live in await store.load_live()] == [job.id]


async def test_a_control_waits_for_a_frozen_database_no_longer_than_its_lease_lasts(
    own_postgres: PostgresServer, clock: Ticking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.lease.LEASE_SECONDS", 10.0)  # a slow machine renews it in that time
    store = await open_store(own_postgres.create(), clock=clock, role="control")
    store.begin_to_serve("control")
    leadership = Leadership(store)
    try:
        await leadership.acquire()
        keeping = asyncio.create_task(leadership.keep())
        slow = asyncio.create_task(store.read(lambda connection: connection.execute(text("SELECT pg_sleep(11)")).all()))
        await slow
        assert leadership.left(), "a statement on a database that answers goes on for as long as the lease is renewed"
        own_postgres.freeze()
        async with asyncio.timeout(120):
            with pytest.raises(Unavailable):
                await store.load_live()
        assert leadership.left() < 1.0
        own_postgres.thaw()
        async with asyncio.timeout(120):
            while not leadership.left():
                await asyncio.sleep(0.05)
        keeping.cancel()
    finally:
        own_postgres.thaw()
        await store.close()


_SLOW_COMMIT = """
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(*) FROM idempotency) = 1 THEN PERFORM pg_sleep(15); END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON idempotency DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slowly();
"""
