"""Front and control learn of a commit at once, and a lost wake-up loses no data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.model.store_writes import IntentKind
from corral.store import Store, open_store
from tests.store.makers import ME, START, Ticking, batch, ended, new_job


@pytest.fixture
async def pair(store_url: str, tmp_path: Path, clock: Ticking) -> AsyncIterator[tuple[Store, Store]]:
    """Front's and control's store of one server; the folder's name is too long for a socket's address."""
    run = tmp_path / ("deep" * 30) / "run"
    front = await open_store(store_url, clock=clock, run_folder=run, role="front")
    control = await open_store(store_url, clock=clock, run_folder=run, role="control")
    if front.dialect == "postgresql":  # the first wake-up means that listening has begun
        assert await front.wakeup.wait(120) and await control.wakeup.wait(120)
    yield front, control
    await front.close()
    await control.close()


async def test_a_submit_wakes_control_and_a_commit_wakes_front(pair: tuple[Store, Store]) -> None:
    front, control = pair
    waiting = asyncio.create_task(control.wakeup.wait(120))
    await asyncio.sleep(0)
    job = new_job()
    await front.submit(job)
    assert await waiting
    await _drain(front)
    lease = await control.lead(ME)
    assert lease is not None
    await control.commit(batch(lease.epoch, jobs=(ended(job),)))
    assert await front.wakeup.wait(120)
    await _drain(control)
    await front.add_intent(job.id, IntentKind.RESTART, actor="ann", at=START)
    assert await control.wakeup.wait(120)


async def test_a_ring_before_the_wait_counts_once(pair: tuple[Store, Store]) -> None:
    front, control = pair
    await _drain(control)
    for _ in range(3):
        await front.submit(new_job())
    assert await control.wakeup.wait(120)
    await _drain(control)
    assert not await control.wakeup.wait(0.01)


async def test_nobody_listening_is_fine(store_url: str, tmp_path: Path, clock: Ticking) -> None:
    front = await open_store(store_url, clock=clock, run_folder=tmp_path / "run", role="front")
    assert (await front.submit(new_job())).created
    await front.close()


async def test_a_new_listener_takes_the_place_of_a_dead_one(store_url: str, tmp_path: Path, clock: Ticking) -> None:
    dead = await open_store(store_url, clock=clock, run_folder=tmp_path / "run", role="control")
    await dead.close()
    control = await open_store(store_url, clock=clock, run_folder=tmp_path / "run", role="control")
    front = await open_store(store_url, clock=clock, run_folder=tmp_path / "run", role="front")
    await _drain(control)
    await front.submit(new_job())
    assert await control.wakeup.wait(120)
    await front.close()
    await control.close()


async def test_rings_that_nobody_reads_do_not_block_the_writer(tmp_path: Path, clock: Ticking) -> None:
    control = await open_store(str(tmp_path / "c.db"), clock=clock, run_folder=tmp_path / "run", role="control")
    front = await open_store(str(tmp_path / "c.db"), clock=clock, run_folder=tmp_path / "run", role="front")
    for _ in range(2000):  # far more than a socket's queue holds
        front.wakeup.ring_after(frozenset({"control"}))
    assert (await front.submit(new_job())).created
    assert await control.wakeup.wait(120)
    await front.close()
    await control.close()


async def _drain(store: Store) -> None:
    while await store.wakeup.wait(1.0):
        pass
