"""Look at the ranks of a running task: run the program of `corral.runtime.task_profile` in it, and read its answers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from corral.engines.base import Engine, ExecSession
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.ids import AttemptId
from corral.profiles.answers import answers, sized
from corral.profiles.hang import Look, Rank
from corral.profiles.recorder import Recorded, last_recorded
from corral.profiles.stacks import printable, read_stacks
from corral.runtime.profile_start import START, py_spy_for, why_no_py_spy

BETWEEN_SECONDS: Final = 3.0
"""Seconds between the two looks at a process."""
_SECONDS: Final = 75.0
"""Seconds in which a task must have answered."""
_PROCESSES: Final = 8
_STACK_BYTES: Final = 1024**2
_RECORDER_BYTES: Final = 4 * 1024**2
_MOST_BYTES: Final = 32 * 1024**2
"""Bytes of all answers of one task."""


@dataclass
class TaskLooks:
    """What one task gave."""

    task: str
    ranks: list[Rank] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """The files of the bundle that are of this task."""


async def look_at(engine: Engine, attempt: AttemptId, task: str) -> TaskLooks:
    """Look at each process of a running task; a failure is an answer too."""
    looks = TaskLooks(task)
    try:
        async with asyncio.timeout(_SECONDS):
            session = await engine.exec(attempt, ["sh", "-c", START], tty=False)
            try:
                await _converse(session, looks)
            finally:
                await session.close()
    except TimeoutError:
        _failed(looks, f"The task did not answer within {_SECONDS:.0f} s.")
    except CorralError as error:
        _failed(looks, error.message)
    return looks


async def _converse(session: ExecSession, looks: TaskLooks) -> None:
    program = pkgutil.get_data("corral.runtime", "task_profile.py") or b""
    request = {
        "what": "hang",
        "seconds": BETWEEN_SECONDS,
        "processes": _PROCESSES,
        "bytes": _STACK_BYTES,
        "recorder_bytes": _RECORDER_BYTES,
    }
    await session.send(sized(program) + json.dumps(request).encode() + b"\n")
    missing = ""
    async for answer in answers(session.output(), _bound()):
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
            looks.ranks = _with_recorders(looks)
            return
    _failed(looks, "The program that looks at the task ended before it had answered.")


def _bound() -> Callable[[int], None]:
    """Count the bytes of a task's answers. Raises InvalidInput for too many."""
    size = 0

    def take(more: int) -> None:
        nonlocal size
        size += more
        if size > _MOST_BYTES:
            raise InvalidInput("profile-too-large", f"The task answered more than {_MOST_BYTES >> 20} MiB.")

    return take


def _take_process(looks: TaskLooks, answer: Mapping[str, Any], missing: str) -> None:
    """Read the two looks at one process. Raises InvalidInput for what is no answer."""
    problem = printable(str(answer.get("problem", ""))) or missing
    try:
        process = int(answer["process"])
        found = []
        for number, each in enumerate(list(answer.get("looks", ()))[:2], 1):
            text = str(each.get("text", ""))
            if text:
                looks.files[f"{looks.task}-{process}.stacks-{number}.json"] = text.encode()
            problem = problem or printable(str(each.get("problem", "")))
            stacks = read_stacks(text) if text and not each.get("cut") else ()
            found.append(Look(float(each["at"]), str(each["state"])[:1], float(each["cpu"]), int(each["io"]), stacks))
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InvalidInput("profile-failed", "The task sent no valid look at a process.") from None
    looks.ranks.append(Rank(looks.task, process, tuple(found), problem))


def _take_file(looks: TaskLooks, answer: Mapping[str, Any]) -> None:
    name = printable(str(answer["file"]))[:60].replace("/", "_")
    try:
        data = base64.b64decode(str(answer.get("data", "")), validate=True)
    except ValueError:
        raise InvalidInput("profile-failed", "The task sent a broken file.") from None
    key = f"{looks.task}.recorder-{name}"
    looks.files[key] = looks.files.get(key, b"") + data


def _with_recorders(looks: TaskLooks) -> list[Rank]:
    """The ranks with what their flight recorders say; a dump names its process after the last dot before `.json`."""
    known: dict[int, Recorded] = {}
    for name, data in looks.files.items():
        process = name.removesuffix(".json").rpartition(".")[2]
        if ".recorder-" in name and name.endswith(".json") and process.isdecimal():
            with contextlib.suppress(InvalidInput):
                found = last_recorded(data.decode("utf-8", "replace"))
                if found is not None:
                    known[int(process)] = found
    return [each._replace(recorded=known.get(each.process)) for each in looks.ranks]


def _failed(looks: TaskLooks, problem: str) -> None:
    looks.ranks.append(Rank(looks.task, 0, problem=problem))
