"""Submit the gangs of a workload at their times, several at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corral.benchmarks.workloads.document import Arrival
    from corral.benchmarks.workloads.outcome import Life

AT_ONCE: Final = 16
"""Calls that are under way at a time."""


@dataclass
class Played:
    """What a scheduler made of a workload."""

    lives: list[Life] = field(default_factory=list)
    capacity: int = 0
    """Units of all nodes; 0: not known."""
    late: float = 0.0
    """Seconds by which the last submission was behind its time."""
    problems: list[str] = field(default_factory=list)


async def submit_at_pace(
    arrivals: Sequence[Arrival],
    submit: Callable[[int], Awaitable[None]],
    *,
    speed: float,
    tell: Callable[[int], None],
) -> float:
    """Call `submit` with the number of each arrival, at its time divided by `speed`, or as soon as one of 16 is free.

    Returns by how many seconds the last call began too late. The first error ends it and is raised.
    """
    begun = time.monotonic()
    free = asyncio.Semaphore(AT_ONCE)
    late = 0.0

    async def one(number: int) -> None:
        try:
            await submit(number)
        finally:
            free.release()

    try:
        async with asyncio.TaskGroup() as group:
            for number, arrival in enumerate(arrivals):
                due = begun + arrival.at / speed
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                await free.acquire()
                late = time.monotonic() - due
                tell(number)
                group.create_task(one(number))
    except ExceptionGroup as failed:  # `except*` can raise a group of its own around the first error
        raise _first(failed) from None
    return max(0.0, late)


def _first(failed: BaseExceptionGroup[Exception]) -> Exception:
    error = failed.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
