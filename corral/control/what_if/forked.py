"""Compute in a forked copy of this process, which holds the whole state as it is at the moment of the fork.

The child shares the parent's memory until either writes to it, so a question costs the parent only the fork (some
milliseconds). The child must compute only: other threads are gone in it, and a lock of a library that one of them held
stays locked. HiGHS, which keeps threads, begins anew there (`scheduler/policy/highs_threads.py`). The child has no
descriptor but its pipe, ends with its parent, and is killed when it takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import signal
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

import msgspec

from corral.kernel.errors import CorralError, Unavailable

_PR_SET_PDEATHSIG: Final = 1
_MOST_ANSWER: Final = 256 << 20
_DONE, _REFUSED, _TOO_LARGE, _FAILED = b"D", b"R", b"M", b"F"
_LIBC: Final = ctypes.CDLL(None)


class ForkLimits(NamedTuple):
    """What a forked computation may use."""

    memory: int = 1 << 30
    """Bytes of address space on top of what this process has."""
    seconds: float = 60.0
    advice: str = "look less far ahead, change less, or draw fewer courses"
    """What to do when it exceeds one of both."""


class ForkRefused(CorralError):
    """The error that the computation raised, with its code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status


class _Refusal(msgspec.Struct):
    status: int
    code: str
    message: str


USUAL: Final = ForkLimits()


class Fork:
    """A forked child that computes; ask for its answer at most once, and end it in any case."""

    def __init__(self, compute: Callable[[], bytes], limits: ForkLimits) -> None:
        """Fork at once. Raises Unavailable `question-busy` if no process can be started."""
        self._limits = limits
        self._reader, writer = os.pipe()
        parent = os.getpid()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # no handler of ours in the child
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _live(compute, writer, limits, parent)
        except OSError as error:
            os.close(self._reader)
            message = f"No process can be started for the question ({error.strerror}); ask again in a moment."
            raise Unavailable("question-busy", message, retry_after=60) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(writer)
        self._handle = os.pidfd_open(self._pid)

    async def answer(self) -> bytes:
        """Return what `compute` returned.

        Raises the CorralError that it raised (with its code, message and status), and Unavailable `question-too-large`
        or `question-too-long` when it exceeded a limit, `question-failed` when it failed in any other way.
        """
        seconds = self._limits.seconds
        reader, self._reader = self._reader, -1
        try:
            async with asyncio.timeout(seconds):
                found = await _read(reader)
        except TimeoutError:
            message = f"The question was not answered in {seconds:g} seconds; {self._limits.advice}."
            raise Unavailable("question-too-long", message, retry_after=60) from None
        return _answer(found, self._limits.advice)

    async def end(self) -> None:
        """End the child if it still runs, and wait until it is gone; call it once."""
        if self._reader >= 0:  # the caller was cancelled before it asked for the answer
            os.close(self._reader)
            self._reader = -1
        await asyncio.shield(asyncio.to_thread(self._end))

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        os.close(self._handle)
        with contextlib.suppress(ChildProcessError):  # somebody else has reaped it
            os.waitpid(self._pid, 0)


def _answer(found: bytes, advice: str) -> bytes:
    kind, content = found[:1], found[1:]
    if kind == _DONE:
        return content
    if kind == _REFUSED:
        said = msgspec.msgpack.decode(content, type=_Refusal)
        raise ForkRefused(said.status, said.code, said.message)
    if kind == _TOO_LARGE:
        message = f"The question needs more memory than it may have; {advice}."
        raise Unavailable("question-too-large", message, retry_after=60)
    why = content.decode(errors="replace") or "its process was killed"
    raise Unavailable("question-failed", f"The question could not be answered: {why}.", retry_after=60)


async def _read(descriptor: int) -> bytes:
    """Read a pipe to its end, at most `_MOST_ANSWER` bytes, and close it.

    No transport reads it: uvloop's closes the descriptor and then the file object of it, or leaves the second to the
    garbage collection when its caller is cancelled. What another thread opened in between under that number was closed.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    parts, size = [], 0
    os.set_blocking(descriptor, False)
    try:
        loop.add_reader(descriptor, readable.set)
        while size <= _MOST_ANSWER:
            await readable.wait()
            readable.clear()
            try:
                part = os.read(descriptor, 1 << 20)
            except BlockingIOError:  # asyncio's own loop tells of what the last read has taken once more
                continue
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return b"".join(parts)


def _live(compute: Callable[[], bytes], writer: int, limits: ForkLimits, parent: int) -> NoReturn:
    """The whole life of the child; it never returns into the caller's frames, which may hold on to descriptors."""
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            _close_others(writer)
            _limit(limits)
            _write(writer, _computed(compute))
    finally:
        os._exit(0)


def _computed(compute: Callable[[], bytes]) -> bytes:
    gc.freeze()  # a collection must not write to every page of the parent's memory
    try:
        return _DONE + compute()
    except CorralError as error:
        return _REFUSED + msgspec.msgpack.encode(_Refusal(error.status, error.code, error.message))
    except MemoryError:
        return _TOO_LARGE
    except Exception as error:  # whatever it is, the asker hears of it
        return _FAILED + f"{type(error).__name__}: {error}"[:500].encode()


def _close_others(kept: int) -> None:
    """Close every other descriptor, so that no lock, connection or pipe end of the parent is held on to."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) != kept:
            with contextlib.suppress(OSError):  # the one that listed the folder is closed
                os.close(int(name))


def _limit(limits: ForkLimits) -> None:
    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
