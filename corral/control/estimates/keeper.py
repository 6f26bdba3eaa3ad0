"""Keep the estimates that were given, and complete them with what came true, beside the control loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import Unavailable
from corral.model.estimate_correction import LATEST, UNCORRECTED, correction
from corral.model.estimates import AGAIN_SECONDS, GivenEstimate, LivedEstimate

log = structlog.get_logger()

EVERY_SECONDS: Final = 30.0
"""Seconds between two looks at what came true."""
_TOGETHER_SECONDS: Final = 1.0
"""Seconds after which estimates that are given are stored, together with those that are given meanwhile."""
_MOST_PENDING: Final = 5_000
"""Estimates that wait to be stored; of more, those of jobs without one are not stored."""
_FORGET_SECONDS: Final = 3600.0


class Records(Protocol):
    """The part of the store that has estimates."""

    async def add_estimates(self, given: Sequence[GivenEstimate]) -> None:
        """Store estimates."""
        ...

    async def open_estimates(self) -> dict[str, float]:
        """By job that still waits, when the last estimate that is stored was given."""
        ...

    async def latest_starts(self, limit: int) -> list[LivedEstimate]:
        """The estimates whose jobs started last, the latest first."""
        ...

    async def complete_estimates(self, now: float) -> int:
        """Store what came true of open estimates."""
        ...

    async def forget_estimates(self, now: float) -> None:
        """Delete estimates that are too old or too many."""
        ...


class EstimateKeeper:
    """Stores of each job the first estimate, and later ones at least an hour apart."""

    def __init__(self, store: Records, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.correction = UNCORRECTED
        """How the quantiles of courses are corrected before they are handed out."""
        self._pending: list[GivenEstimate] = []
        self._last: dict[str, float] = {}
        """By job that waits, when the last estimate that is kept was given."""
        self._forgotten = 0.0
        self._new = asyncio.Event()

    def given(self, estimates: Iterable[GivenEstimate]) -> None:
        """Note estimates as they are handed out; they are stored later."""
        for each in estimates:
            if len(self._pending) >= _MOST_PENDING:
                log.warning("estimates are not stored", waiting=len(self._pending))
                return
            if self.wants(each.job, each.at):
                self._last[each.job] = each.at
                self._pending.append(each)
                self._new.set()

    def wants(self, job: str, at: float) -> bool:
        """Whether an estimate of a job that is given at a time is stored."""
        last = self._last.get(job)
        return last is None or at >= last + AGAIN_SECONDS

    async def run(self, ready: asyncio.Event) -> None:
        """Store what is given, and what comes true, from when control leads until cancelled."""
        await ready.wait()
        known = False
        while True:
            try:
                if not known:
                    self._last = {**await self._store.open_estimates(), **self._last}
                    await self._correct()
                    known = True
                await self.keep()
            except Unavailable as error:
                log.warning("estimates could not be stored", code=error.code, message=error.message)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._new.wait()
            await asyncio.sleep(_TOGETHER_SECONDS)
            self._new.clear()

    async def keep(self) -> None:
        """Store what was given since the last call and what came true; raises Unavailable, and keeps what was given."""
        now = self._clock.now()
        count = len(self._pending)
        if count:
            await self._store.add_estimates(self._pending[:count])
            del self._pending[:count]
        if await self._store.complete_estimates(now):
            waiting = {each.job: each.at for each in self._pending}
            self._last = {**await self._store.open_estimates(), **waiting}
            await self._correct()
        if now - self._forgotten >= _FORGET_SECONDS:
            await self._store.forget_estimates(now)
            self._forgotten = now

    async def _correct(self) -> None:
        found = reversed(await self._store.latest_starts(LATEST))
        self.correction = correction([outcome for each in found if (outcome := each.outcome()) is not None])
