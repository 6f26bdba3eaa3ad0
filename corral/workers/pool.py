"""A pool of worker processes, each of which does one call at a time.

A call is a function of a module and its arguments, pickled both ways over the worker's pipes. A worker that passes a limit,
or whose caller leaves, is killed; the next call starts another one. Workers without work end after a minute.
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
from corral.workers.turns import Turns

Answer = TypeVar("Answer")
LENGTH: Final = 8
"""Bytes before each message that say how long it is."""
_IDLE_SECONDS: Final = 60.0
_MOST_ANSWER: Final = 256 << 20


class Limits(NamedTuple):
    """What one call may use."""

    memory: int = 1 << 30
    """Bytes of address space of its process, the libraries included."""
    cpu_seconds: int = 20


USUAL: Final = Limits()


class PastLimits(Exception):
    """The call used more memory or processor time than it may; the message says which."""


class Worker:
    """One process, started when first needed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Worker:
        """Raises OSError when no process can be started."""
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
        """The function's answer, or what it raised.

        Raises PastLimits when the process ended instead.
        """
        said, heard = self._process.stdin, self._process.stdout
        assert said is not None and heard is not None
        try:
            content = pickle.dumps((function, arguments, limits))
            said.write(len(content).to_bytes(LENGTH, "big") + content)
            await said.drain()
            size = int.from_bytes(await heard.readexactly(LENGTH), "big")
            if size > _MOST_ANSWER:
                raise PastLimits("its answer is too long")
            good, answer = pickle.loads(await heard.readexactly(size))  # noqa: S301 (our own process wrote it)
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.end()
            why = f"it took more than {limits.cpu_seconds} seconds of processor time, or too much memory"
            raise PastLimits(why) from None
        if not good:
            raise answer
        return answer

    def alive(self) -> bool:
        """Whether its process has not ended."""
        return self._process.returncode is None

    async def end(self) -> None:
        """Kill it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


BUSY: Final = "busy"
TOO_MUCH: Final = "too-much-at-once"
CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""For whom a call is made; set where callers are known."""


class Workers:
    """At most `size` calls at once; at most `waiting` more wait, and callers take turns. One has half of all at most."""

    def __init__(self, size: int = 2, waiting: int = 16) -> None:
        self._turns = Turns(size)
        self._most = size + waiting
        self._most_of_one = max(1, self._most // 2)
        self._inside: Counter[str] = Counter()
        self._free: list[tuple[Worker, asyncio.TimerHandle]] = []
        self._ending: set[asyncio.Task[None]] = set()

    def check_room(self) -> None:
        """Whether a call could be made now.

        Raises Unavailable `busy`, and TooManyRequests `too-much-at-once`.
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
        """Call a function of some module in a process with these limits; a caller that is cancelled ends it.

        Raises what the function raises, PastLimits, and as `check_room` when too many calls wait.
        """
        self.check_room()
        caller = CALLER.get()
        self._inside[caller] += 1
        try:
            await self._turns.enter(caller)
            try:
                return await self._call(function, arguments, limits)  # type: ignore[no-any-return]
            finally:
                self._turns.leave()
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
        except PastLimits:
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
        """End the processes."""
        free, self._free = self._free, []
        for worker, timer in free:
            timer.cancel()
            self._let_end(worker)
        await asyncio.gather(*self._ending, return_exceptions=True)
