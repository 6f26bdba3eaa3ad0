"""The work folder of a notebook's task: later attempts find it as it was, until the job is over."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.model.launch import RuntimePlan
from corral.storage.code_archives import BlobStore
from tests.engines.local_harness import JOB, Harness, attempt, until
from tests.engines.test_local_runtime import upload

UID = 54_322


@pytest.fixture
async def local() -> AsyncIterator[Harness]:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    folder.chmod(0o711)
    uid = UID if os.getuid() == 0 else None
    blobs = BlobStore(folder / "blobs")
    blobs.open()
    async with Harness(folder, blobs=blobs, uid_of=lambda user: uid) as harness:
        yield harness
    shutil.rmtree(folder)


async def test_the_next_attempt_finds_the_files_and_no_other_task_does(local: Harness) -> None:
    first, second, other = attempt(0, 0), attempt(0, 1), attempt(1, 0)
    end = await local.run("sh", "-c", "echo mine >made; pwd", attempt=first, keeps_work=True)
    assert end.code == 0
    await local.engine.forget([first])
    assert (await local.run("cat", "made", attempt=second, keeps_work=True)).code == 0
    assert local.log(second) == "mine\n"
    assert (await local.run("test", "-e", "made", attempt=other, keeps_work=True)).code == 1
    assert (await local.run("test", "-e", "made", attempt=attempt(2, 0))).code == 1


async def test_files_that_were_changed_are_kept_when_the_code_is_unpacked_again(local: Harness) -> None:
    digest = await upload(local.folder, {"first": "code", "second": "code"})
    plan = RuntimePlan(code_digest=digest, keeps_files=True)
    change = "cat first second; rm second; printf mine >first"
    await local.run("sh", "-c", change, attempt=attempt(0, 0), keeps_work=True, runtime=plan)
    await local.run("cat", "first", "second", attempt=attempt(0, 1), keeps_work=True, runtime=plan)
    assert [local.log(attempt(0, at)) for at in (0, 1)] == ["codecode", "minecode"]


async def test_the_folder_goes_with_its_job_alone(local: Harness) -> None:
    await local.run("touch", "made", attempt=attempt(), keeps_work=True)
    kept = local.folder / "engine" / "kept"
    assert [each.name for each in kept.iterdir()] == [f"{JOB}.worker-0"]
    local.engine.job_over(type(JOB)("0" * 13))
    local.engine.live_jobs(frozenset({JOB}))
    assert (kept / f"{JOB}.worker-0" / "made").exists()
    local.engine.live_jobs(frozenset())
    assert list(kept.iterdir()) == []
    await until(lambda: not list((local.folder / "engine" / "trash").iterdir()))
