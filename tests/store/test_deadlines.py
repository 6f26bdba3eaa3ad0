"""Calls have deadlines on SQLite too: long queries are interrupted, and a write that gave up waiting is never stored."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection

from corral.kernel.errors import Unavailable
from corral.store import Store, call_deadlines, open_store
from corral.store.call_deadlines import Limits
from corral.store.writer import Transaction
from tests.databases import sqlite_store
from tests.store.makers import Ticking, new_job

_LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000) SELECT max(i) FROM n"


async def opened(folder: Path, seconds: float) -> Store:
    """A store whose calls may take `seconds`."""
    store = await open_store(sqlite_store(folder), clock=Ticking(), role="front")
    store.limits.seconds = seconds
    return store


async def test_a_question_that_takes_too_long_is_interrupted_and_its_thread_is_free_again(tmp_path: Path) -> None:
    store = await opened(tmp_path, 1.0)

    def ask(connection: Connection) -> object:
        return connection.exec_driver_sql(_LONG).scalar_one()

    asking = [asyncio.create_task(store.read(ask)) for _ in range(5)]
    async with asyncio.timeout(120):
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unavailable}
        store.limits.seconds = 60.0
        await asyncio.gather(*(store.ping() for _ in range(6)))
    await store.close()


async def test_a_question_that_is_cut_before_its_first_statement_ends_too(tmp_path: Path) -> None:
    store = await opened(tmp_path, 60.0)
    may_ask, ended = threading.Event(), threading.Event()

    def ask(connection: Connection) -> object:
        may_ask.wait(120)
        try:
            return connection.exec_driver_sql(_LONG).scalar_one()
        finally:
            ended.set()

    store.limits.seconds = 1.0
    with pytest.raises(Unavailable):
        await store.read(ask)
    may_ask.set()
    assert await asyncio.to_thread(ended.wait, 120)
    store.limits.seconds = 60.0
    await asyncio.gather(*(store.ping() for _ in range(6)))
    await store.close()


async def test_a_write_behind_one_that_takes_too_long_is_refused_and_never_stored(tmp_path: Path) -> None:
    store = await opened(tmp_path, 1.0)

    def write(transaction: Transaction) -> None:
        transaction.connection.exec_driver_sql(_LONG)

    slow = asyncio.create_task(store.write(write))
    await asyncio.sleep(0)
    async with asyncio.timeout(120):
        answers = await asyncio.gather(slow, store.submit(new_job()), return_exceptions=True)
        assert [getattr(answer, "code", answer) for answer in answers] == ["store-unreachable"] * 2
        store.limits.seconds = 60.0
        job = await store.submit(new_job())
        assert [live.id for live in await store.load_live()] == [job.id]
    await store.close()


def _held_at_its_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let each commit last until the returned event is set; deadlines count only from then on.

    A program that reads for ever does not block SQLite; an unresponsive disk does, which this imitates.
    """
    release, held = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    ring, more = store._writer._rung, store.limits.more

    def hang(roles: frozenset[str]) -> None:
        held.set()
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(120)
        ring(roles)

    monkeypatch.setattr(store._writer, "_rung", hang)
    monkeypatch.setattr(store.limits, "more", lambda call: more(call) if held.is_set() else 60.0)
    return release


async def test_a_write_whose_commit_takes_too_long_is_told_to_be_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_deadlines, "DISK_SECONDS", 3.0)
    store = await opened(tmp_path, 3.0)
    store.limits.waits_for_disk = True
    release = _held_at_its_commit(store, monkeypatch)
    async with asyncio.timeout(120):
        with pytest.raises(Unavailable) as refused:
            await store.submit(new_job())
        assert refused.value.code == "store-outcome-unknown"
        release.set()
        store.limits.seconds = 60.0
        assert len(await store.load_live()) == 1
    await store.close()


def test_a_front_waits_longer_for_the_disk_than_for_statements() -> None:
    limits = Limits(5.0)
    limits.waits_for_disk = True
    assert limits.more(limits.call()) < 5.0, "a question, or a database that is not SQLite's"
    call = limits.call(sqlite_write=True)
    assert limits.more(call) > 10.0, "it waits for the lock, which another commit may have"
    call.work()
    assert 0.0 < limits.more(call) < 5.0
    call.commit()
    assert limits.more(call) > 10.0


async def test_a_locked_database_is_told_before_the_call_is_over(tmp_path: Path) -> None:
    assert Limits(5.0).lock_seconds() < 5.0
    store = await opened(tmp_path, 5.0)
    other = sqlite3.connect(tmp_path / "corral.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with asyncio.timeout(120):
        with pytest.raises(Unavailable) as refused:
            await store.submit(new_job())
    assert refused.value.code in ("store-locked", "store-unreachable")
    other.close()
    await store.close()
