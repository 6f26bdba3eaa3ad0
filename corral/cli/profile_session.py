"""Profile one task: run the program of `corral.runtime.task_profile` in it as a command, and read its answers."""

from __future__ import annotations

import base64
import contextlib
import json
import pkgutil
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.profiles.stacks import printable
from corral.runtime.profile_start import START, py_spy_for, why_no_py_spy

if TYPE_CHECKING:
    from corral.client.exec import ExecStream
    from corral.client.sync import Client

MOST_BYTES: Final = 64 * 1024**2
"""Bytes of all answers of one task."""
_BESIDE_SECONDS: Final = 90.0
"""Seconds after the asked duration in which a task must have answered."""


class Taken(NamedTuple):
    """What one process of a task gave: `text`, or the `problem` in one sentence."""

    task: str
    process: int
    command: str
    text: str
    problem: str
    cut: bool
    trace: bytes = b""
    """A Chrome trace, compressed with gzip."""

    @property
    def rank(self) -> str:
        """The process as people call it."""
        return f"{self.task} process {self.process}" if self.process else self.task


class Answered(NamedTuple):
    """What one task gave, and how many of its processes were left out."""

    taken: tuple[Taken, ...]
    left_out: int


def profile_task(client: Client, job: str, task: tuple[str, int], request: Mapping[str, Any]) -> Answered:
    """Take a profile of each Python process of a running task; a failure is an answer too."""
    role, index = task
    name = f"{role}-{index}"
    try:
        with client.exec(job, role, index, ["sh", "-c", START]) as stream:
            overdue = threading.Timer(float(request["seconds"]) + _BESIDE_SECONDS, stream.close)
            overdue.start()
            try:
                return _conversation(stream, name, request)
            finally:
                overdue.cancel()
    except CorralError as error:
        return Answered((_failed(name, error.message),), 0)


def _conversation(stream: ExecStream, task: str, request: Mapping[str, Any]) -> Answered:
    program = pkgutil.get_data("corral.runtime", "task_profile.py") or b""
    _send(stream, program, json.dumps(dict(request)).encode() + b"\n")
    taken: list[Taken] = []
    trace = bytearray()
    for answer in _answers(stream):
        if "need" in answer:
            sent = py_spy_for(answer)
            _send(stream, sent)
            if not sent:
                taken.append(_failed(task, printable(why_no_py_spy(answer))))
        elif "process" in answer:
            taken.append(_process(task, answer, bytes(trace)))
            trace.clear()
        elif "trace" in answer:
            trace += _unpacked(answer["trace"])
        elif answer.get("done"):
            nothing = () if taken else (_failed(task, "No Python process runs in this task."),)
            return Answered((*taken, *nothing), _whole(answer.get("left_out")))
    return Answered((*taken, _failed(task, "The profiler in the task ended before it had answered.")), 0)


def _send(stream: ExecStream, sized: bytes, more: bytes = b"") -> None:
    """Send bytes with their size before them. A command that has ended says why when it is read."""
    with contextlib.suppress(Unavailable):
        stream.send(b"%d\n" % len(sized) + sized + more)


def _answers(stream: ExecStream) -> Iterator[dict[str, Any]]:
    """The answers, as they come. Raises InvalidInput for too many bytes, and for what is no answer."""
    rest, size = bytearray(), 0
    for piece in stream:
        size += len(piece)
        if size > MOST_BYTES:
            raise InvalidInput("profile-too-large", f"The task answered more than {MOST_BYTES >> 20} MiB.")
        *lines, tail = piece.split(b"\n")
        for line in lines:
            yield _answer(bytes(rest) + line)
            rest.clear()
        rest += tail
    if rest:
        yield _answer(bytes(rest))


def _answer(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(line), dict):
            return found
    said = printable(line.decode("utf-8", "replace").strip())[:200]
    raise InvalidInput("profile-failed", f"The profiler could not run in the task: {said.rstrip('.')}.")


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


def _failed(task: str, problem: str) -> Taken:
    return Taken(task, 0, "", "", problem, False)
