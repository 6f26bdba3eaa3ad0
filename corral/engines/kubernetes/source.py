"""Why: a reflector needs two calls of a transport and a pace; tests give it a model of a cluster and virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from corral.engines.kubernetes.resources import Call


class Source(Protocol):
    """The part of a transport that a reflector needs."""

    async def ask(self, call: Call, *, params: Mapping[str, str] | None = None, deadline: float | None = None) -> bytes:
        """The answer to one call."""
        ...

    def stream(
        self, call: Call, *, params: Mapping[str, str] | None = None, idle: float = 90.0
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """An answer without end."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How a reflector goes about it; times in seconds."""

    page: int = 500
    """Objects of one page: about 3 MB of pods."""
    list_deadline: float = 60.0
    watch_shortest: float = 300.0
    watch_longest: float = 600.0
    """For how long the server is asked to watch: drawn, so that watches do not all end at once."""
    idle: float = 90.0
    """A bookmark comes every minute: a connection silent for longer is half open."""
    backoff_low: float = 0.2
    backoff_high: float = 30.0
    at_once: float = 1.0
    """A watch that the server ends earlier than this counts as a failure."""
    waiting: int = 200_000
    """With so many changes not taken the watch is read no further until they are."""
