"""Maintenance: old jobs shrink to a summary, and their logs and unused code are deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from corral.control.retention import CODE_SECONDS, Housekeeping
from corral.kernel.ids import attempt_id
from corral.model.profiles import ProfileRow
from corral.model.records import ENDED_PHASES
from corral.storage.code_archives import BlobStore
from corral.storage.log_files import LogStore
from tests.control.harness import House, PaperEngine, short

WEEK = 7 * 86_400.0


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    yield house
    await house.close()


async def test_old_jobs_and_all_that_was_theirs_go_and_the_rest_stays(house: House, tmp_path: Path) -> None:
    logs, code = LogStore(tmp_path / "logs"), BlobStore(tmp_path / "code")
    logs.open()
    code.open()
    keeping = Housekeeping(await house.begin(), logs, code, retention_seconds=WEEK)
    used, unused = "a" * 64, "b" * 64
    for digest in (used, unused):
        code.path(digest).write_bytes(b"archive")
        await house.store.put_blob(digest, "ada", 7, house.clock.now())
    old = await house.submit(short("old", end_with=0, code={"uri": f"blob:{used}"}))
    lives = await house.submit(short("lives", code={"uri": f"blob:{used}"}))
    await house.until(old, *ENDED_PHASES)
    await house.until(lives, "running")
    paths = []
    for job in (old, lives):
        path, _ = logs.prepare(attempt_id(job, 0, "worker", 0, 0))
        Path(path).write_text("line\n")
        paths.append(Path(path))

    await keeping.tidy(house.clock.now())
    assert (await house.store.history()).items == [] and await code.size(unused) is not None

    await keeping.tidy(house.clock.now() + WEEK + CODE_SECONDS)
    assert [line.id for line in (await house.store.history()).items] == [old]
    assert [path.exists() for path in paths] == [False, True]
    assert (await code.size(used), await code.size(unused)) == (7, None)
    assert (await house.until(lives, "running")).id == lives


async def test_a_retention_of_nothing_keeps_every_job(house: House, tmp_path: Path) -> None:
    keeping = Housekeeping(
        await house.begin(), LogStore(tmp_path / "logs"), BlobStore(tmp_path / "code"), retention_seconds=0
    )
    job = await house.submit(short("kept", end_with=0))
    await house.until(job, *ENDED_PHASES)
    await keeping.tidy(house.clock.now() + 1000 * WEEK)
    assert (await house.store.history()).items == [] and await house.store.find_job(job) is not None


async def test_removed_and_old_profiles_are_deleted_with_their_files(house: House, tmp_path: Path) -> None:
    logs, code, profiles = LogStore(tmp_path / "logs"), BlobStore(tmp_path / "code"), BlobStore(tmp_path / "profiles")
    for each in (logs, code, profiles):
        each.open()
    keeping = Housekeeping(await house.begin(), logs, code, profiles=profiles, retention_seconds=WEEK, profile_days=2)
    gone = await house.submit(short("gone", end_with=0))
    await house.until(gone, *ENDED_PHASES)
    lives = await house.submit(short("lives"))
    await house.until(lives, "running")
    now, day = house.clock.now(), 86_400.0
    for digest, job, at in (("a", gone, now), ("b", lives, now - 3 * day), ("c", lives, now - 1 * day)):
        profiles.path(digest * 64).write_bytes(b"archive")
        row = ProfileRow(digest, job, "ada", "ada", "python", 1, at, at, "done", digest=digest * 64, size=7)
        await house.store.begin_profile(row)
    await keeping.tidy(now)
    assert [await profiles.size(each * 64) for each in "abc"] == [7, None, 7]
    await keeping.tidy(now + WEEK)
    assert [await profiles.size(each * 64) for each in "abc"] == [None, None, None]
    assert await house.store.profiles_to_delete(now + 2 * WEEK) == []
    assert await house.store.profiles(job=lives) == []
