"""New bytes of a log go to the archive, return complete on an empty disk, and are readable there by any replica."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput, Unavailable
from corral.kernel.ids import AttemptId, attempt_id
from corral.storage.log_archive import ArchivedLog, LogArchive
from corral.storage.log_archiver import LogArchiver
from tests.storage.moody import JOB, TASK, Machine, Moody, whole


@pytest.fixture
def remote() -> Moody:
    return Moody()


@pytest.fixture
def archive(remote: Moody) -> LogArchive:
    return remote.archive()


@pytest.fixture
def one(tmp_path: Path, archive: LogArchive) -> Machine:
    return Machine(tmp_path / "one", archive)


@pytest.fixture
def two(tmp_path: Path, archive: LogArchive) -> Machine:
    return Machine(tmp_path / "two", archive)


async def test_a_growing_log_comes_back_whole_with_the_place_of_its_follower(one: Machine, two: Machine) -> None:
    expected = b""
    for number in range(20):
        expected += (data := os.urandom(1000 * number))
        one.write(data)
        one.grows(f"{number}.000000001.2.3")
        await one.archiver.sweep()
    assert await two.archiver.restore(TASK) == ("19.000000001.2.3", len(expected))
    assert Path(two.store.path(TASK, "all")).read_bytes() == expected
    two.write(b"more")
    two.grows("20.0.0.0")
    await two.archiver.sweep()
    assert await two.archiver.restore(TASK) == ("20.0.0.0", len(expected) + 4)


async def test_a_restore_that_is_cancelled_writes_into_no_other_file(
    one: Machine, two: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.write(b"a line\n")
    one.grows()
    await one.archiver.sweep()
    writes, written = threading.Event(), threading.Event()
    pwrite = os.pwrite

    def slow(handle: int, data: bytes, at: int) -> int:
        writes.set()
        assert written.wait(120)
        return pwrite(handle, data, at)

    monkeypatch.setattr(os, "pwrite", slow)
    restoring = asyncio.create_task(two.archiver.restore(TASK))
    await asyncio.to_thread(writes.wait, 120)
    restoring.cancel()
    threading.Timer(0.2, written.set).start()
    with pytest.raises(asyncio.CancelledError):
        await restoring
    with open(tmp_path / "another", "wb") as another:  # it has the inode number of the log's file
        await asyncio.to_thread(written.wait, 120)
    assert Path(another.name).read_bytes() == b""
    assert Path(two.store.path(TASK, "all")).read_bytes() == b"a line\n"


async def test_a_restore_that_a_full_disk_cuts_off_says_so_and_goes_on_later(
    one: Machine, two: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.write(b"a line\nanother\n")
    one.grows()
    await one.archiver.sweep()
    pwrite, room = os.pwrite, 3

    def nearly_full(handle: int, data: bytes, at: int) -> int:
        if at >= room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(handle, data[: room - at], at)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", nearly_full)
        with pytest.raises(OSError, match="space"):
            await two.archiver.restore(TASK)
    await two.archiver.restore(TASK)
    assert Path(two.store.path(TASK, "all")).read_bytes() == b"a line\nanother\n"


async def test_what_did_not_grow_is_not_written_again_and_what_is_small_is_one_file(
    one: Machine, archive: LogArchive, remote: Moody
) -> None:
    for _ in range(5):
        one.write(b"a line\n")
        one.grows()
        await one.archiver.sweep()
    assert [segment.size for segment in (await archive.look(TASK, "all")).segments] == [35]
    written = remote.writes
    await one.archiver.sweep()
    assert remote.writes == written


async def test_a_large_log_is_segments_of_which_the_last_has_the_mark(one: Machine, two: Machine) -> None:
    data = os.urandom(20 << 20)
    one.write(data)
    one.grows("7.0.0.0")
    await one.archiver.sweep()
    there = await one.archiver.known(TASK)
    assert [segment.mark for segment in there.segments] == ["", "", "7.0.0.0"]
    assert await two.read() == data


async def test_an_ended_log_is_read_anywhere_and_leaves_the_machine_after_an_hour(one: Machine, two: Machine) -> None:
    path = one.write(b"first\nsecond\nthird")
    one.store.finish(TASK)
    assert await one.archiver.settle(TASK, 60.0)
    source = await two.shelf.source(TASK)
    assert isinstance(source, ArchivedLog)
    assert (await source.size(), await source.complete(), await source.tail(2)) == (18, True, 6)
    assert await source.read(6, 3) == (6, b"sec") and await source.read(18, 9) == (18, b"")
    assert await source.wait(17, 60.0) and not await source.wait(18, 60.0)
    await one.archiver.sweep()
    assert path.exists()
    later = LogArchiver(one.store, one.archiver.archive, wall=lambda: time.time() + 3601)
    await later.sweep()
    assert not path.parent.exists() and await one.read() == b"first\nsecond\nthird"


async def test_what_ended_while_the_store_was_away_is_archived_later(
    one: Machine, two: Machine, remote: Moody, tmp_path: Path
) -> None:
    remote.away = True
    one.write(b"kept")
    one.store.finish(TASK)
    assert not await one.archiver.settle(TASK, 0.01)
    await one.archiver.sweep()
    assert await one.read() == b"kept", "it is here, and that is enough"
    with pytest.raises(Unavailable):
        await two.shelf.source(TASK)
    remote.away = False
    again = Machine(tmp_path / "one", one.archiver.archive)  # the server was killed meanwhile
    await again.archiver.sweep()
    assert await two.read() == b"kept"


async def test_a_log_that_has_not_ended_is_not_said_to_be_archived(one: Machine, two: Machine) -> None:
    assert await one.archiver.settle(TASK, 60.0), "there is none"
    one.write(b"kept")
    assert not await one.archiver.settle(TASK, 0.01)
    one.store.finish(TASK)
    assert await one.archiver.settle(TASK, 60.0) and await two.read() == b"kept"


async def test_who_does_not_lead_copies_nothing(one: Machine, remote: Moody) -> None:
    one.write(b"x")
    one.store.finish(TASK)
    follower = LogArchiver(one.store, one.archiver.archive, leads=lambda: False)
    await follower.sweep()
    assert not remote.writes


async def test_the_logs_of_a_job_that_is_gone_go_in_both_places(
    one: Machine, archive: LogArchive, remote: Moody
) -> None:
    other = attempt_id("01jd3c9x8bbbb", 0, "worker", 0, 0)
    paths = [one.write(b"x"), one.write(b"y", other)]
    for attempt in (TASK, other):
        one.store.finish(attempt)
    await one.archiver.sweep()
    remote.away = True
    one.archiver.forget(JOB)
    await one.archiver.sweep()
    remote.away = False
    assert [path.exists() for path in paths] == [False, True]
    for _ in range(2):
        await one.archiver.sweep()
    assert not (await archive.look(TASK, "all")).segments and (await archive.look(other, "all")).complete


async def test_streams_that_a_task_keeps_apart_are_apart_in_the_archive(one: Machine, two: Machine) -> None:
    for path, data in zip(one.store.prepare(TASK, split=True), (b"out", b"err"), strict=True):
        Path(path).write_bytes(data)
    one.store.finish(TASK)
    await one.archiver.sweep()
    assert await two.shelf.streams(TASK) == ("stdout", "stderr")
    assert (await two.read(stream="stdout"), await two.read(stream="stderr")) == (b"out", b"err")
    with pytest.raises(InvalidInput, match="apart"):
        await two.shelf.source(TASK, "all")
    with pytest.raises(InvalidInput):
        await two.shelf.source(AttemptId("x/../../y"), "all")


async def test_an_empty_log_is_complete_in_the_archive_too(one: Machine, two: Machine) -> None:
    one.write(b"")
    one.store.finish(TASK)
    await one.archiver.sweep()
    source = await two.shelf.source(TASK)
    assert await source.complete() and source.exists() and not await source.wait(0, 60.0)


async def test_a_reader_goes_on_when_what_it_reads_is_written_again(one: Machine, archive: LogArchive) -> None:
    one.write(b"one\n")
    one.grows()
    await one.archiver.sweep()
    reader = ArchivedLog(archive, TASK, "all", await archive.look(TASK, "all"))
    one.write(b"two\n")
    one.grows("2.0.1.0")
    await one.archiver.sweep()
    assert await whole(reader) == b"one\ntwo\n"


def test_who_follows_the_archive_hears_what_is_added(one: Machine, archive: LogArchive) -> None:
    async def work() -> bytes:
        one.write(b"one\n")
        one.grows()
        await one.archiver.sweep()
        reader = ArchivedLog(archive, TASK, "all", await archive.look(TASK, "all"))
        waiting = asyncio.create_task(reader.wait(4, 60.0))
        await asyncio.sleep(0)
        one.write(b"two\n")
        one.store.finish(TASK)
        await one.archiver.sweep()
        assert await waiting
        return await whole(reader)

    assert asyncio.run(work()) == b"one\ntwo\n"


@given(st.lists(st.tuples(st.binary(max_size=600), st.integers(0, 3)), max_size=12))
def test_whoever_copies_in_whatever_order_the_archive_has_the_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bytes, int]]
) -> None:
    """Two replicas copy the same log in turns, each with outdated knowledge of the archive."""

    async def work() -> None:
        archive = Moody().archive()
        folder = tmp_path_factory.mktemp("turns")
        machines = [Machine(folder / name, archive) for name in ("a", "b")]
        for data, who in steps:
            for each in machines:
                each.write(data)
            if who < 2:
                machines[who].grows()
                await machines[who].archiver.sweep()
            elif who == 2:
                machines[0].archiver.begun(TASK)
        for each in machines:
            each.write(b"end")
            each.store.finish(TASK)
        await machines[1].archiver.sweep()
        expected = b"".join(data for data, _ in steps) + b"end"
        third = Machine(folder / "c", archive)
        assert await third.read() == expected
        await third.archiver.restore(TASK)
        assert Path(third.store.path(TASK, "all")).read_bytes() == expected

    asyncio.run(work())
