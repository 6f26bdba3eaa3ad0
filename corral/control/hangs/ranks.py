"""Look at the ranks of a running task: run the program of `corral.runtime.task_profile` in it, and read its answers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from corral.engines.base import Engine, ExecSession
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.ids import AttemptId
from corral.profiles.answers import Room, answers, sized
from corral.profiles.hang import Look, Rank
from corral.profiles.recorder import Recorded, last_pickled, last_recorded
from corral.profiles.stacks import printable, read_stacks
from corral.runtime.profile_start import START, program, py_spy_for, why_no_py_spy

log = structlog.get_logger()

BETWEEN_SECONDS: Final = 3.0
"""Seconds between the two looks at a process."""
_SECONDS: Final = 75.0
"""Seconds in which a task must have answered."""
_CLOSE_SECONDS: Final = 10.0
"""Seconds in which its session must have closed then."""
_PROCESSES: Final = 8
_STACK_BYTES: Final = 1024**2
_RECORDER_BYTES: Final = 4 * 1024**2

_DUMPS: Final[dict[str, Callable[[bytes], Recorded | None]]] = {
    "json": lambda data: last_recorded(data.decode("utf-8", "replace")),
    "pickle": last_pickled,
}
"""How dumps of flight recorders are read, by their endings."""


@dataclass
class TaskLooks:
    """What one task gave."""

    task: str
    ranks: list[Rank] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """Its stacks, for the bundle."""
    dumps: dict[str, bytearray] = field(default_factory=dict)
    """The dumps of its flight recorders, for the bundle; they come in pieces."""


async def look_at(engine: Engine, attempt: AttemptId, task: str, room: Room) -> TaskLooks:
    """Look at each process of a running task; a failure is an answer too. Its answers take room of the job's."""
    looks = TaskLooks(task)
    try:
        async with asyncio.timeout(_SECONDS):
            session = await engine.exec(attempt, ["sh", "-c", START], tty=False)
            try:
                await _converse(session, looks, room)
            finally:
                await _close(session, task)
    except TimeoutError:
        _failed(looks, f"The task did not answer within {_SECONDS:.0f} s.")
    except CorralError as error:
        _failed(looks, error.message)
    return looks


async def _close(session: ExecSession, task: str) -> None:
    """Close a session; one that does not close in time must not keep the job from being looked at again."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await session.close()
    except TimeoutError:
        log.warning("a session beside a task was not closed in time", task=task, seconds=_CLOSE_SECONDS)


async def _converse(session: ExecSession, looks: TaskLooks, room: Room) -> None:
    request = {
        "what": "hang",
        "seconds": BETWEEN_SECONDS,
        "processes": _PROCESSES,
        "bytes": _STACK_BYTES,
        "recorder_bytes": _RECORDER_BYTES,
    }
    await session.send(sized(program()) + json.dumps(request).encode() + b"\n")
    missing = ""
    async for answer in answers(session.output(), room):
        if "need" in answer:
            sent = await asyncio.to_thread(py_spy_for, answer)
            missing = "" if sent else printable(why_no_py_spy(answer))
            await session.send(sized(sent))
        elif "process" in answer:
            _take_process(looks, answer, missing)
        elif "file" in answer:
            _take_file(looks, answer)
        elif answer.get("done"):
            if not looks.ranks:
                _failed(looks, "No process runs in this task.")
            looks.ranks = await asyncio.to_thread(_with_recorders, looks)
            return
    _failed(looks, "The program that looks at the task ended before it had answered.")


def _take_process(looks: TaskLooks, answer: Mapping[str, Any], missing: str) -> None:
    """Read the two looks at one process. Raises InvalidInput for what is no answer."""
    problem = printable(str(answer.get("problem", ""))) or missing
    try:
        process = _whole(answer["process"])
        found = []
        for number, each in enumerate(list(answer.get("looks", ()))[:2], 1):
            text = str(each.get("text", ""))
            if text:
                looks.files[f"{looks.task}-{process}.stacks-{number}.json"] = text.encode()
            problem = problem or printable(str(each.get("problem", "")))
            readable = text and len(text) <= _STACK_BYTES and not each.get("cut")
            stacks = read_stacks(text) if readable else ()
            found.append(Look(float(each["at"]), str(each["state"])[:1], float(each["cpu"]), int(each["io"]), stacks))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        raise InvalidInput("profile-failed", "The task sent no valid look at a process.") from None
    looks.ranks.append(Rank(looks.task, process, tuple(found), problem))


def _whole(value: object) -> int:
    """Raises ValueError for what is no process's number."""
    if not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(value)
    return value


def _take_file(looks: TaskLooks, answer: Mapping[str, Any]) -> None:
    name = printable(str(answer["file"]))[:60].replace("/", "_")
    try:
        data = base64.b64decode(str(answer.get("data", "")), validate=True)
    except ValueError:
        raise InvalidInput("profile-failed", "The task sent a broken file.") from None
    key = f"{looks.task}.recorder-{name}"
    if len(data) + sum(map(len, looks.dumps.values())) > _RECORDER_BYTES:
        raise InvalidInput("profile-failed", "The task sent more of its flight recorders than it was asked for.")
    looks.dumps.setdefault(key, bytearray()).extend(data)


def _with_recorders(looks: TaskLooks) -> list[Rank]:
    """The ranks with what their flight recorders say; a dump names its process before its ending.

    A process may have two, gloo's in JSON and NCCL's as a pickle: what is not over in one of them counts.
    """
    known: dict[int, Recorded] = {}
    for name, data in looks.dumps.items():
        whole, _, ending = name.rpartition(".")
        process = whole.rpartition(".")[2]
        if ending in _DUMPS and process.isdecimal():
            with contextlib.suppress(InvalidInput):
                found = _DUMPS[ending](bytes(data))
                if found is not None and (int(process) not in known or not found.done):
                    known[int(process)] = found
    return [each._replace(recorded=known.get(each.process)) for each in looks.ranks]


def _failed(looks: TaskLooks, problem: str) -> None:
    looks.ranks.append(Rank(looks.task, 0, problem=problem))
