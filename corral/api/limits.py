"""Why: guessing passwords must be slow for the guesser, and no user's programs may keep others from being served."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from corral.kernel.errors import TooManyRequests

MINUTE: Final = 60.0
HOUR: Final = 3600.0
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


class Calls(NamedTuple):
    """How many calls one user may make; 0 is no limit."""

    per_minute: int = 0
    lists_per_minute: int = 0
    submits_per_hour: int = 0


class CallLimits(NamedTuple):
    """How many calls one user may make at each of the two APIs: ours and OpenPAI's."""

    corral: Calls = Calls()
    openpai: Calls = Calls(600, 120, 3600)


class CallLimit:
    """At most so many calls per key in each `window` seconds, counted from the key's first. Memory is bounded."""

    def __init__(self, calls: int, window: float, now: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._window = window
        self._now = now
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, key: str, what: str) -> None:
        """Count a call of this kind, or refuse it.

        Raises TooManyRequests when the key has used up its calls.
        """
        if not self._calls:
            return
        now = self._now()
        begun, taken = self._seen.get(key, (now, 0))
        if now - begun >= self._window:
            begun, taken = now, 0
        if taken >= self._calls:
            wait = max(1, math.ceil(self._window - (now - begun)))
            span = "minute" if self._window == MINUTE else "hour"
            message = (
                f"Too many {what}: {self._calls} in one {span} are let through; wait {wait} seconds and try again."
            )
            raise TooManyRequests("too-many-calls", message, retryAfter=wait)
        self._seen[key] = (begun, taken + 1)
        self._seen.move_to_end(key)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


class Counting:
    """The limits of one API, each call counted as what it is."""

    def __init__(self, calls: Calls, now: Callable[[], float] = time.monotonic) -> None:
        self._on = any(calls)
        self._all = CallLimit(calls.per_minute, MINUTE, now)
        self._lists = CallLimit(calls.lists_per_minute, MINUTE, now)
        self._submits = CallLimit(calls.submits_per_hour, HOUR, now)

    def take(self, user: str, method: str, path: str) -> None:
        """Count a call of a user's, or refuse it.

        Raises TooManyRequests.
        """
        if not self._on:
            return
        self._all.take(user, "calls")
        if _JOBS.fullmatch(path):
            if method == "GET":
                self._lists.take(user, "lists of jobs")
            elif method == "POST":
                self._submits.take(user, "submissions")
        elif method == "PUT" and _JOB_OF_V1.fullmatch(path):
            self._submits.take(user, "submissions")


_JOBS: Final = re.compile(r"/api/(v3|v2|v1|v1/user/[^/]+)/jobs")
_JOB_OF_V1: Final = re.compile(r"/api/v1/(user/[^/]+/)?jobs/[^/]+")
