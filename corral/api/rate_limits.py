"""Rate limits in memory: wrong sign-ins per account and address, and calls per user."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from corral.kernel.errors import TooManyRequests
from corral.model.store_writes import SubmitLimit

MINUTE: Final = 60.0
REPORTS_A_MINUTE: Final = 60
"""Reports that the tasks of one job may send in a minute."""
SCALARS_A_MINUTE: Final = 30
"""Reports of scalars that one attempt of a task may send in a minute; the runtime sends four, and more after an absence.

All tasks of a job together may send as many for each of them."""
_REMEMBERED: Final = 10_000
_WAITING: Final = 100
"""Sign-ins that may wait for others to end. Each end wakes all of them."""


class Attempt:
    """One sign-in being checked; it counts as a failure unless `right` or `void` is called."""

    def __init__(self) -> None:
        self.failed = True
        self.forgives = False

    def right(self) -> None:
        """Record a correct sign-in, which clears the account's earlier failures."""
        self.failed = False
        self.forgives = True

    def void(self) -> None:
        """Do not count the sign-in: the store failed, or the call was refused for a reason other than the password."""
        self.failed = False


class FailureLimit:
    """Allows at most `failures` wrong sign-ins per key in `window` seconds, including those being checked.

    A sign-in that could exceed the limit waits for those being checked. Many people behind one address can thus sign in
    at once, and parallel guesses get no more tries than sequential ones. A correct sign-in clears the failures of its
    account but not of its address, so that an attacker cannot reset the count with an own account. Memory is bounded.
    """

    def __init__(self, failures: int = 10, window: float = 60.0, now: Callable[[], float] = time.monotonic) -> None:
        self._failures = failures
        self._window = window
        self._now = now
        self._seen: OrderedDict[str, list[float]] = OrderedDict()
        self._under_way: Counter[str] = Counter()
        self._waiting = 0
        self._ended = asyncio.Event()
        """Set, and replaced, whenever an attempt ends."""

    @contextlib.asynccontextmanager
    async def attempt(self, *keys: str) -> AsyncIterator[Attempt]:
        """Check one sign-in in the block, which reports the result on the attempt.

        Raises TooManyRequests when one of the keys has used up its failures.
        """
        await self._enter(keys)
        attempt = Attempt()
        try:
            yield attempt
        finally:
            self._leave(keys, attempt)

    async def _enter(self, keys: Sequence[str]) -> None:
        while not self._has_room(keys):
            if self._waiting >= _WAITING:
                message = "Too many sign-ins are being checked; wait a second and try again."
                raise TooManyRequests("too-many-sign-ins", message, retryAfter=1)
            self._waiting += 1
            try:
                await self._ended.wait()
            finally:
                self._waiting -= 1
        self._under_way.update(keys)

    def _has_room(self, keys: Sequence[str]) -> bool:
        now, room = self._now(), True
        for key in keys:
            recent = [at for at in self._seen.get(key, ()) if now - at < self._window]
            if len(recent) >= self._failures:
                wait = max(1, math.ceil(self._window - (now - recent[0])))
                message = f"Too many sign-ins were refused; wait {wait} seconds and try again."
                raise TooManyRequests("too-many-sign-ins", message, retryAfter=wait)
            room = room and len(recent) + self._under_way[key] < self._failures
        return room

    def _leave(self, keys: Sequence[str], attempt: Attempt) -> None:
        now = self._now()
        self._under_way.subtract(keys)
        for key in keys:
            if self._under_way[key] <= 0:
                del self._under_way[key]
            if attempt.failed:
                recent = [at for at in self._seen.pop(key, ()) if now - at < self._window]
                self._seen[key] = [*recent[-self._failures :], now]
            elif attempt.forgives and key.startswith("user:"):
                self._seen.pop(key, None)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._ended.set()
        self._ended = asyncio.Event()


class Calls(NamedTuple):
    """Calls that one user may make; 0 is no limit."""

    per_minute: int = 0
    lists_per_minute: int = 0
    submits_per_hour: int = 0


class CallLimit:
    """Allows `calls` calls per key in each `window` seconds, counted from the key's first call; memory is bounded."""

    def __init__(self, calls: int, window: float, now: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._window = window
        self._now = now
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, key: str, what: str, calls: int = 0) -> None:
        """Count a call of this kind, or refuse it. This key may have so many `calls`; 0 is as many as others.

        Raises TooManyRequests when the key has used up its calls.
        """
        most = calls or self._calls
        if not most:
            return
        now = self._now()
        begun, taken = self._seen.get(key, (now, 0))
        if now - begun >= self._window:
            begun, taken = now, 0
        if taken >= most:
            wait = max(1, math.ceil(self._window - (now - begun)))
            message = f"Too many {what}: at most {most} a minute; wait {wait} seconds and try again."
            raise TooManyRequests("too-many-calls", message, retryAfter=wait)
        self._seen[key] = (begun, taken + 1)
        self._seen.move_to_end(key)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


class ApiCallLimits:
    """The limits of one API (Corral's own or a tenant's), per kind of call.

    The store counts submissions, because all fronts share it. Calls and lists are counted in this process.
    """

    def __init__(self, calls: Calls, now: Callable[[], float] = time.monotonic, *, api: str = "corral") -> None:
        self._on = any(calls)
        self._all = CallLimit(calls.per_minute, MINUTE, now)
        self._lists = CallLimit(calls.lists_per_minute, MINUTE, now)
        self.submits = SubmitLimit(api, calls.submits_per_hour) if calls.submits_per_hour else None
        """The limit that the store counts submissions against; None without one."""

    def take(self, user: str, method: str, path: str) -> SubmitLimit | None:
        """Count a call of a user, or refuse it; return the limit for the store to check if it is a submission.

        Raises TooManyRequests.
        """
        if not self._on:
            return None
        self._all.take(user, "calls")
        if _JOBS.fullmatch(path):
            if method == "GET":
                self._lists.take(user, "lists of jobs")
            elif method == "POST":
                return self.submits
        elif method == "PUT" and _JOB_OF_V1.fullmatch(path):
            return self.submits
        return None


_JOBS: Final = re.compile(r"/api/(v3|v2|v1|v1/user/[^/]+)/jobs")
_JOB_OF_V1: Final = re.compile(r"/api/v1/(user/[^/]+/)?jobs/[^/]+")
