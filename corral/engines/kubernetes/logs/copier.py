"""Copy pods' logs into the log store as they grow, where all other logs are read.

A log is followed while a connection is free, and otherwise polled every few seconds. The read position is stored beside
the copy, and in the archive if there is one, so that the next server resumes there. Log errors never end a task or keep
it from ending: a part that cannot be read or written becomes a marker in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import msgspec

from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.errors import Silent
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.logs.log_lines import LogLines, Position
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.template import TASK
from corral.kernel.errors import CorralError, NotFound
from corral.kernel.ids import AttemptId
from corral.runtime.patterns import tail_of
from corral.storage.log_archiver import Growing, LogArchiver
from corral.storage.log_files import LogStore

_log = logging.getLogger(__name__)
_FOLLOWED = 200
"""Concurrent connections for logs. The logs of further tasks are polled."""
_IDLE_SECONDS = 600.0
_ASK_SECONDS = 10.0
_ANSWER_SECONDS = 0.2
_LAST_SECONDS = 10.0
_SAVE_SECONDS = 1.0
_MOST_BESIDE = 64 * 1024
GONE = b"[corral: the pod is gone; what it printed last may be missing]\n"
CUT = b"[corral: the end of the log could not be written; it is missing]\n"
Copying = Literal["follow", "end", "off"]
"""When logs are copied: continuously, once at the end, or never."""


@dataclass(slots=True)
class _Copy:
    """The copy of one log."""

    attempt: AttemptId
    position: Position
    handle: int
    saved: Position
    saved_at: float = 0.0
    task: asyncio.Task[None] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    at_end: bool = False
    """Whether it was followed to the log's end."""
    restored: bool = False
    """Whether it has everything that an earlier server archived."""


@dataclass(slots=True)
class _Node:
    """Backoff state of a node: after a failure none of its logs is requested for a while."""

    backoff: Backoff
    silent_until: float = 0.0
    answers: bool = False
    """Whether its kubelet answered the last time. Until it has, only one log at a time is requested."""
    asked: bool = False


class LogCopies:
    """Copies the logs of running tasks into the log store."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        store: LogStore,
        copying: Copying = "follow",
        archiver: LogArchiver | None = None,
        limit: int = 0,
    ) -> None:
        """`archiver` has the copies of earlier servers. `limit` is the number of last bytes kept per log (0: all)."""
        self._transport, self._copying, self._archiver = transport, copying, archiver
        self._namespace = namespace
        self._store = store
        self._limit = limit
        self._copies: dict[AttemptId, _Copy] = {}
        self._places = asyncio.Semaphore(_FOLLOWED)
        self._nodes: dict[str, _Node] = {}

    def begun(self, attempt: AttemptId) -> None:
        """Record that the attempt starts here, so no other server has copied its log."""
        if self._archiver is not None:
            self._archiver.begun(attempt)

    def growing(self) -> Iterator[Growing]:
        """Yield the copies under way, each with the size that can be archived and its read position."""
        for copy in self._copies.values():
            place = copy.position
            if 0 < place.size <= os.fstat(copy.handle).st_size:
                yield Growing(copy.attempt, "all", place.size, place.mark())

    def follow(self, attempt: AttemptId, node: str) -> None:
        """Copy the log of an attempt on a node from now on. No effect if it is already followed or complete."""
        if attempt in self._copies or self._copying != "follow" or _complete(self._store.path(attempt, "all")):
            return
        try:
            copy = self._copies[attempt] = self._open(attempt)
        except OSError as error:
            _log.error("the log of %s cannot be copied: %s", attempt, error.strerror)
            return
        copy.task = asyncio.create_task(self._follow(copy, self._node(node)))

    async def finish(self, attempt: AttemptId, *, readable: bool, beside: str = "") -> int:
        """Copy the rest of the log if it can be read, and close it. Return its size in bytes.

        The output of a container `beside` is copied after the task's. Each takes at most `_LAST_SECONDS`. A log whose
        end cannot be written is complete without it.
        """
        if _complete(self._store.path(attempt, "all")):
            return self._store.finish(attempt)
        copy = self._copies.pop(attempt, None) or self._open(attempt)
        copy.ended.set()
        try:
            if self._copying == "off":
                command = f"kubectl logs -n {self._namespace} {pod_name(attempt)} -c {TASK}"
                said = f"[corral: logs are not copied from this cluster; while there is a pod: {command}]\n"
                _write(copy, said.encode())
            else:
                await self._complete(copy, readable=readable, beside=beside)
        except OSError as error:
            _log.error("the log of %s could not be completed: %s", attempt, error)
            with contextlib.suppress(OSError):  # a full disk has no room for the marker either
                _write(copy, CUT)
        finally:
            await _close(copy)
        return self._store.finish(attempt)

    async def _complete(self, copy: _Copy, *, readable: bool, beside: str) -> None:
        """Copy the rest of the log, or add a marker that it is missing."""
        if copy.task is not None:
            if not readable:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_SAVE_SECONDS):
                        await asyncio.shield(copy.task)
            await _end(copy)
        if await self._ended_before(copy):
            return
        if readable:
            await self._read_end(copy)
            if beside:
                await self._read_beside(copy, beside)
        elif not copy.at_end:
            _write(copy, GONE)
        self._save(copy)

    def tail(self, attempt: AttemptId) -> bytes:
        """Return the last bytes of the copy."""
        return tail_of(self._store.path(attempt, "all"))

    async def close(self) -> None:
        """Stop following all logs and save their read positions."""
        copies, self._copies = list(self._copies.values()), {}
        for copy in copies:
            await _end(copy)
            try:
                self._save(copy)
            except OSError as error:
                _log.warning("how far the log of %s was read could not be saved: %s", copy.attempt, error)
            os.close(copy.handle)

    def _open(self, attempt: AttemptId) -> _Copy:
        path, _ = self._store.prepare(attempt)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        position = _saved(self._store.path(attempt, "position"))
        return _Copy(attempt, position, handle, position)

    def _node(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node(Backoff(low=2.0, high=60.0, seed=name, ids=("logs",))))

    async def _restore(self, copy: _Copy) -> None:
        """Restore the part that an earlier server archived, and resume at its end."""
        if self._archiver is not None and not copy.restored:
            mark, at = await self._archiver.restore(copy.attempt)
            if at > copy.position.size:
                copy.position = Position.of_mark(mark, at)
        copy.restored = True

    async def _restore_first(self, copy: _Copy) -> None:
        """Wait for the archived part, unless a local copy exists: its lines need not be fetched again."""
        backoff = Backoff(low=1.0, high=60.0, seed=copy.attempt, ids=("archive",))
        while not copy.restored and not copy.ended.is_set():
            try:
                await self._restore(copy)
            except (CorralError, OSError) as error:
                if os.fstat(copy.handle).st_size:
                    return
                _log.warning("the log of %s waits for its archived part: %s", copy.attempt, error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(backoff.next()):
                        await copy.ended.wait()

    async def _ended_before(self, copy: _Copy) -> bool:
        """Return whether an earlier server archived the whole log, restored here.

        Without an answer the log is read anew.
        """
        if self._archiver is None:
            return False
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._restore(copy)
                return (await self._archiver.known(copy.attempt)).complete
        except (CorralError, OSError) as error:  # includes TimeoutError
            _log.warning("the archived part of the log of %s could not be had: %s", copy.attempt, error)
            return False

    async def _follow(self, copy: _Copy, node: _Node) -> None:
        await self._restore_first(copy)
        now = asyncio.get_running_loop().time
        while True:
            wait = node.silent_until - now()
            if wait <= 0 and node.asked and not node.answers:
                wait = _ANSWER_SECONDS
            try:
                if wait <= 0:
                    wait = await self._ask(copy, node)
                    node.backoff.reset()
            except NotFound:
                return
            except Silent:
                wait = _SAVE_SECONDS  # a task that prints nothing says nothing about its node
            except CorralError as error:
                _log.debug("the log of %s is interrupted: %s", copy.attempt, error.message)
                wait = node.backoff.next()
                node.silent_until, node.answers = now() + wait, False
            except OSError as error:
                _log.warning("the log of %s cannot be written: %s", copy.attempt, error)
                wait = node.backoff.next()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await copy.ended.wait()
                    return

    async def _ask(self, copy: _Copy, node: _Node) -> float:
        node.asked = True
        try:
            return await self._try(copy, node)
        finally:
            node.asked = False

    async def _try(self, copy: _Copy, node: _Node) -> float:
        """Follow the log until the connection ends, or read it once.

        Return the seconds to wait before the next read.
        """
        if self._places.locked():
            await self._read(copy, node, follow=False)
            return _ASK_SECONDS
        async with self._places:
            await self._read(copy, node, follow=True)
        return _SAVE_SECONDS

    async def _read_end(self, copy: _Copy) -> None:
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._read(copy, follow=False)
        except (CorralError, TimeoutError) as error:
            why = error.message if isinstance(error, CorralError) else f"nothing came within {_LAST_SECONDS:g} s"
            _write(copy, f"[corral: the end of the log could not be read: {why}]\n".encode())

    async def _read_beside(self, copy: _Copy, container: str) -> None:
        """Append the output of another container of the pod, which is short."""
        call = Call("get", PODS, self._namespace, pod_name(copy.attempt), "log")
        params = {"container": container, "limitBytes": str(_MOST_BESIDE)}
        try:
            _write(copy, await self._transport.ask(call, params=params, deadline=_LAST_SECONDS))
        except CorralError as error:
            _write(copy, f"[corral: what moved the outputs could not be heard: {error.message}]\n".encode())

    async def _read(self, copy: _Copy, node: _Node | None = None, *, follow: bool) -> None:
        """Copy the log from one connection."""
        call = Call("get", PODS, self._namespace, pod_name(copy.attempt), "log")
        params = {"container": TASK, "timestamps": "true"} | ({"follow": "true"} if follow else {})
        if copy.position.since:
            params["sinceTime"] = _rfc3339(copy.position.since)
        lines = LogLines(copy.position, os.fstat(copy.handle).st_size)
        try:
            async with self._transport.stream(call, params=params, idle=_IDLE_SECONDS) as chunks:
                copy.at_end = False
                if node is not None:
                    node.answers = True
                async for chunk in chunks:
                    if data := lines.feed(chunk):
                        _write(copy, data)
                    copy.position = lines.position
                    self._save_sometimes(copy)
            copy.at_end = follow
        finally:
            self._save(copy)

    def _save_sometimes(self, copy: _Copy) -> None:
        now = asyncio.get_running_loop().time()
        if now - copy.saved_at >= _SAVE_SECONDS:
            copy.saved_at = now
            self._save(copy)
            if self._limit:
                self._shorten(copy.attempt)

    def _shorten(self, attempt: AttemptId) -> None:
        try:
            self._store.drop_head(attempt, self._limit)
        except OSError as error:
            _log.warning("The log of %s could not be shortened: %s", attempt, error)

    def _save(self, copy: _Copy) -> None:
        if copy.position == copy.saved:
            return
        path = self._store.path(copy.attempt, "position")
        with open(f"{path}.new", "wb") as file:
            file.write(msgspec.json.encode(copy.position))
        os.replace(f"{path}.new", path)
        copy.saved = copy.position


def _write(copy: _Copy, data: bytes) -> None:
    """Write everything. A nearly full disk takes a part and raises at the next write."""
    while data:
        data = data[os.write(copy.handle, data) :]


async def _end(copy: _Copy) -> None:
    """End the follower. `ended` is set too, because an OSError while saving can replace the cancellation."""
    copy.ended.set()
    if copy.task is not None:
        copy.task.cancel()
        await asyncio.gather(copy.task, return_exceptions=True)


async def _close(copy: _Copy) -> None:
    """Close the file after its follower has ended, as its descriptor number may be reused at once."""
    try:
        await _end(copy)
    finally:
        os.close(copy.handle)


def _complete(path: str) -> bool:
    """Return whether an earlier server finished the copy."""
    try:
        return not os.stat(path).st_mode & stat.S_IWUSR
    except FileNotFoundError:
        return False


def _saved(path: str) -> Position:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Position)
    except (FileNotFoundError, msgspec.DecodeError):
        return Position()


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
