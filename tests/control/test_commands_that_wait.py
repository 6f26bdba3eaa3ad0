"""A command that waits for a slow engine does not delay commands of other attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from corral.control.dispatcher import Dispatcher
from corral.engines.base import Engine
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, JobId
from corral.model.commands import ForgetTask, StartTask, StopTask
from corral.model.launch import Noted, TaskLaunch
from corral.model.store_writes import OutboxRow
from tests.engines.kubernetes.virtual_time import virtually

ATTEMPTS = [AttemptId(f"0mabcdefgh123.0.worker.{index}.0") for index in range(201)]
FREE = ATTEMPTS[-1]
JOB = JobId("0mabcdefgh123")


class Deaf:
    """An engine that answers for one attempt only, and counts concurrent calls."""

    def __init__(self) -> None:
        self.calls: list[AttemptId] = []
        self.stopped = asyncio.Event()
        self.at_once = self.most_at_once = 0

    async def start(self, launch: TaskLaunch) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        self.calls.append(launch.attempt)
        if launch.attempt != FREE:
            raise Unavailable("kubernetes-silent", "It does not answer.")

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        self.stopped.set()


def dispatcher_of(
    engine: object, noted: Callable[[Noted], None] = lambda note: None, other: object = None
) -> Dispatcher:
    """A dispatcher over an engine, and another one that has the attempt `FREE` if there is any."""

    async def render(attempt: AttemptId) -> TaskLaunch:
        return TaskLaunch(attempt, "ada", "paper/a", ("true",), {})

    return Dispatcher(
        {"paper": cast(Engine, engine), "other": cast(Engine, other)},
        render,
        lambda attempt: "other" if other is not None and attempt == FREE else "paper",
        lambda event: None,
        VirtualClock(),
        lambda: 3.0,
        noted,
    )


def test_commands_that_an_engine_never_answers_leave_room_for_others() -> None:
    async def work() -> None:
        engine = Deaf()
        dispatcher = dispatcher_of(engine)
        dispatcher.feed([OutboxRow(seq, JOB, StartTask(attempt)) for seq, attempt in enumerate(ATTEMPTS)])
        await asyncio.sleep(1)
        dispatcher.feed([OutboxRow(1000, JOB, StopTask(FREE, 0.0))])
        async with asyncio.timeout(60):
            await engine.stopped.wait()
        await asyncio.sleep(60)
        assert dispatcher.done == [200, 1000]
        assert engine.calls.count(FREE) == 1
        assert min(engine.calls.count(attempt) for attempt in ATTEMPTS[:-1]) > 5
        assert engine.most_at_once == 64
        await dispatcher.close()

    virtually(work())


class Hanging:
    """An engine on which a start takes 30 seconds and then finds its storage missing."""

    def __init__(self) -> None:
        self.tries = 0
        self.stopped: dict[AttemptId, float] = {}

    async def start(self, launch: TaskLaunch) -> None:
        self.tries += 1
        await asyncio.sleep(30)
        raise Unavailable("storage-away", "The storage far cannot be mounted now: no route to filer.")

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        self.stopped[attempt] = asyncio.get_running_loop().time()


def test_a_start_that_cannot_be_is_told_once_and_given_up_for_a_stop() -> None:
    async def work() -> None:
        engine, notes = Hanging(), list[Noted]()
        dispatcher = dispatcher_of(engine, notes.append)
        dispatcher.feed([OutboxRow(1, JOB, StartTask(FREE))])
        await asyncio.sleep(100)
        assert engine.tries == 4
        assert notes == [Noted(FREE, "FailedMount", "The storage far cannot be mounted now: no route to filer.")]
        dispatcher.feed([OutboxRow(2, JOB, StopTask(FREE, 0.0))])
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(40)
        assert engine.stopped[FREE] - begun <= 35 and dispatcher.done == [1, 2] and dispatcher.idle
        await dispatcher.close()

    virtually(work())


def test_a_stop_waits_for_no_start_of_another_attempt() -> None:
    async def work() -> None:
        engine = Hanging()
        dispatcher = dispatcher_of(engine)
        dispatcher.feed([OutboxRow(seq, JOB, StartTask(attempt)) for seq, attempt in enumerate(ATTEMPTS[:-1])])
        await asyncio.sleep(1)
        dispatcher.feed([OutboxRow(1000, JOB, StopTask(FREE, 0.0))])
        await asyncio.sleep(0.1)
        assert FREE in engine.stopped
        await dispatcher.close()

    virtually(work())


class Mute:
    """An engine that answers no call."""

    async def start(self, launch: TaskLaunch) -> None:
        await asyncio.Event().wait()

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", [StartTask, lambda attempt: StopTask(attempt, 0.0)], ids=["starts", "stops"])
def test_calls_that_hang_on_one_engine_delay_none_of_another(kind: Callable[[AttemptId], StartTask | StopTask]) -> None:
    async def work() -> None:
        other = Answering()
        dispatcher = dispatcher_of(Mute(), other=other)
        dispatcher.feed([OutboxRow(seq, JOB, kind(attempt)) for seq, attempt in enumerate(ATTEMPTS[:-1])])
        await asyncio.sleep(1)
        dispatcher.feed([OutboxRow(1000, JOB, StartTask(FREE))])
        await asyncio.sleep(1)
        dispatcher.feed([OutboxRow(1001, JOB, StopTask(FREE, 0.0)), OutboxRow(1002, JOB, ForgetTask(FREE))])
        await asyncio.sleep(1)
        assert other.calls == ["start", "stop", "forget"] and dispatcher.done == [1000, 1001, 1002]
        await dispatcher.close()

    virtually(work())


class Answering:
    """An engine that answers at once."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def start(self, launch: TaskLaunch) -> None:
        self.calls.append("start")

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        self.calls.append("stop")

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        self.calls.append("forget")
