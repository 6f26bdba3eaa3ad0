"""Log readers see every byte once, as soon as it is written, until the log is complete."""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.ids import AttemptId
from corral.storage import inotify
from corral.storage.log_files import LogStore

ATTEMPT = AttemptId("0123456789abc.0.worker.0.0")


@pytest.fixture
def logs(tmp_path: Path) -> LogStore:
    store = LogStore(tmp_path / "logs")
    store.open()
    return store


def append(logs: LogStore, data: bytes, stream: str = "all") -> None:
    logs.prepare(ATTEMPT)
    with open(logs.path(ATTEMPT, stream), "ab") as file:
        file.write(data)


async def test_a_range_is_read_where_it_was_asked_for(logs: LogStore) -> None:
    append(logs, b"0123456789")
    assert await logs.read(ATTEMPT, "all", 2, 3) == b"234"
    assert await logs.read(ATTEMPT, "stdout", 8, 100) == b"89"
    assert await logs.read(ATTEMPT, "all", 10, 5) == await logs.read(ATTEMPT, "all", 99, 5) == b""


async def test_a_follower_that_came_first_sees_everything(logs: LogStore) -> None:
    """Before the job's folder, before the file, while it grows, to its end."""
    source = logs.source(ATTEMPT)
    waiting = asyncio.create_task(source.wait(0, 60))
    await asyncio.sleep(0)
    append(logs, b"")
    assert not waiting.done()
    append(logs, b"one\n")
    assert await waiting
    assert await source.read(0, 100) == (0, b"one\n")
    waiting = asyncio.create_task(source.wait(4, 60))
    await asyncio.sleep(0)
    append(logs, b"two\n")
    assert await waiting
    logs.finish(ATTEMPT)
    assert await source.wait(4, 60)
    assert not await source.wait(8, 60)
    await source.close()


async def test_a_file_that_comes_while_its_folder_begins_to_be_watched_is_followed(
    logs: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.prepare(ATTEMPT)
    source = logs.source(ATTEMPT)
    watching = source._watching

    def watching_before_it_comes() -> inotify.Watch:
        watch = watching()
        append(logs, b"")
        return watch

    monkeypatch.setattr(source, "_watching", watching_before_it_comes)
    waiting = asyncio.create_task(source.wait(0, 3600))
    await asyncio.sleep(0)
    append(logs, b"one\n")
    async with asyncio.timeout(120):
        assert await waiting
    await source.close()


async def test_a_folder_that_comes_just_before_the_one_above_is_watched_is_watched_too(
    logs: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, watch = logs.source(ATTEMPT), inotify.Watcher.watch

    def watch_after_it_came(watcher: inotify.Watcher, path: str, mask: int) -> inotify.Watch:
        logs.prepare(ATTEMPT)
        return watch(watcher, path, mask)

    with monkeypatch.context() as patch:
        patch.setattr(inotify.Watcher, "watch", watch_after_it_came)
        waiting = asyncio.create_task(source.wait(0, 3600))
        await asyncio.sleep(0)
    append(logs, b"one\n")
    async with asyncio.timeout(120):
        assert await waiting
    await source.close()


async def test_followers_look_again_when_the_kernel_had_no_room_for_all_changes(
    logs: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(logs, b"")
    watcher = inotify.watcher()
    watches = [watcher.watch(logs.path(ATTEMPT, "all")), watcher.watch(str(logs.root))]
    overflow = struct.pack("iIII", -1, 0x4000, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", lambda *_: overflow)
        watcher._wake()
    assert [watch.changed.is_set() for watch in watches] == [True, True]
    for watch in watches:
        watch.close()


async def test_many_followers_of_one_growing_log_all_get_the_same(logs: LogStore) -> None:
    append(logs, b"")

    async def followed() -> bytes:
        return b"".join([piece async for piece in logs.follow(ATTEMPT)])

    followers = [asyncio.create_task(followed()) for _ in range(20)]
    written = b""
    for number in range(200):
        line = f"{number} ".encode() * 50 + b"\n"
        append(logs, line)
        written += line
        await asyncio.sleep(0)
    logs.finish(ATTEMPT)
    assert set(await asyncio.gather(*followers)) == {written}


@pytest.mark.parametrize(
    ("text", "lines", "offset"),
    [
        (b"", 5, 0),
        (b"a\nb\nc\n", 1, 4),
        (b"a\nb\nc\n", 2, 2),
        (b"a\nb\nc\n", 3, 0),
        (b"a\nb\nc\n", 9, 0),
        (b"a\nb\nc", 1, 4),
        (b"a\nb\nc", 2, 2),
        (b"a\nb\n", 0, 4),
        (b"x" * 300_000 + b"\ny\n", 1, 300_001),
        (b"x" * 300_000 + b"\n" + b"y" * 300_000 + b"\n", 1, 300_001),
        (b"x" * 300_000 + b"\n" + b"y" * 300_000 + b"\n", 2, 0),
    ],
)
async def test_the_tail_begins_at_a_line(logs: LogStore, text: bytes, lines: int, offset: int) -> None:
    append(logs, text)
    source = logs.source(ATTEMPT)
    assert await source.tail(lines) == offset
    await source.close()


async def test_a_dropped_head_keeps_offsets_and_says_where_the_rest_begins(logs: LogStore) -> None:
    append(logs, b"a" * 100_000 + b"b" * 100_000)
    logs.drop_head(ATTEMPT, 100_000)
    assert os.stat(logs.path(ATTEMPT, "all")).st_size == 200_000
    source = logs.source(ATTEMPT)
    begin, data = await source.read(0, 200_000)
    assert 90_000 < begin <= 100_000 and data.endswith(b"b" * 100_000) and b"\0" not in data
    assert await source.read(150_000, 10) == (150_000, b"b" * 10)
    await source.close()


async def test_a_log_that_its_task_emptied_is_followed_from_its_new_beginning(logs: LogStore) -> None:
    append(logs, b"before\n")
    source = logs.source(ATTEMPT)
    assert await source.read(0, 100) == (0, b"before\n")
    assert await source.read(100, 100) == (100, b"")
    os.truncate(logs.path(ATTEMPT, "all"), 0)
    append(logs, b"new\n")
    assert await source.wait(7, 60)
    assert await source.read(7, 100) == (0, b"new\n")
    logs.finish(ATTEMPT)
    assert not await source.wait(4, 60)
    await source.close()


async def test_streams_kept_apart_are_two_logs(logs: LogStore) -> None:
    out, err = logs.prepare(ATTEMPT, split=True)
    Path(out).write_bytes(b"out")
    Path(err).write_bytes(b"err")
    assert await logs.read(ATTEMPT, "stdout", 0, 9) == b"out"
    assert await logs.read(ATTEMPT, "stderr", 0, 9) == b"err"
    with pytest.raises(InvalidInput, match="keeps its streams apart"):
        logs.source(ATTEMPT, "all")
    assert logs.finish(ATTEMPT) == 6


async def test_what_cannot_be_read_is_refused_in_a_sentence(logs: LogStore) -> None:
    with pytest.raises(NotFound, match="no log"):
        await logs.read(ATTEMPT, "all", 0, 1)
    with pytest.raises(InvalidInput, match="into one log"):
        logs.source(ATTEMPT, "stderr")
    with pytest.raises(InvalidInput, match="no stream"):
        logs.source(ATTEMPT, "stdin")
    for wrong in ("nonsense", "a.0.../../etc/passwd.0.0"):
        with pytest.raises(InvalidInput):
            logs.source(AttemptId(wrong))


async def test_a_link_put_in_a_logs_place_is_not_followed(logs: LogStore, tmp_path: Path) -> None:
    logs.prepare(ATTEMPT)
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", logs.path(ATTEMPT, "all"))
    with pytest.raises(OSError, match="symbolic"):
        await logs.read(ATTEMPT, "all", 0, 100)


def test_logs_of_a_job_are_removed_together(logs: LogStore) -> None:
    append(logs, b"x")
    logs.remove("0123456789abc")
    logs.remove("0123456789abc")
    assert not list(logs.root.iterdir())
