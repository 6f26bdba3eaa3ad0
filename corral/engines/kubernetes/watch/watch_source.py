"""The part of a transport that a reflector uses, and its pace.

Tests substitute a model of a cluster and virtual time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from corral.engines.kubernetes.api.resources import Call


class Source(Protocol):
    """The part of a transport that a reflector uses."""

    async def ask(self, call: Call, *, params: Mapping[str, str] | None = None, deadline: float | None = None) -> bytes:
        """Return the answer to one call."""
        ...

    def stream(
        self, call: Call, *, params: Mapping[str, str] | None = None, idle: float = 90.0
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open an endless answer."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """A reflector's page size, timeouts and limits; times in seconds."""

    page: int = 500
    """Objects per page: about 3 MB of pods."""
    list_deadline: float = 60.0
    watch_shortest: float = 300.0
    watch_longest: float = 600.0
    """Bounds of a watch's duration, drawn at random so that watches do not all end at once."""
    idle: float = 90.0
    """A bookmark comes every minute, so a connection silent for longer is half open."""
    backoff_low: float = 0.2
    backoff_high: float = 30.0
    at_once: float = 1.0
    """A watch that ends earlier than this counts as a failure."""
    waiting: int = 200_000
    """Waiting changes beyond which the watch is not read until they are taken."""
