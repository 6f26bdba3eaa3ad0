"""Profile one task: run the program of `corral.runtime.task_profile` in it as a command, and read its answers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol

from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.kernel.ids import AttemptId
from corral.profiles.answers import Room, answers, sized
from corral.profiles.stacks import printable
from corral.profiles.taken import Taken
from corral.runtime.profile_start import START, program, py_spy_for, why_no_py_spy

COMMAND: Final = ("sh", "-c", START)
_NO_PYTHON: Final = "No Python process runs in this task. A profile of the kind system takes any program."
_BESIDE_SECONDS: Final = 90.0
"""Seconds after the asked duration in which a task must have answered."""


class TaskStream(Protocol):
    """The input and output of a command in a task."""

    async def send(self, data: bytes) -> None:
        """Send input. Raises Unavailable when the command has ended."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Its output. Raises Unavailable when the connection breaks."""
        ...


Enter = Callable[[AttemptId, tuple[str, ...]], AbstractAsyncContextManager[TaskStream]]
"""Starts a command in the task of an attempt."""


class Answered(NamedTuple):
    """What one task gave, and how many of its processes were left out."""

    taken: tuple[Taken, ...]
    left_out: int = 0


async def profile_task(enter: Enter, task: str, attempt: AttemptId, request: Mapping[str, Any], room: Room) -> Answered:
    """Take a profile of each Python process of a running task; a failure is an answer too."""
    try:
        async with asyncio.timeout(float(request["seconds"]) + _BESIDE_SECONDS), enter(attempt, COMMAND) as stream:
            return await _conversation(stream, task, request, room)
    except TimeoutError:
        return _failed(task, f"The task did not answer within {request['seconds'] + _BESIDE_SECONDS:.0f} s.")
    except CorralError as error:
        return _failed(task, error.message)


async def _conversation(stream: TaskStream, task: str, request: Mapping[str, Any], room: Room) -> Answered:
    await _send(stream, program(), json.dumps(dict(request)).encode() + b"\n")
    taken: list[Taken] = []
    trace = bytearray()
    async for answer in answers(aiter(stream), room):
        if "need" in answer:
            sent = await asyncio.to_thread(py_spy_for, answer)
            await _send(stream, sent)
            if not sent:
                taken.append(Taken(task, 0, problem=printable(why_no_py_spy(answer))))
        elif "process" in answer:
            taken.append(_process(task, answer, bytes(trace)))
            trace.clear()
        elif "trace" in answer:
            trace += _unpacked(answer["trace"])
        elif answer.get("done"):
            nothing = () if taken else (Taken(task, 0, problem=_NO_PYTHON),)
            return Answered((*taken, *nothing), _whole(answer.get("left_out")))
    return Answered((*taken, Taken(task, 0, problem="The profiler in the task ended before it had answered.")))


async def _send(stream: TaskStream, data: bytes, more: bytes = b"") -> None:
    """Send bytes with their size before them. A command that has ended says why when it is read."""
    with contextlib.suppress(Unavailable):
        await stream.send(sized(data) + more)


def _unpacked(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise InvalidInput("profile-failed", "The profiler in the task sent a broken trace.") from None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def _process(task: str, answer: Mapping[str, Any], trace: bytes) -> Taken:
    text, problem = str(answer.get("text", "")), printable(str(answer.get("problem", "")))
    command = printable(str(answer.get("command", "")))
    told = problem[:1].upper() + problem[1:]
    return Taken(task, _whole(answer["process"]), command, text, told, bool(answer.get("cut")), trace)


def _failed(task: str, problem: str) -> Answered:
    return Answered((Taken(task, 0, problem=problem),))
