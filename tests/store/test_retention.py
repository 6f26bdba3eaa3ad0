"""Retention: old records are removed, except those that are still needed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from corral.model.accounts import Token, User
from corral.model.records import JobFilter
from corral.model.store_writes import NewJob
from corral.store import Store, open_store, retention
from tests.examples import at_least
from tests.store.makers import ME, START, Ticking, batch, ended, new_job

DAY = 86_400.0
MANY = at_least(150, 300)
"""Jobs whose documents fill a file."""


async def _ended(store: Store, epoch: int, at: float, **fields: object) -> str:
    job = new_job(**fields)  # type: ignore[arg-type]
    await store.submit(job)
    await store.commit(batch(epoch, jobs=(ended(job, at=at),)))
    return job.id


def _with_code(digest: str) -> NewJob:
    return replace(new_job(), doc=json.dumps({"spec": {"code": {"uri": f"blob:{digest}"}}}, separators=(",", ":")))


async def _led(store: Store) -> int:
    lease = await store.lead(ME)
    assert lease is not None
    return lease.epoch


async def test_jobs_that_ended_long_ago_become_lines_of_history_oldest_first(store: Store) -> None:
    epoch = await _led(store)
    first, second = await _ended(store, epoch, START), await _ended(store, epoch, START + DAY, user="bob")
    late = await _ended(store, epoch, START + 9 * DAY)
    assert await store.retire(epoch, ended_before=START + 2 * DAY, now=START + 9 * DAY, limit=1) == [first]
    assert await store.retire(epoch, ended_before=START + 2 * DAY, now=START + 9 * DAY, limit=9) == [second]
    assert [job.id for job in (await store.list_jobs(JobFilter())).items] == [late]
    assert [line.id for line in (await store.history()).items] == [second, first]
    assert [line.id for line in (await store.history(user="ann")).items] == [first]
    page = await store.history(limit=1)
    assert page.next is not None and [line.id for line in page.items] == [second]
    rest = await store.history(limit=1, after_cursor=page.next)
    assert [line.id for line in rest.items] == [first] and rest.next is None


async def test_a_job_that_a_live_one_waits_for_is_not_retired(store: Store) -> None:
    epoch = await _led(store)
    needed = await _ended(store, epoch, START)
    waits = new_job(depends_on=(needed,))
    await store.submit(waits)
    assert await store.retire(epoch, ended_before=START + DAY, now=START + DAY) == []


async def test_what_is_long_over_is_forgotten_and_the_rest_is_kept(store: Store) -> None:
    job = new_job(idempotency_key="k")
    await store.submit(job)
    await store.add_user(User("ann"))
    await store.add_token(Token("t1", "ann", "old", "api", job.created_at, job.created_at + DAY), "hash")
    await store.forget_old(job.created_at + DAY)
    assert not (await store.submit(replace(new_job(idempotency_key="k"), doc=job.doc))).created
    assert [each.id for each in await store.tokens("ann")] == ["t1"]
    await store.forget_old(job.created_at + 60 * DAY)
    assert (await store.submit(new_job(idempotency_key="k"))).created
    assert await store.tokens("ann") == []


async def test_code_is_kept_while_a_job_names_it_or_somebody_used_it_lately(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_DOCUMENTS_AT_ONCE", 2)
    named, unused, fresh, used = (digit * 64 for digit in "abcd")
    for digest in (named, unused, used):
        await store.put_blob(digest, "ann", 10, START)
    await store.put_blob(unused, "bob", 10, START + 1)
    await store.put_blob(fresh, "ann", 10, START + 2 * DAY)
    for _ in range(3):
        await store.submit(_with_code("f" * 64))
    await store.submit(_with_code(named))
    assert await store.use_blob(used, "bob", START + 2 * DAY) is None
    assert await store.unused_code(START + DAY) == [unused, used]
    assert await store.use_blob(used, "ann", START + 2 * DAY) == 10
    assert await store.unused_code(START + DAY) == [unused]
    assert await store.forget_code([unused, used], START + DAY) == [unused]
    assert await store.use_blob(unused, "ann", START + 2 * DAY) is None
    assert await store.use_blob(named, "ann", START + DAY) == 10


async def test_the_space_of_what_was_removed_is_given_back_to_the_disk(tmp_path: Path, clock: Ticking) -> None:
    """This includes a file of an earlier version, once a start has rewritten it."""
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    for word in ("PRAGMA auto_vacuum=NONE", "PRAGMA journal_mode=WAL", "CREATE TABLE kept (x)", "DROP TABLE kept"):
        old.execute(word).fetchall()
    old.close()
    for name in ("new.db", "old.db"):
        file = tmp_path / name
        store = await open_store(str(file), clock=clock)
        epoch = await _led(store)
        long = replace(new_job(), doc=json.dumps({"spec": {"x": "x" * 100_000}}))
        for _ in range(MANY):
            job = replace(long, id=new_job().id)
            await store.submit(job)
            await store.commit(batch(epoch, jobs=(ended(job, at=START),)))
        await _checkpoint(store)
        full = file.stat().st_size
        assert len(await store.retire(epoch, ended_before=START + DAY, now=START + DAY, limit=1000)) == MANY
        await store.forget_old(START + 99 * DAY)
        while await store.give_space_back():
            pass
        await _checkpoint(store)
        assert file.stat().st_size < full / 3, name
        assert len((await store.history(limit=1)).items) == 1
        await store.close()
        with sqlite3.connect(file) as look:
            assert look.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        look.close()


async def _checkpoint(store: Store) -> None:
    """Move the write-ahead log into the file."""
    await store.read(lambda connection: connection.exec_driver_sql("SELECT 1").all())
    with sqlite3.connect(str(store._reader.url.database), isolation_level=None) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.close()
