"""No log keeps a task from ending, and none delays another's; in virtual time."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from corral.engines.kubernetes.loglines import Position
from corral.engines.kubernetes.logs import LogCopies, _saved
from corral.engines.kubernetes.pods import pod_name
from corral.engines.kubernetes.refusals import Silent
from corral.engines.kubernetes.resources import Call
from corral.engines.kubernetes.transport import Transport
from corral.kernel.ids import AttemptId
from corral.storage.logs import LogStore
from tests.engines.kubernetes.virtual_time import virtually

QUIET, OTHER = (AttemptId(f"0mabcdefgh123.0.worker.{index}.0") for index in range(2))


class QuietTasks:
    """A cluster whose tasks print nothing."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, float]] = []

    @asynccontextmanager
    async def stream(self, call: Call, *, idle: float, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        self.opened.append((call.name, asyncio.get_running_loop().time()))

        async def nothing() -> AsyncIterator[bytes]:
            await asyncio.sleep(idle)
            raise Silent("kubernetes-silent", f"The cluster fell silent for {idle} s.")
            yield b""

        yield nothing()


def test_a_quiet_task_does_not_make_its_node_count_as_silent(tmp_path: Path) -> None:
    cluster = QuietTasks()

    async def work() -> float:
        store = LogStore(tmp_path)
        store.open()
        copies = LogCopies(cast(Transport, cluster), "x", store)
        copies.follow(QUIET, "a")
        while len(cluster.opened) < 20:
            await asyncio.sleep(1.0)
        await asyncio.sleep(605.0)  # its connection has just been given up once more
        begun = asyncio.get_running_loop().time()
        copies.follow(OTHER, "a")
        await asyncio.sleep(100)
        await copies.close()
        return begun

    begun = virtually(work())
    (opened, *_) = [at for name, at in cluster.opened if name == pod_name(OTHER)]
    assert opened - begun < 1.0


def copies_of(tmp_path: Path) -> tuple[LogCopies, LogStore]:
    store = LogStore(tmp_path)
    store.open()
    return LogCopies(cast(Transport, QuietTasks()), "x", store), store


def test_a_copy_that_is_complete_is_not_opened_again_when_its_pod_is_found_anew(tmp_path: Path) -> None:
    async def work() -> None:
        copies, store = copies_of(tmp_path)
        path, _ = store.prepare(QUIET)
        Path(path).write_bytes(b"all of it")
        store.finish(QUIET)
        copies.follow(QUIET, "a")
        assert not copies._copies
        assert await copies.finish(QUIET, readable=True) == 9
        assert not os.stat(path).st_mode & stat.S_IWUSR

    virtually(work())


def test_a_log_that_cannot_be_opened_is_said_and_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    async def work() -> None:
        copies, store = copies_of(tmp_path)
        path, _ = store.prepare(QUIET)
        os.symlink("elsewhere", path)
        copies.follow(QUIET, "a")
        assert not copies._copies

    virtually(work())


def test_a_place_that_could_not_be_saved_is_saved_the_next_time(tmp_path: Path) -> None:
    async def work() -> None:
        copies, store = copies_of(tmp_path)
        copies.follow(QUIET, "a")
        copy = copies._copies[QUIET]
        copy.position = Position(size=7)
        blocked = Path(f"{store.path(QUIET, 'position')}.new")
        blocked.mkdir()
        with pytest.raises(OSError):
            copies._save(copy)
        blocked.rmdir()
        copies._save(copy)
        assert _saved(store.path(QUIET, "position")) == Position(size=7)
        await copies.close()

    virtually(work())


def test_a_copy_that_fails_at_its_end_leaves_no_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    async def work() -> None:
        copies, _ = copies_of(tmp_path)
        copies.follow(QUIET, "a")
        handle = copies._copies[QUIET].handle
        monkeypatch.setattr(copies, "_save", full)
        with pytest.raises(OSError):
            await copies.finish(QUIET, readable=False)
        with pytest.raises(OSError):
            os.fstat(handle)

    virtually(work())
