"""Copying logs neither keeps a task from ending nor delays another's log; in virtual time."""

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

from corral.engines.kubernetes.api.errors import Silent
from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.logs.copier import CUT, LogCopies, _saved
from corral.engines.kubernetes.logs.log_lines import Position
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.kernel.ids import AttemptId
from corral.storage.log_files import LogStore
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
        await asyncio.sleep(605.0)  # its connection was just dropped once more
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


def full(*_: object, **__: object) -> int:
    raise OSError(errno.ENOSPC, "the disk is full")


@pytest.mark.parametrize("takes_the_marker", [True, False])
def test_a_copy_that_fails_at_its_end_is_complete_and_leaves_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_the_marker: bool
) -> None:
    async def work() -> None:
        copies, store = copies_of(tmp_path)
        copies.follow(QUIET, "a")
        handle = copies._copies[QUIET].handle
        with monkeypatch.context() as patch:
            if takes_the_marker:
                patch.setattr(copies, "_complete", full)
            else:
                patch.setattr(os, "write", full)
            size = await copies.finish(QUIET, readable=False)
        path = store.path(QUIET, "all")
        assert Path(path).read_bytes() == (CUT if takes_the_marker else b"")
        assert size == os.stat(path).st_size and not os.stat(path).st_mode & stat.S_IWUSR
        with pytest.raises(OSError):
            os.fstat(handle)

    virtually(work())


class PrintsOnce:
    """A cluster whose task printed two lines and runs on; its log is read from the beginning."""

    @asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"2024-05-01T10:00:04.000000001Z one\n2024-05-01T10:00:04.000000002Z two\n"
            await asyncio.Event().wait()

        yield chunks()


def test_a_log_goes_on_whole_once_the_disk_has_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, room = os.write, 5

    def write(handle: int, data: bytes) -> int:
        nonlocal room
        if not room:
            full()
        written = really(handle, data[:room])
        room -= written
        return written

    async def work() -> None:
        nonlocal room
        store = LogStore(tmp_path)
        store.open()
        copies = LogCopies(cast(Transport, PrintsOnce()), "x", store)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            copies.follow(QUIET, "a")
            await asyncio.sleep(100)
            log = Path(store.path(QUIET, "all"))
            assert log.read_bytes() == b"one\nt"
            room = 1000
            await asyncio.sleep(100)
            assert log.read_bytes() == b"one\ntwo\n"
        await copies.close()

    virtually(work())


class PrintsWithoutEnd(QuietTasks):
    """A cluster whose tasks print 8 KiB every second."""

    @asynccontextmanager
    async def stream(self, call: Call, *, idle: float, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            for second in range(1000):
                yield f"2024-05-01T10:{second // 60 % 60:02}:{second % 60:02}.5Z {'x' * 8191}\n".encode()
                await asyncio.sleep(1.5)
            await asyncio.Event().wait()

        yield chunks()


def test_of_an_endless_log_the_newest_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        store = LogStore(tmp_path)
        store.open()
        copies = LogCopies(cast(Transport, PrintsWithoutEnd()), "x", store, limit=64 * 1024)
        copies.follow(QUIET, "a")
        await asyncio.sleep(300)
        log = os.stat(store.path(QUIET, "all"))
        assert log.st_size > 150 * 8192, "what was printed keeps its place"
        assert log.st_blocks * 512 <= 64 * 1024 + 4096 + 8192
        await copies.close()

    virtually(work())


def test_a_full_disk_keeps_no_server_from_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        store = LogStore(tmp_path)
        store.open()
        copies = LogCopies(cast(Transport, PrintsOnce()), "x", store)
        for attempt in (QUIET, OTHER):
            copies.follow(attempt, "a")
        await asyncio.sleep(0.1)
        handles = [copy.handle for copy in copies._copies.values()]
        monkeypatch.setattr(copies, "_save", full)
        async with asyncio.timeout(60):
            await copies.close()
        for handle in handles:
            with pytest.raises(OSError):
                os.fstat(handle)

    virtually(work())
