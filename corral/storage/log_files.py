"""Task logs as plain files, which readers can follow while tasks append to them.

A log is complete when its file is no longer writable (mode 0440). The engine sets this when nothing of the attempt is
left, and a follower in another process is notified as of any change. Offsets never change: an old head is returned to
the disk by punching a hole, and reading starts after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple, Protocol

from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.storage import inotify

STREAMS = ("all", "stdout", "stderr")
PIECE = 256 * 1024
_OPEN, _COMPLETE = 0o640, 0o440
_KEEP_SIZE, _PUNCH_HOLE = 0x1, 0x2
_NO_WAIT: int = getattr(os, "RWF_NOWAIT", 0)


class EndedLog(NamedTuple):
    """A complete log, its size in bytes, and the time when it was completed (seconds since 1970)."""

    attempt: AttemptId
    stream: str
    size: int
    at: float


class LogStore:
    """The logs of all attempts under one folder: `JOB/REST-OF-ATTEMPT.STREAM`, one file for each stream.

    An attempt writes either `all` (both streams into one file, in the order of writing) or, when its job asks to keep
    them apart, `stdout` and `stderr`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> None:
        """Make the folder.

        Raises OSError when it cannot be made.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o711)

    def prepare(self, attempt: AttemptId, *, split: bool = False, uid: int = -1) -> tuple[str, str]:
        """Make the folder for an attempt's logs; returns the paths for its standard output and error.

        For a task under another uid the files are created with that owner, so that it can open them by name (`>
        /dev/stderr`).
        """
        try:
            os.mkdir(self._folder(attempt), 0o711)
        except FileExistsError:
            pass
        out, err = ("stdout", "stderr") if split else ("all", "all")
        paths = self.path(attempt, out), self.path(attempt, err)
        if uid >= 0:
            for path in set(paths):
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, _OPEN)
                os.fchown(handle, uid, -1)
                os.close(handle)
        return paths

    def path(self, attempt: AttemptId, stream: str) -> str:
        """The path of a stream of an attempt, whether it exists or not."""
        return f"{self._folder(attempt)}/{attempt.partition('.')[2]}.{stream}"

    def finish(self, attempt: AttemptId) -> int:
        """Mark the logs of an attempt as complete, which notifies followers; returns their total size in bytes."""
        total = 0
        for path in self._files(attempt):
            os.chmod(path, _COMPLETE)
            total += os.stat(path).st_size
        return total

    def drop_head(self, attempt: AttemptId, keep: int) -> None:
        """Return all but the last `keep` bytes of each stream to the disk.

        Raises OSError where the file system cannot punch holes.
        """
        for path in self._files(attempt):
            surplus = (os.stat(path).st_size - keep) // 4096 * 4096
            if surplus > 0:
                _punch(path, surplus)

    def remove(self, job: str) -> None:
        """Delete all logs of a job."""
        folder = f"{self.root}/{job}"
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return
        for name in names:
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)

    def has(self, attempt: AttemptId) -> bool:
        """Whether any log of the attempt is here."""
        return bool(self._files(attempt))

    def grows(self, attempt: AttemptId) -> bool:
        """Whether a log of the attempt is here that is not complete."""
        return len(self._files(attempt)) > len(self.ended_of(attempt))

    def streams(self, attempt: AttemptId) -> tuple[str, ...]:
        """The streams of an attempt's output: `all`, or `stdout` and `stderr` where they are kept apart."""
        return ("stdout", "stderr") if os.path.exists(self.path(attempt, "stdout")) else ("all",)

    def ended(self) -> list[EndedLog]:
        """Every complete log; reads the metadata of all files."""
        found = []
        for folder in os.scandir(self.root):
            if folder.is_dir(follow_symlinks=False):
                found += [log for file in _names(folder.path) if (log := _ended(folder.name, folder.path, file))]
        return found

    def ended_of(self, attempt: AttemptId) -> list[EndedLog]:
        """The complete logs of one attempt."""
        job, _, rest = attempt.partition(".")
        return [log for each in STREAMS if (log := _ended(job, self._folder(attempt), f"{rest}.{each}"))]

    def drop(self, attempt: AttemptId, stream: str) -> None:
        """Delete one log that is archived."""
        for path in (self.path(attempt, stream), self.path(attempt, "position")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(self._folder(attempt))

    def source(self, attempt: AttemptId, stream: str = "all") -> LogFile:
        """A reader of one stream; without separate streams, `stdout` is `all`.

        Raises InvalidInput for a stream that the attempt does not have, or an invalid id.
        """
        name = name_of(attempt, stream, split=os.path.exists(self.path(attempt, "stdout")))
        return LogFile(self.path(attempt, name), str(self.root))

    async def read(self, attempt: AttemptId, stream: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes from `offset` on; fewer at the log's end.

        Raises NotFound when there is no log of the attempt here.
        """
        source = self.source(attempt, stream)
        try:
            if not source.exists():
                raise NotFound("no-log", f"There is no log of {attempt} here.")
            return (await source.read(offset, limit))[1]
        finally:
            await source.close()

    async def follow(self, attempt: AttemptId, stream: str = "all", offset: int = 0) -> AsyncIterator[bytes]:
        """The log from `offset` on as it grows, until it is complete; one piece at a time is in memory."""
        source = self.source(attempt, stream)
        try:
            while True:
                begin, data = await source.read(offset, PIECE)
                if data:
                    yield data
                    offset = begin + len(data)
                elif not await source.wait(offset, 3600.0):
                    return
        finally:
            await source.close()

    def _folder(self, attempt: AttemptId) -> str:
        return f"{self.root}/{attempt.partition('.')[0]}"

    def _files(self, attempt: AttemptId) -> list[str]:
        return [path for stream in STREAMS if os.path.exists(path := self.path(attempt, stream))]


class LogFile:
    """A reader of one stream of one attempt, which may grow and need not exist yet."""

    def __init__(self, path: str, root: str) -> None:
        self._path = path
        self._root = root
        self._handle = -1
        self._watch: inotify.Watch | None = None
        self._most = 0
        """The largest size in bytes that the file was seen to have."""

    def exists(self) -> bool:
        """Whether the log exists, even if it is empty."""
        return self._open()

    async def size(self) -> int:
        """The current size in bytes; a dropped head is counted."""
        return self._seen() if self._open() else 0

    async def complete(self) -> bool:
        """Whether nothing will be written any more."""
        return self._open() and not os.fstat(self._handle).st_mode & stat.S_IWUSR

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, with the offset at which they really begin: later if the head is gone.

        When a task truncates its own log (`> /dev/stderr` does), reading restarts at the beginning.
        """
        if not self._open():
            return offset, b""
        if self._emptied(offset):
            offset = self._most = 0
        size = self._seen()
        if offset >= size:
            return offset, b""
        begin = os.lseek(self._handle, offset, os.SEEK_DATA)
        buffer = bytearray(min(limit, size - begin))
        try:
            count = os.preadv(self._handle, [buffer], begin, _NO_WAIT)
        except OSError:  # not in memory (EAGAIN) or not supported (EOPNOTSUPP): a thread waits for it
            count = await asyncio.to_thread(os.preadv, self._handle, [buffer], begin)
        return begin, bytes(memoryview(buffer)[:count])

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        return await begin_of_tail(self, lines)

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False once the log is complete and has no more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            watch = self._watching()
            watch.changed.clear()
            complete = await self.complete()
            if self._open() and (self._emptied(offset) or self._seen() > offset):
                return True
            if complete:
                return False
            if self._watch is not watch:
                continue  # the file appeared while its folder was watched; watch the file now
            if loop.time() >= deadline:
                return True
            timer = loop.call_at(deadline, watch.changed.set)
            try:
                await watch.changed.wait()
            finally:
                timer.cancel()

    async def close(self) -> None:
        """Close the file."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _seen(self) -> int:
        size = os.fstat(self._handle).st_size
        self._most = max(self._most, size)
        return size

    def _emptied(self, offset: int) -> bool:
        return os.fstat(self._handle).st_size < offset <= self._most

    def _open(self) -> bool:
        if self._handle < 0:
            try:
                self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return False
            if self._watch is not None:  # it is the folder's; the file's own is needed now
                self._watch.close()
                self._watch = None
        return True

    def _watching(self) -> inotify.Watch:
        """A watch on the file; before it exists, on the folder in which it or its folder will appear."""
        try:
            if self._open():
                self._watch = self._watch or inotify.watcher().watch(self._path)
                return self._watch
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            folder = os.path.dirname(self._path)
            place = folder if os.path.isdir(folder) else self._root
            self._watch = inotify.watcher().watch(place, inotify.CREATE | inotify.MOVED_TO)
            if place != folder and os.path.isdir(folder):
                return self._watching()  # the folder appeared meanwhile
            return self._watch
        except OSError as error:
            message = f"Logs cannot be followed: {error.strerror}; raise fs.inotify.max_user_instances and _watches."
            raise Unavailable("no-inotify", message, retry_after=10) from error


class Readable(Protocol):
    """A log that can be read from any offset."""

    async def size(self) -> int:
        """The current size in bytes."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, with the offset at which they really begin."""
        ...


async def begin_of_tail(source: Readable, lines: int) -> int:
    """The offset at which the last `lines` lines begin."""
    end = await source.size()
    if lines <= 0 or not end:
        return end
    wanted, at = lines, end
    while at > 0:
        start = max(0, at - PIECE)
        begin, data = await source.read(start, at - start)
        if at == end and data.endswith(b"\n"):
            wanted += 1
        newlines = data.count(b"\n")
        if newlines >= wanted:
            position = len(data)
            for _ in range(wanted):
                position = data.rfind(b"\n", 0, position)
            return begin + position + 1
        wanted -= newlines
        if begin > start:
            return begin
        at = start
    return 0


def name_of(attempt: AttemptId, stream: str, *, split: bool) -> str:
    """The stored stream for a requested one; `split` says whether the attempt keeps its streams apart.

    Raises InvalidInput for a stream that the attempt does not have, or an invalid id.
    """
    if stream not in STREAMS:
        raise InvalidInput("unknown-stream", f"There is no stream {stream}; ask for all, stdout or stderr.")
    try:
        parse_attempt_id(attempt)
    except ValueError as error:
        raise InvalidInput("bad-attempt", f"{error}.") from None
    if "/" in attempt:
        raise InvalidInput("bad-attempt", f"{attempt!r} is not an attempt id.")
    if split and stream == "all":
        raise InvalidInput("streams-apart", "This task keeps its streams apart; ask for stdout or stderr (--stream).")
    if not split and stream == "stderr":
        raise InvalidInput("streams-together", "This task writes both streams into one log; ask for all.")
    return stream if split else "all"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _ended(job: str, folder: str, file: str) -> EndedLog | None:
    rest, _, stream = file.rpartition(".")
    if stream not in STREAMS or not rest:
        return None
    try:
        found = os.stat(f"{folder}/{file}", follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_mode & stat.S_IWUSR:
        return None
    return EndedLog(AttemptId(f"{job}.{rest}"), stream, found.st_size, found.st_ctime)


def _punch(path: str, length: int) -> None:
    """Free the first `length` bytes of a file without changing its size.

    Raises OSError when the file system cannot.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        offset = ctypes.c_long(0)
        if libc.fallocate(handle, _KEEP_SIZE | _PUNCH_HOLE, offset, ctypes.c_long(length)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)
