"""A pool of worker processes, each of which runs one call at a time.

A call is a function of a module and its arguments, pickled in both directions over the worker's pipes. A worker is
killed when it exceeds a limit or when its caller is cancelled; the next call starts another one. Idle workers end after
a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeVar

from corral.kernel.errors import TooManyRequests, Unavailable
from corral.workers.fair_semaphore import FairSemaphore

Answer = TypeVar("Answer")
INLINE_BYTES: Final = 16 * 1024
"""Largest document, in bytes, that front handles itself; handing it to a worker would take longer."""
LENGTH: Final = 8
"""Bytes of the length field before each message."""
_IDLE_SECONDS: Final = 60.0
_MOST_ANSWER: Final = 256 << 20


class Limits(NamedTuple):
    """Resource limits of one call."""

    memory: int = 1 << 30
    """Bytes of the worker's address space (RLIMIT_AS), libraries included."""
    cpu_seconds: int = 20


USUAL: Final = Limits()


class LimitExceeded(Exception):
    """The call exceeded its limit of memory, processor time or answer size; the message says which."""


class Worker:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Worker:
        """Start a process.

        Raises OSError when no process can be started.
        """
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "corral.workers"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")},
            )
        )

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Any:
        """Return the function's answer, or raise its exception.

        Raises LimitExceeded when the process ended before it answered, or when the answer is too long.
        """
        said, heard = self._process.stdin, self._process.stdout
        assert said is not None and heard is not None
        try:
            content = pickle.dumps((function, arguments, limits))
            said.write(len(content).to_bytes(LENGTH, "big") + content)
            await said.drain()
            size = int.from_bytes(await heard.readexactly(LENGTH), "big")
            if size > _MOST_ANSWER:
                raise LimitExceeded("its answer is too long")
            good, answer = pickle.loads(await heard.readexactly(size))  # noqa: S301 (our own process wrote it)
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.end()
            why = f"it took more than {limits.cpu_seconds} seconds of processor time, or too much memory"
            raise LimitExceeded(why) from None
        if not good:
            raise answer
        return answer

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode is None

    async def end(self) -> None:
        """Kill the process, even during a call."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


BUSY: Final = "busy"
TOO_MUCH: Final = "too-much-at-once"
CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""The caller (`user NAME` or `job ID`) that calls are counted for; set once a request is authenticated."""


class Workers:
    """Run at most `size` calls at once while at most `waiting` more wait.

    Callers take turns. One caller has at most half of all calls, running or waiting.
    """

    def __init__(self, size: int = 2, waiting: int = 16) -> None:
        self._turns = FairSemaphore(size)
        self._most = size + waiting
        self._most_of_one = max(1, self._most // 2)
        self._inside: Counter[str] = Counter()
        self._free: list[tuple[Worker, asyncio.TimerHandle]] = []
        self._ending: set[asyncio.Task[None]] = set()

    def check_room(self) -> None:
        """Check that a call could be made now.

        Raises Unavailable `busy` when all places are taken, TooManyRequests `too-much-at-once` when the caller has its
        half.
        """
        caller = CALLER.get()
        if self._inside.total() >= self._most:
            message = "The server has too many large requests to work on; try again in a few seconds."
            raise Unavailable(BUSY, message, retry_after=5)
        if caller and self._inside[caller] >= self._most_of_one:
            message = (
                f"The server works on {self._inside[caller]} large requests of yours; send more when they are done."
            )
            raise TooManyRequests(TOO_MUCH, message, retryAfter=5)

    async def call(self, function: Callable[..., Answer], *arguments: Any, limits: Limits = USUAL) -> Answer:
        """Call a module-level function in a process with these limits; cancelling the caller kills the process.

        Raises the function's exception, LimitExceeded, Unavailable `no-worker`, and the exceptions of `check_room`.
        """
        self.check_room()
        caller = CALLER.get()
        self._inside[caller] += 1
        try:
            await self._turns.acquire(caller)
            try:
                return await self._call(function, arguments, limits)  # type: ignore[no-any-return]
            finally:
                self._turns.release()
        finally:
            self._inside -= Counter([caller])

    async def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Any:
        try:
            worker = self._take() or await Worker.start()
        except OSError as error:
            message = f"The server cannot start a worker process ({error.strerror}); try again in a few seconds."
            raise Unavailable("no-worker", message, retry_after=5) from error
        answered = False
        try:
            answer = await worker.call(function, arguments, limits)
            answered = True
            return answer
        except LimitExceeded:
            raise
        except asyncio.CancelledError:
            raise
        except Exception:
            answered = True
            raise
        finally:
            if answered and worker.alive():
                self._keep(worker)
            else:
                self._let_end(worker)

    def _take(self) -> Worker | None:
        while self._free:
            worker, timer = self._free.pop()
            timer.cancel()
            if worker.alive():
                return worker
        return None

    def _keep(self, worker: Worker) -> None:
        timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._drop, worker)
        self._free.append((worker, timer))

    def _drop(self, worker: Worker) -> None:
        self._free = [each for each in self._free if each[0] is not worker]
        self._let_end(worker)

    def _let_end(self, worker: Worker) -> None:
        task = asyncio.create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all processes."""
        free, self._free = self._free, []
        for worker, timer in free:
            timer.cancel()
            self._let_end(worker)
        await asyncio.gather(*self._ending, return_exceptions=True)
