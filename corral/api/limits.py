"""Why: guessing passwords must be slow for the guesser and not for anybody else."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from corral.kernel.errors import TooManyRequests

_REMEMBERED: Final = 10_000


class FailureLimit:
    """At most `failures` refused sign-ins per key in `window` seconds; a success forgives. Memory is bounded."""

    def __init__(self, failures: int = 10, window: float = 60.0, now: Callable[[], float] = time.monotonic) -> None:
        self._failures = failures
        self._window = window
        self._now = now
        self._seen: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, *keys: str) -> None:
        """Let the call through, or refuse it.

        Raises TooManyRequests when one of the keys has used up its failures.
        """
        now = self._now()
        for key in keys:
            recent = [at for at in self._seen.get(key, ()) if now - at < self._window]
            if len(recent) >= self._failures:
                wait = max(1, round(self._window - (now - recent[0])))
                message = f"Too many sign-ins were refused; wait {wait} seconds and try again."
                raise TooManyRequests("too-many-sign-ins", message, retryAfter=wait)

    def failed(self, *keys: str) -> None:
        """A sign-in under these keys was refused."""
        now = self._now()
        for key in keys:
            recent = [at for at in self._seen.pop(key, ()) if now - at < self._window]
            self._seen[key] = [*recent[-self._failures :], now]
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """A sign-in under these keys was right."""
        for key in keys:
            self._seen.pop(key, None)
