"""Read what `corral.runtime.task_profile` answers from a task: a line of JSON for each answer."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

from corral.kernel.errors import InvalidInput, TooLarge
from corral.profiles.stacks import printable

_MOST_LINE: Final = 6 * 1024**2
"""Bytes of one answer: py-spy's text of one process, as JSON."""
_MOST: Final = {"need": 1, "process": 64}
"""Answers of a kind: one program is sent, and of at most eight folders eight processes answer."""
_MOST_ANSWERS: Final = 2_000
"""Answers in all: a trace of 64 MiB and a flight recorder's dump come in pieces of 1 MiB."""


class Room:
    """The bytes that all tasks of one profile may still answer."""

    def __init__(self, most: int) -> None:
        self._most, self._left = most, most

    def take(self, size: int) -> None:
        """Take room. Raises TooLarge when there is none left."""
        self._left -= size
        if self._left < 0:
            raise TooLarge("profile-too-large", f"The tasks answered more than {self._most >> 20} MiB together.")


async def answers(pieces: AsyncIterator[bytes], room: Room) -> AsyncIterator[dict[str, Any]]:
    """The answers in a task's output, as they come; their bytes take room.

    A user's task can answer whatever it likes. Raises InvalidInput for what is no answer, and for too many; TooLarge.
    """
    counts = Counter[str]()
    async for line in _lines(pieces, room):
        answer = _answer(line)
        counts.update(("", *_MOST.keys() & answer.keys()))
        if counts[""] > _MOST_ANSWERS or any(counts[kind] > most for kind, most in _MOST.items()):
            raise InvalidInput("profile-failed", "The profiler in the task sent too many answers.")
        yield answer


async def _lines(pieces: AsyncIterator[bytes], room: Room) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for piece in pieces:
        room.take(len(piece))
        *lines, tail = piece.split(b"\n")
        for line in lines:
            yield bytes(rest) + line
            rest.clear()
        rest += tail
        if len(rest) > _MOST_LINE:
            raise InvalidInput("profile-failed", "The profiler in the task sent an answer that is too long.")
    if rest:
        yield bytes(rest)


def _answer(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(line), dict):
            return found
    said = printable(line.decode("utf-8", "replace").strip())[:200]
    raise InvalidInput("profile-failed", f"The profiler could not run in the task: {said.rstrip('.')}.")


def sized(data: bytes) -> bytes:
    """What is sent to the program: bytes with their size before them."""
    return b"%d\n" % len(data) + data
