"""On SQLite a transaction longer than a lease neither ends the leader's lease nor makes another leader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from corral.control.lease import LEASE_SECONDS, Leadership
from corral.store import Store, open_store, tables
from corral.store import call_deadlines as bounds
from corral.store.writer import Transaction
from tests.databases import sqlite_store
from tests.store.makers import ME, OTHER, Ticking


def held(going: threading.Event, on: threading.Event) -> object:
    """A transaction that runs until it is told to end."""

    def run(transaction: Transaction) -> str:
        transaction.write(update(tables.settings).values(value="changed"))
        on.set()
        assert going.wait(120)
        return "done"

    return run


class Long:
    """A transaction of a store that runs as long as the block."""

    def __init__(self, store: Store) -> None:
        self._store, self._going, self._on = store, threading.Event(), threading.Event()

    async def __aenter__(self) -> None:
        self._writing = asyncio.create_task(self._store.write(held(self._going, self._on)))  # type: ignore[arg-type]
        await asyncio.to_thread(self._on.wait, 120)

    async def __aexit__(self, *_: object) -> None:
        self._going.set()
        assert await self._writing == "done"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(sqlite_store(tmp_path), clock=Ticking())
    yield opened
    await opened.close()


async def test_a_leaders_own_long_transaction_keeps_its_lease_and_renews_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.store.writer.EXTEND_SECONDS", 0.0)
    now = 100.0
    leadership = Leadership(store, steady=lambda: now)
    lease = await leadership.acquire()
    async with Long(store):
        now += 10 * LEASE_SECONDS
        assert leadership.left() == LEASE_SECONDS
    assert 0 < leadership.left() <= LEASE_SECONDS  # less the time that its commit took
    assert (await leadership.renew()).renewals >= lease.renewals + 2, "who looks on sees that it was renewed"
    now += LEASE_SECONDS
    assert leadership.left() == 0


async def test_one_that_never_ends_or_began_without_the_lease_keeps_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    leadership = Leadership(store, steady=lambda: now)
    await leadership.acquire()
    now += LEASE_SECONDS
    async with Long(store):
        assert leadership.left() == 0
    await leadership.renew()
    async with Long(store):
        now += LEASE_SECONDS
        assert leadership.left() == LEASE_SECONDS
        monkeypatch.setattr(bounds, "HELD_SECONDS", 0.0)
        assert leadership.left() == 0


async def test_a_candidate_that_could_not_look_waits_anew_for_the_leader_to_renew(tmp_path: Path, store: Store) -> None:
    clock = Ticking()
    other = await open_store(sqlite_store(tmp_path), clock=clock)
    lease = await store.lead(ME)
    assert lease is not None and await other.lead(OTHER) is None
    async with Long(store):
        asking = asyncio.create_task(other.lead(OTHER))
        while other._asked is None:
            await asyncio.sleep(0)
        clock.advance(10)
    assert await asking is None
    await store.renew(lease)
    clock.advance(3)
    assert await other.lead(OTHER) is None
    clock.advance(3)
    assert await other.lead(OTHER) is not None
    await other.close()
