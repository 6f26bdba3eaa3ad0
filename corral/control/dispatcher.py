"""Send stored commands to the engines: in order for each attempt, at least once, and many attempts at once.

A command stays in the outbox until its engine call has returned; `done` collects the rows to delete with the next
commit. A start that an engine cannot carry out now is retried until a stop of the same attempt is stored. Then it is
given up, because a stop permanently ends an attempt that never started.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping

import structlog

from corral.control.task_launch import PlaceGone
from corral.engines.base import Engine, PendingStarts
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.commands import EngineCommand, ForgetTask, StartTask, StopTask
from corral.model.events import PlaceLost, StartRefused
from corral.model.exits import START_FAILED, classify
from corral.model.launch import Noted, TaskLaunch
from corral.model.store_writes import OutboxRow

log = structlog.get_logger()

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_AT_ONCE = 64
"""Starts in progress at once on one engine, and as many other commands: neither stops nor another engine's commands wait
for calls that hang.
"""
_MOST_NOTES = 5
"""Different causes that are reported to users while one start is retried."""
_LEASE_OVER = "lease-over"
STORAGE_AWAY = "storage-away"
"""The code of an engine's error for a storage that cannot be mounted now."""


class Dispatcher:
    """Sends commands to engines: first in, first out for each attempt, many attempts at once."""

    def __init__(
        self,
        engines: Mapping[str, Engine],
        render: Callable[[AttemptId], Awaitable[TaskLaunch | None]],
        engine_of: Callable[[AttemptId], str],
        refused: Callable[[StartRefused | PlaceLost], None],
        clock: Clock,
        lease_left: Callable[[], float],
        noted: Callable[[Noted], None],
    ) -> None:
        """`lease_left` returns the seconds that this control may still act; `noted` receives causes of delay."""
        self._noted = noted
        self._lease_left = lease_left
        self._engines = engines
        self._render = render
        self._engine_of = engine_of
        self._refused = refused
        self._clock = clock
        self._waiting: dict[AttemptId, deque[OutboxRow]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starts = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_AT_ONCE))
        self._others = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_AT_ONCE))
        self.done: list[int] = []
        """Outbox rows whose calls have returned; the loop deletes them with its next commit."""

    def feed(self, rows: Iterable[OutboxRow]) -> None:
        """Carry out these commands, which are stored already."""
        for row in rows:
            attempt = row.command.attempt
            if (queue := self._waiting.get(attempt)) is not None:
                queue.append(row)
                continue
            self._waiting[attempt] = deque([row])
            task = asyncio.create_task(self._drain(attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    @property
    def idle(self) -> bool:
        """Whether every command was carried out."""
        return not self._waiting

    async def close(self) -> None:
        """Stop; commands that were not carried out stay in the outbox for the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._waiting.clear()

    async def _drain(self, attempt: AttemptId) -> None:
        queue = self._waiting[attempt]
        while queue:
            await self._carry_out(queue)
            self.done.append(queue.popleft().seq)
        del self._waiting[attempt]

    async def _carry_out(self, queue: deque[OutboxRow]) -> None:
        """Call the engine for the first command until it succeeds, is refused or is given up.

        No slot is held between tries, so a command that waits delays no other attempt.
        """
        command = queue[0].command
        slots = self._slots(command)
        pause = _FIRST_PAUSE
        told: set[str] = set()
        while not _is_given_up(queue):
            async with slots:
                if _is_given_up(queue):
                    return
                delayed = await self._try(command)
            if delayed is None:
                return
            if isinstance(command, StartTask) and _is_news(delayed, told):
                told.add(delayed.message)
                reason = "FailedMount" if delayed.code == STORAGE_AWAY else "StartDelayed"
                self._noted(Noted(command.attempt, reason, delayed.message))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _slots(self, command: EngineCommand) -> asyncio.Semaphore:
        """The slots of the command's engine; commands whose engine is not known have some of their own."""
        try:
            engine = self._engine_of(command.attempt)
        except CorralError:
            engine = ""
        return (self._starts if isinstance(command, StartTask) else self._others)[engine]

    async def _try(self, command: EngineCommand) -> CorralError | None:
        """Call the engine once; returns the error if the call must be repeated, None after success or refusal."""
        try:
            await self._call(command)
        except Unavailable as error:
            log.warning("engine does not answer", attempt=command.attempt, code=error.code, message=error.message)
            return error
        except CorralError as error:
            self._give_up(command, error)
        except Exception as error:
            # This worker must never die: later commands of the attempt would be stuck.
            log.exception("engine failed", attempt=command.attempt)
            if not isinstance(command, StartTask) or isinstance(error, OSError):
                return _mistake(error)
            self._give_up(command, _mistake(error))
        return None

    async def _call(self, command: EngineCommand) -> None:
        if not self._lease_left():
            raise Unavailable(_LEASE_OVER, "This control does not know whether it still leads.")
        engine = self._engines[self._engine_of(command.attempt)]
        match command:
            case StartTask(attempt=attempt):
                launch = await self._rendered(attempt, engine)
                if launch is not None:
                    await engine.start(launch)
            case StopTask(attempt=attempt, grace_seconds=grace, signal=signal):
                await engine.stop(attempt, grace_seconds=grace, signal=signal)
            case ForgetTask(attempt=attempt):
                await engine.forget([attempt])

    async def _rendered(self, attempt: AttemptId, engine: Engine) -> TaskLaunch | None:
        """Render the launch; None when there is nothing to start.

        A framework may be a third-party plug-in, so any exception from it refuses this start only.
        """
        try:
            return await self._render(attempt)
        except CorralError:
            raise
        except PlaceGone as gone:
            if _never_starts(engine, attempt):  # otherwise it was started before, and its end will be seen
                self._refused(PlaceLost(attempt, str(gone)))
            return None
        except Exception as error:
            log.exception("launch could not be rendered", attempt=attempt)
            what = f"{type(error).__name__}: {error}"[:500]
            raise CorralError(
                "launch-not-rendered", f"The framework failed to say how the task starts: {what}."
            ) from error

    def _give_up(self, command: EngineCommand, error: CorralError) -> None:
        log.warning("command refused", attempt=command.attempt, code=error.code, message=error.message)
        if isinstance(command, StartTask):
            completion = classify(START_FAILED, f"{error.message} ({error.code})")
            self._refused(StartRefused(command.attempt, self._clock.now(), completion))


def _never_starts(engine: Engine, attempt: AttemptId) -> bool:
    """Whether a start has not taken effect and will not: no other attempt may run before that is certain."""
    if isinstance(engine, PendingStarts):
        return engine.withdraw(attempt)
    return attempt not in engine.attempts()


def _is_news(delayed: CorralError, told: set[str]) -> bool:
    return delayed.code != _LEASE_OVER and delayed.message not in told and len(told) < _MOST_NOTES


def _is_given_up(queue: deque[OutboxRow]) -> bool:
    """Whether the first command is a start with a stop of the same attempt queued behind it."""
    stopped = any(isinstance(row.command, StopTask) for row in queue)
    return stopped and isinstance(queue[0].command, StartTask)


def _mistake(error: Exception) -> CorralError:
    """The error for users after an unexpected engine failure.

    The exception's text is left out, because it may quote secrets.
    """
    return CorralError(
        "engine-failed", f"The engine failed to start the task ({type(error).__name__}), see the server's log."
    )
