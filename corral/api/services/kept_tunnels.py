"""Streams to services that are kept for the next request of the same visitor.

Opening a stream goes through control and the engine, which costs more than a small request itself.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from corral.api.services.tunnel import Tunnel
from corral.kernel.ids import AttemptId

_SECONDS: Final = 2.0
"""Seconds that a stream is kept: less than the five after which many HTTP servers close an idle connection."""
_MOST_EACH: Final = 8
"""Streams kept of one visitor and port: a browser uses six at once."""
_MOST: Final = 100


class Whose(NamedTuple):
    """The sign-in that a stream is kept for, and where it leads. No other visitor is given it."""

    token: str
    attempt: AttemptId
    port: int


class _Kept(NamedTuple):
    whose: Whose
    until: float
    """Loop time at which it is cut."""


class KeptTunnels:
    """The idle streams of one process."""

    def __init__(self) -> None:
        self._kept: dict[Tunnel, _Kept] = {}
        self._of: dict[Whose, list[Tunnel]] = {}
        self._timer: asyncio.TimerHandle | None = None
        """Cuts what was kept long enough: one for all, because streams are kept and taken with each request."""

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, whose: Whose) -> Tunnel | None:
        """The stream that was kept last, which is the caller's now; None if there is none."""
        while of := self._of.get(whose):
            tunnel = of[-1]
            self._forget(tunnel)
            if tunnel.is_quiet:
                return tunnel
            tunnel.cut()
        return None

    def keep(self, whose: Whose, tunnel: Tunnel) -> None:
        """Keep a stream on which nothing is under way, for some seconds; it is cut when its other side says anything."""
        if len(self._of.get(whose, ())) >= _MOST_EACH:
            self._cut(self._of[whose][0])
        elif len(self._kept) >= _MOST:
            self._cut(next(iter(self._kept)))
        loop = asyncio.get_running_loop()
        self._kept[tunnel] = _Kept(whose, loop.time() + _SECONDS)
        if self._timer is None:
            self._timer = loop.call_later(_SECONDS, self._sweep)
        self._of.setdefault(whose, []).append(tunnel)
        tunnel.rest(lambda: self._cut(tunnel))

    def close(self) -> None:
        """Cut all of them."""
        for tunnel in tuple(self._kept):
            self._cut(tunnel)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        """Cut those whose time is over, which are the first ones."""
        loop, self._timer = asyncio.get_running_loop(), None
        for tunnel, kept in tuple(self._kept.items()):
            if kept.until > loop.time():
                self._timer = loop.call_at(kept.until, self._sweep)
                return
            self._cut(tunnel)

    def _cut(self, tunnel: Tunnel) -> None:
        if tunnel in self._kept:
            self._forget(tunnel)
            tunnel.cut()

    def _forget(self, tunnel: Tunnel) -> None:
        whose, _ = self._kept.pop(tunnel)
        of = self._of[whose]
        of.remove(tunnel)
        if not of:
            del self._of[whose]
