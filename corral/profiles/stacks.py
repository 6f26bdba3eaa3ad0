"""The stacks of a task's threads, read from py-spy's JSON, and ranks that stand at the same place put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput

_MOST_THREADS: Final = 500
_MOST_FRAMES: Final = 200
_LONGEST: Final = 300


class Stack(NamedTuple):
    """The frames of one thread, innermost first."""

    thread: str
    active: bool
    frames: tuple[str, ...]


class Place(NamedTuple):
    """Threads of several ranks that have the same stack."""

    stack: Stack
    ranks: tuple[str, ...]


def read_stacks(text: str) -> tuple[Stack, ...]:
    """Read the answer of `py-spy dump --json`. Raises InvalidInput `bad-profile` for anything else."""
    try:
        found = json.loads(text)
        return tuple(_stack(each) for each in found[:_MOST_THREADS])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise InvalidInput("bad-profile", "py-spy's answer is not a list of threads with their frames.") from None


def places(found: Iterable[tuple[str, tuple[Stack, ...]]]) -> list[Place]:
    """Put ranks with the same stack together; the places of the fewest ranks come first, as the odd one is sought."""
    together: dict[Stack, dict[str, None]] = {}
    for rank, stacks in found:
        for stack in stacks:
            together.setdefault(stack, {})[rank] = None
    made = [Place(stack, tuple(ranks)) for stack, ranks in together.items()]
    return sorted(made, key=lambda place: (not _is_main(place.stack), len(place.ranks)))


def _is_main(stack: Stack) -> bool:
    return stack.thread == "MainThread"


def _stack(thread: Any) -> Stack:
    frames = thread["frames"]
    shown = tuple(_frame(each) for each in frames[:_MOST_FRAMES])
    return Stack(printable(str(thread.get("thread_name") or "thread")), bool(thread["active"]), shown)


def _frame(frame: Any) -> str:
    file = frame.get("short_filename") or frame["filename"]
    return printable(f"{frame['name']} ({file}:{int(frame['line'])})")


def printable(text: str) -> str:
    """The text without characters that a terminal would obey, up to a bound."""
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST])
