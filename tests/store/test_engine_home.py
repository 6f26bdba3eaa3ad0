"""The tasks of a database run on one machine, in one data folder; another engine is refused while tasks may run there."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.engines.local.engine_identity import home_of, is_same
from corral.model.store_writes import EngineHome, Holder, home_of_engine
from corral.store import Store
from tests.store.makers import ME, OTHER, Ticking, batch, new_job, running_task

More = Callable[[], Awaitable[Store]]
HERE = EngineHome("name-1", "/data/engine", "one", "machine-1", "boot-1")
THERE = EngineHome("name-2", "/data/engine", "two", "machine-2", "boot-2")


async def settled(store: Store, home: EngineHome, holder: Holder, *, take_over: bool = False) -> bool:
    """Whether an engine may use this database; otherwise the error names the owner."""
    other = await store.settle_engine(home, holder, is_same=lambda a, b: a.name == b.name, take_over=take_over)
    assert other is None or other == (HERE if home == THERE else THERE)
    return other is None


async def test_the_first_engine_is_the_databases_own_and_may_come_again(store: Store) -> None:
    assert await settled(store, HERE, ME)
    assert await settled(store, HERE, OTHER)


async def test_another_engine_is_refused_while_one_leads(store: Store, clock: Ticking) -> None:
    assert await settled(store, HERE, ME)
    assert await store.lead(ME) is not None
    assert not await settled(store, THERE, OTHER)
    clock.advance(10)
    assert await settled(store, THERE, OTHER), "its leader is gone, and it had no task"


async def test_another_engine_is_refused_while_tasks_may_run_whoever_leads(store: Store, clock: Ticking) -> None:
    assert await settled(store, HERE, ME)
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    await store.commit(batch(lease.epoch, tasks=(running_task(job.id),)))
    await store.release(lease)
    clock.advance(10)
    assert not await settled(store, THERE, OTHER)
    assert await store.lead(OTHER) is not None
    assert not await settled(store, THERE, OTHER), "it is asked again with the lease"
    assert await settled(store, THERE, OTHER, take_over=True)
    assert await settled(store, THERE, OTHER)


CLUSTER = home_of_engine("kubernetes")


async def test_a_local_engine_and_a_cluster_do_not_share_a_database(store: Store, clock: Ticking) -> None:
    def same(before: EngineHome, now: EngineHome) -> bool:
        return before == now

    for mine, theirs in ((HERE, CLUSTER), (CLUSTER, HERE)):
        assert await store.settle_engine(mine, ME, is_same=same, take_over=False) is None
        lease = await store.lead(ME)
        assert lease is not None
        assert await store.settle_engine(mine, OTHER, is_same=same, take_over=False) is None, "a replica"
        assert await store.settle_engine(theirs, OTHER, is_same=same, take_over=False) == mine
        await store.release(lease)
        clock.advance(10)


async def test_an_engine_is_known_by_the_nodes_of_its_tasks_where_no_home_is_recorded(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job()
    await store.submit(job)
    await store.commit(batch(lease.epoch, tasks=(running_task(job.id),)))
    await store.release(lease)
    asked: dict[str, Any] = {"is_same": lambda before, now: before == now, "engine": "kubernetes"}
    assert await store.settle_engine(CLUSTER, OTHER, take_over=False, **asked) == home_of_engine("local")
    assert await store.settle_engine(HERE, OTHER, take_over=False, is_same=is_same) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"boot_id": "boot-2"}, True),
        ({"host": "renamed", "boot_id": "boot-2"}, True),
        ({"machine": "", "host": "container-2"}, True),
        ({"machine": "machine-2", "boot_id": "boot-2"}, False),
        ({"name": "name-2"}, False),
        ({"folder": "/moved/engine"}, True),
    ],
)
def test_an_engine_is_known_again_after_a_reboot_and_a_move_and_on_no_other_machine(
    changes: dict[str, str], same: bool
) -> None:
    assert is_same(HERE, msgspec.structs.replace(HERE, **changes)) is same


def test_a_machine_without_an_id_is_known_by_its_name_after_a_reboot() -> None:
    before, after = (msgspec.structs.replace(HERE, machine="", boot_id=boot) for boot in ("boot-1", "boot-2"))
    assert is_same(before, after)
    assert not is_same(before, msgspec.structs.replace(after, host="two"))


def test_a_folder_keeps_its_name_when_it_is_moved_and_a_copy_of_it_is_another(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    home = home_of(tmp_path / "engine")
    assert home_of(tmp_path / "engine") == home
    shutil.copytree(tmp_path / "engine", tmp_path / "copy")
    assert not is_same(home, home_of(tmp_path / "copy"))
    (tmp_path / "engine").rename(tmp_path / "moved")
    assert is_same(home, home_of(tmp_path / "moved"))
