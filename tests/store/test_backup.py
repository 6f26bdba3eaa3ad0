"""Backup and restore while the server works, from and to either database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from corral.kernel.errors import Conflict
from corral.model.accounts import User
from corral.model.records import JobFilter
from corral.store import Store, StoreRefused, open_store, restore
from corral.store.connections import parse_url, writer_engine
from corral.store.leadership import ENGINE_HOME
from corral.store.schema import KNOWN, bring_up, version_of
from tests.store.makers import ME, OTHER, START, Ticking, batch, new_job, running_task, told
from tests.testbeds.postgresql import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second database, empty, to restore into."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'restored.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create()
    yield url
    server.drop(url)


async def test_a_backup_restores_everything_on_either_database(
    store: Store, other_url: str, tmp_path: Path, clock: Ticking
) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    jobs = [new_job(tags=("t",), secrets={"S": "sealed"}) for _ in range(3)]
    for job in jobs:
        await store.submit(job)
    await store.commit(batch(lease.epoch, cursor=2, tasks=(running_task(jobs[0].id),), facts=(told(jobs[0].id),)))
    await store.add_user(User("ann", "admin", created_at=START))
    await store.put_setting(ENGINE_HOME, {"name": "of a machine that is gone"})
    file = tmp_path / "backup"
    await store.backup(file)
    assert file.stat().st_mode & 0o777 == 0o600
    await store.submit(new_job())
    await asyncio.to_thread(restore, file, other_url)
    other = await open_store(other_url, clock=clock)
    try:
        restored = await other.load_live()
        assert restored == [job for job in await store.load_live() if job.id in {each.id for each in jobs}]
        assert await other.events(0) == (await store.events(0))[:4]
        assert await other.last_seq() == 4
        assert await other.setting(ENGINE_HOME) is None
        assert await other.user("ann") == await store.user("ann")
        assert await other.secrets(f"job:{jobs[0].id}") == {"S": "sealed"}
        assert len((await other.list_jobs(JobFilter(tag="t"))).items) == 3
        lease = await other.lead(OTHER)
        assert lease is not None and lease.cursor == 2, "nobody leads a restored store"
        assert (await other.submit(new_job())).seq == 5
    finally:
        await other.close()
    with pytest.raises(Conflict) as refused:
        await asyncio.to_thread(restore, file, other_url)
    assert refused.value.code == "store-not-empty"


async def test_a_backup_is_one_moment_while_others_write(store: Store, tmp_path: Path, clock: Ticking) -> None:
    """Each submission is in the copy as a whole or not at all, and so are all earlier ones."""
    writing = asyncio.create_task(_submit_many(store))
    await asyncio.sleep(0)
    await store.backup(tmp_path / "backup")
    await writing
    restore(tmp_path / "backup", f"sqlite:///{tmp_path / 'copy.db'}")
    copy = await open_store(f"sqlite:///{tmp_path / 'copy.db'}", clock=clock)
    try:
        live, events = await copy.load_live(), await copy.events(0, 1000)
        assert [event.job for event in events] == [job.id for job in await store.load_live()][: len(events)]
        assert {job.id for job in live} == {event.job for event in events}
        assert await copy.last_seq() == len(events)
    finally:
        await copy.close()


async def _submit_many(store: Store) -> None:
    for _ in range(100):
        await store.submit(new_job())


async def test_a_backup_never_overwrites_and_leaves_no_half(store: Store, tmp_path: Path) -> None:
    await store.backup(tmp_path / "backup")
    with pytest.raises(Conflict):
        await store.backup(tmp_path / "backup")
    with pytest.raises(StoreRefused):
        await store.backup(tmp_path / "missing" / "backup")
    assert not list(tmp_path.glob(".*part"))


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path / 'new.db'}"
    (tmp_path / "text").write_text("not a database " * 100)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE somebodys (x)")
    other.close()
    for name in ("text", "other", "missing"):
        with pytest.raises(StoreRefused) as refused:
            restore(tmp_path / name, target)
        assert refused.value.code in {"store-not-a-database", "not-a-backup", "no-backup"}


@pytest.mark.parametrize("version", [KNOWN[0], "0010", KNOWN[-2]])
def test_a_backup_of_an_earlier_schema_is_restored(other_url: str, tmp_path: Path, version: str) -> None:
    kept = tmp_path / "kept"
    kept.touch()
    engine = writer_engine(parse_url(f"sqlite:///{kept}"))
    bring_up(engine, target=version)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO settings (key, value) VALUES ('told', 'then')"))
    engine.dispose()
    restore(kept, other_url)
    restored = writer_engine(parse_url(other_url))
    with restored.connect() as connection:
        assert connection.execute(text("SELECT value FROM settings WHERE key = 'told'")).scalar() == "then"
    assert version_of(restored) == KNOWN[-1]
    restored.dispose()
