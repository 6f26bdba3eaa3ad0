"""A queue and the queues above it: the order in which they are asked for what one of them does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeVar

_DEEPEST: Final = 100
"""Queues above each other that are followed; documents of queues have no circles, but stored ones are read as they are."""


class Below(Protocol):
    """What has a queue above it."""

    @property
    def parent(self) -> str:
        """The queue above; "" for none."""


class WithCacheDefault(Below, Protocol):
    """A queue that may have a default for compiled code."""

    @property
    def compile_cache(self) -> str | None:
        """What it says; None for nothing."""


Q = TypeVar("Q", bound=Below)


def upwards(queues: Mapping[str, Q], name: str) -> Iterator[tuple[str, Q]]:
    """Yield a queue and its ancestors with their names, from the queue upwards."""
    for _ in range(_DEEPEST):
        queue = queues.get(name)
        if queue is None:
            return
        yield name, queue
        name = queue.parent


def cache_default(queues: Mapping[str, WithCacheDefault], name: str) -> tuple[str, str] | None:
    """Return the compileCache of a queue or of its nearest ancestor that has one, and that queue; None if none has."""
    said = ((queue.compile_cache, above) for above, queue in upwards(queues, name))
    return next(((share, above) for share, above in said if share is not None), None)
