"""Processes and files that hang in the kernel delay a start, stop or end only for a bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.engines.local import containers, storages
from corral.engines.local.live_attempt import NEVER_STARTED
from corral.kernel.errors import Unavailable
from corral.model.launch import Started
from corral.model.storages import Mount
from tests.engines.local_harness import Harness, alive, attempt, launch, until

FREEZERS = Path("/sys/fs/cgroup/freezer")
FAR = Mount("far", "nfs", "/mnt/far", source="/x", server="filer")


class Freezer:
    """A frozen control group: its processes are in uninterruptible sleep, and SIGKILL is delayed too."""

    def __init__(self) -> None:
        self.folder = FREEZERS / f"corral-test-{os.getpid()}"
        self.folder.mkdir()

    def set(self, state: str) -> None:
        (self.folder / "freezer.state").write_text(state)

    async def freeze(self) -> None:
        self.set("FROZEN")
        await until(lambda: (self.folder / "freezer.state").read_text().strip() == "FROZEN")


@pytest.fixture
def freezer() -> Iterator[Freezer]:
    if os.geteuid() != 0 or not (FREEZERS / "cgroup.procs").exists():
        pytest.skip(
            "only root, with the freezer of control groups version 1, can have a process that SIGKILL cannot end"
        )
    freezer = Freezer()
    yield freezer
    freezer.set("THAWED")
    while left := (freezer.folder / "cgroup.procs").read_text().split():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)
    freezer.folder.rmdir()


async def test_a_mount_that_cannot_be_killed_holds_up_neither_a_stop_nor_another_storage(
    local: Harness, freezer: Freezer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    hang = f"echo $$ >{freezer.folder}/cgroup.procs; echo $$ >>{told}; exec sleep 1000"
    no_route = "echo no route >&2; exit 32"
    script = {"far": hang, "other": no_route}
    monkeypatch.setattr(storages, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(storages, "_DEATH_SECONDS", 0.05)
    monkeypatch.setattr(storages, "mount_command", lambda mount, target: ["sh", "-c", script[mount.name]])
    starting = asyncio.create_task(local.engine.start(launch("true", storages=(FAR,))))
    await until(lambda: told.exists() and told.read_text())
    await freezer.freeze()
    other = Mount("other", "nfs", "/mnt/other", source="/y", server="filer")
    with pytest.raises(Unavailable, match="no route"):
        await local.engine.start(launch("true", task=1, storages=(other,)))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, 120)
    await local.engine.stop(attempt(), grace_seconds=0)
    assert (await local.exited(attempt())).reason == NEVER_STARTED
    mount = int(told.read_text())
    assert alive(mount)

    script["far"] = no_route
    with pytest.raises(Unavailable, match=f"process {mount}.*hangs in the kernel"):
        await local.engine.start(launch("true", task=2, storages=(FAR,)))
    freezer.set("THAWED")
    await until(lambda: not alive(mount))
    await until(lambda: all(each.returncode is not None for each in local.engine._tools.storages._undead.values()))
    with pytest.raises(Unavailable, match="no route"):
        await local.engine.start(launch("true", task=2, storages=(FAR,)))


async def test_a_container_runtime_that_hangs_holds_up_an_end_no_longer_than_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "docker"
    runtime.write_text("#!/bin/sh\nexec sleep 1000\n")
    runtime.chmod(0o755)
    monkeypatch.setattr(containers, "_ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(containers, "_REMOVE_SECONDS", 0.1)
    async with asyncio.timeout(120):
        assert not await containers.ran_out_of_memory(str(runtime), "name")
        await containers.remove(str(runtime), "name")


class SilentFiles:
    """A file system whose server (FUSE) never answers: every access blocks until the server is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.server},rootmode=40000,user_id=0,group_id=0".encode()
        if ctypes.CDLL(None, use_errno=True).mount(b"silent", os.fsencode(folder), b"fuse", 0, options):
            os.close(self.server)
            pytest.skip(f"this machine mounts no FUSE: {os.strerror(ctypes.get_errno())}")

    def go(self) -> None:
        """End the server; blocked accesses then fail."""
        if self.server >= 0:
            os.close(self.server)
            self.server = -1


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[SilentFiles]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("only root, where there is FUSE, can mount a file system that never answers")
    (tmp_path / "silent").mkdir()
    files = SilentFiles(tmp_path / "silent")
    yield files
    files.go()
    ctypes.CDLL(None).umount2(os.fsencode(files.folder), 2)


async def test_a_storage_that_does_not_answer_holds_up_its_own_task_alone(
    local: Harness, silent: SilentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "_LOOK_SECONDS", 0.1)
    mount = Mount("data", "folder", "/mnt/data", source=str(silent.folder))
    for _ in range(3):
        with pytest.raises(
            Unavailable, match=f"The storage data cannot be mounted now: {silent.folder} did not answer"
        ):
            await local.engine.start(launch("true", storages=(mount,)))
    assert sum(thread.name == f"look {silent.folder}" for thread in threading.enumerate()) == 1, (
        "one thread waits for each folder, however often a start is tried"
    )
    assert (await local.run("sh", "-c", "exit 4", task=1)).code == 4
    silent.go()
    looking = local.engine._tools.storages._looks[str(silent.folder)]
    await asyncio.wait_for(looking.wait(), 120)


async def test_a_task_that_is_stopped_while_its_storage_is_waited_for_never_starts(
    local: Harness, silent: SilentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "_LOOK_SECONDS", 1000.0)
    mount = Mount("data", "folder", "/mnt/data", source=str(silent.folder))
    starting = asyncio.create_task(local.engine.start(launch("echo", "never", storages=(mount,))))
    await until(lambda: local.engine._tools.storages._looks)
    await local.engine.stop(attempt(), grace_seconds=0)
    assert (await local.exited(attempt())).reason == NEVER_STARTED
    silent.go()
    await asyncio.wait_for(starting, 120)
    assert (local.folder / "engine/attempts" / attempt() / "ended").exists(), "the next server knows it, too"
    assert local.count(Started, attempt()) == 0
