"""Read what `corral.runtime.task_profile` answers from a task: a line of JSON for each answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.profiles.stacks import printable

_MOST_LINE: Final = 6 * 1024**2
"""Bytes of one answer: py-spy's text of one process, as JSON."""


async def answers(pieces: AsyncIterator[bytes], take: Callable[[int], None]) -> AsyncIterator[dict[str, Any]]:
    """The answers in a task's output, as they come; `take` is told the bytes of each piece, and raises for too many.

    Raises InvalidInput for what is no answer.
    """
    rest = bytearray()
    async for piece in pieces:
        take(len(piece))
        *lines, tail = piece.split(b"\n")
        for line in lines:
            yield _answer(bytes(rest) + line)
            rest.clear()
        rest += tail
        if len(rest) > _MOST_LINE:
            raise InvalidInput("profile-failed", "The profiler in the task sent an answer that is too long.")
    if rest:
        yield _answer(bytes(rest))


def _answer(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(line), dict):
            return found
    said = printable(line.decode("utf-8", "replace").strip())[:200]
    raise InvalidInput("profile-failed", f"The profiler could not run in the task: {said.rstrip('.')}.")


def sized(data: bytes) -> bytes:
    """What is sent to the program: bytes with their size before them."""
    return b"%d\n" % len(data) + data
