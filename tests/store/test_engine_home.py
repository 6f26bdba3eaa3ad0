"""The tasks of a database run where its engines are recorded; others are refused while tasks may run there."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from corral.engines.local.engine_identity import home_of, is_same
from corral.engines.settlement import elsewhere
from corral.model.store_writes import EngineHome, Holder, home_of_engine
from corral.store import Store
from corral.store.leadership import ENGINE_HOME
from tests.store.makers import ME, OTHER, Ticking, batch, new_job, running_task

More = Callable[[], Awaitable[Store]]
HERE = EngineHome("name-1", "/data/engine", "one", "machine-1", "boot-1")
THERE = EngineHome("name-2", "/data/engine", "two", "machine-2", "boot-2")


async def settled(store: Store, home: EngineHome, holder: Holder, *, take_over: bool = False) -> bool:
    """Whether an engine may use this database; otherwise the error names the owner."""
    other = await store.settle_engines({"local": home}, holder, is_same=by_name, take_over=take_over)
    assert other is None or other == ("local", HERE if home == THERE else THERE)
    return other is None


def by_name(engine: str, before: EngineHome, now: EngineHome) -> bool:
    """Homes are the same if their names are."""
    return before.name == now.name


async def running(store: Store, *nodes: str) -> None:
    """Have a task run on each of these nodes."""
    lease = await store.lead(ME)
    assert lease is not None
    for node in nodes:
        job = new_job()
        await store.submit(job)
        await store.commit(batch(lease.epoch, tasks=(running_task(job.id, node=node),)))
    await store.release(lease)


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
    await running(store, "local/n1")
    clock.advance(10)
    assert not await settled(store, THERE, OTHER)
    assert await store.lead(OTHER) is not None
    assert not await settled(store, THERE, OTHER), "it is asked again with the lease"
    assert await settled(store, THERE, OTHER, take_over=True)
    assert await settled(store, THERE, OTHER)


CLUSTER = home_of_engine("kubernetes")


async def many(
    store: Store, holder: Holder, *names: str, local: EngineHome = HERE, take_over: bool = False
) -> tuple[str, EngineHome] | None:
    """Settle a server with these engines; returns what is in its way."""
    homes = {name: local if name == "local" else home_of_engine(name) for name in names}
    return await store.settle_engines(homes, holder, is_same=by_name, take_over=take_over)


async def test_a_local_engine_and_a_cluster_do_not_share_a_database(store: Store, clock: Ticking) -> None:
    for mine, theirs, home in (("local", "kubernetes", HERE), ("kubernetes", "local", CLUSTER)):
        assert await many(store, ME, mine) is None
        lease = await store.lead(ME)
        assert lease is not None
        assert await many(store, OTHER, mine) is None, "a replica"
        assert await many(store, OTHER, theirs) == (mine, home)
        await store.release(lease)
        clock.advance(10)


async def test_an_engine_is_known_by_the_nodes_of_its_tasks_where_no_home_is_recorded(store: Store) -> None:
    await running(store, "local/n1")
    assert await many(store, OTHER, "kubernetes") == ("local", home_of_engine("local"))
    assert await many(store, OTHER, "local") is None


async def test_an_engine_may_be_added_while_tasks_run_on_the_others(store: Store) -> None:
    assert await many(store, ME, "local") is None
    await running(store, "local/n1")
    assert await many(store, ME, "local", "kubernetes") is None
    assert await many(store, ME, "kubernetes", "local") is None


async def test_an_engine_is_removed_only_once_none_of_its_tasks_runs(store: Store, clock: Ticking) -> None:
    assert await many(store, ME, "local", "kubernetes") is None
    await running(store, "local/n1", "kubernetes/n1")
    clock.advance(10)
    assert await many(store, ME, "local") == ("kubernetes", CLUSTER)
    assert await many(store, ME, "kubernetes") == ("local", HERE)
    assert await many(store, ME, "local", take_over=True) is None
    assert await many(store, ME, "local") is None, "what was taken over is forgotten"


async def test_tasks_of_one_engine_do_not_hold_up_the_move_of_another(store: Store, clock: Ticking) -> None:
    assert await many(store, ME, "local", "kubernetes") is None
    await running(store, "kubernetes/n1")
    clock.advance(10)
    assert await many(store, ME, "local", "kubernetes", local=THERE) is None
    assert await many(store, ME, "local", "kubernetes", local=THERE) is None


async def test_a_server_that_stands_by_does_not_record_the_engine_that_it_would_add(store: Store) -> None:
    assert await many(store, ME, "kubernetes") is None
    lease = await store.lead(ME)
    assert lease is not None
    assert await many(store, OTHER, "kubernetes", "local", local=THERE) is None
    assert await many(store, ME, "kubernetes", "local", local=HERE) is None, "the leader adds its own"
    await store.release(lease)


@pytest.mark.parametrize(("name", "home"), [("local", HERE), ("kubernetes", CLUSTER)])
async def test_a_database_that_notes_one_engine_opens_unchanged(store: Store, name: str, home: EngineHome) -> None:
    await store.put_setting(ENGINE_HOME, msgspec.to_builtins(home))
    await running(store, f"{name}/n1")
    other = "kubernetes" if name == "local" else "local"
    assert await many(store, ME, name) is None
    assert await store.setting(ENGINE_HOME, None) is not None, "nothing was to be changed"
    assert await many(store, ME, other) == (name, home)
    assert await many(store, ME, name, other) is None
    assert await store.setting(ENGINE_HOME, None) is None, "recorded by engine from now on"
    assert await many(store, ME, name) is None, "none of its tasks runs"


def test_a_refusal_says_where_the_tasks_run_and_what_to_do() -> None:
    said = elsewhere("kubernetes", CLUSTER, ("local",))
    assert "run on the engine kubernetes" in said and "CORRAL_ENGINE=local,kubernetes" in said
    said = elsewhere("local", HERE, ("kubernetes",))
    assert "on one, data folder /data:" in said and "Start it there, with CORRAL_ENGINE=kubernetes,local" in said
    assert "Start it there, or give" in elsewhere("local", HERE, ("local",))


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
