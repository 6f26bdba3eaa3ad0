"""Keep one forecast of the present state, made in a forked process only when somebody asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import structlog

from corral.control.core.core import Core
from corral.control.forecast.courses import DRAWN, Forecasted, play_courses
from corral.control.forecast.past_runs import EndedJobs, PastRuns
from corral.control.what_if.forked import Fork, ForkLimits
from corral.kernel.errors import CorralError
from corral.kernel.ids import JobId
from corral.model.device_timeline import ExpectedStays
from corral.model.estimate_correction import UNCORRECTED, Correction, Quantiles
from corral.model.start_estimates import Basis, Estimate, ForecastMark
from corral.model.what_if import Course, PastRun, Stay

log = structlog.get_logger()

LIMITS: Final = ForkLimits(memory=512 << 20, seconds=60.0)
"""What the process of a forecast may use."""
SECONDS: Final = 3.0
"""Seconds between the beginnings of two forecasts; quick ones follow each other sooner, slow ones later."""
_QUICK_ONES: Final = 5.0
"""Multiple of what a quick forecast took, from its beginning to that of the next: a fifth of a processor at most."""
_SLOW_ONES: Final = 1.25
"""The same of a slow one: four fifths of a processor at most."""
_QUICK: Final = 0.25
"""Seconds: whoever asks waits for a forecast that takes no longer than this."""
_PATIENCE: Final = 2.0
"""Seconds that somebody waits for one where there is none to show."""
_RENEWED: Final = 60.0
"""Seconds after which a state that has not changed is looked at again, because jobs have run on."""
_OLDEST: Final = 300.0
"""Seconds after which a forecast is not shown any more."""
_FAILED: Final = "the process of the forecast failed"
_TROUBLES: Final = {
    "question-busy": "no process can be started for the forecast",
    "question-too-long": "the forecast took longer than it may",
    "question-too-large": "the forecast needs more memory than it may have",
}


class Moment(NamedTuple):
    """A state that forecasts and questions look at: equal revisions have equal times and past runs."""

    at: float
    """Seconds since 1970."""
    state: str
    """The revision of control's state."""
    revision: str
    """The same, with how often this state was looked at anew."""
    past: tuple[PastRun, ...]
    """The runs from which run times are drawn."""
    correction: Correction = UNCORRECTED
    """How the quantiles of several courses are corrected."""


class Forecast:
    """What one forecast found about a moment."""

    def __init__(self, moment: Moment, found: Forecasted) -> None:
        self.moment = moment
        self.mark = ForecastMark(moment.at, moment.revision, found.seeds)
        self._found = found
        self._positions: dict[str, int] = {job: at for at, job in enumerate(found.order)}

    def estimate(self, job: str) -> Estimate | None:
        """When a job is likely to start, with the ids of jobs in its message; None if it did not wait then."""
        encoded = self._found.estimates.get(job)
        if encoded is None:
            return None
        found = msgspec.structs.replace(msgspec.msgpack.decode(encoded, type=Estimate), forecast=self.mark)
        return self._corrected(found)

    def given(self, wanted: Callable[[str, float], bool]) -> Iterator[tuple[str, Estimate, Quantiles]]:
        """The estimates of `wanted` jobs that have quantiles, and those of the courses in seconds after the moment."""
        for job, encoded in self._found.estimates.items():
            if wanted(job, self.moment.at):
                found = msgspec.msgpack.decode(encoded, type=Estimate)
                if found.p50 is not None:
                    yield job, self._corrected(found), self.seconds(found)

    def seconds(self, found: Estimate) -> Quantiles:
        """The quantiles of an estimate in seconds after the moment."""
        p10, p50, p90 = (None if at is None else at - self.moment.at for at in (found.p10, found.p50, found.p90))
        return p10, p50, p90

    def _corrected(self, found: Estimate) -> Estimate:
        """The estimate as past errors correct it; one that hangs on nothing drawn stays."""
        raw = self.seconds(found)
        told = self.moment.correction.applied(raw)
        if told == raw:
            return found
        p10, p50, p90 = (None if each is None else self.moment.at + each for each in told)
        if found.basis is not Basis.EXPECTED:
            return msgspec.structs.replace(found, p10=p10, p50=p50, p90=p90)
        message = f"Of {self.mark.seeds} drawn courses, corrected by how earlier estimates missed. {DRAWN}"
        return msgspec.structs.replace(found, at=p50, message=message, p10=p10, p50=p50, p90=p90)

    def ahead(self, job: str) -> tuple[JobId, ...] | None:
        """The jobs ahead of one in the queue order of then; None if it did not wait."""
        at = self._positions.get(job)
        return None if at is None else self._found.order[:at]

    def stays(self, nodes: Sequence[str]) -> ExpectedStays:
        """What the first course has on some nodes, node by node."""
        encoded = (self._found.stays.get(node) for node in nodes)
        stays = [msgspec.msgpack.decode(each, type=tuple[Stay, ...]) for each in encoded if each is not None]
        found = tuple(chain.from_iterable(stays))
        return ExpectedStays(self.moment.at, self._found.seconds, found, self._found.stays_left_out)

    def course(self, seed: int) -> Course | None:
        """The course of a seed; None if it was not drawn."""
        if not 0 <= seed < len(self._found.courses):
            return None
        return msgspec.msgpack.decode(self._found.courses[seed], type=Course)


class Forecasts:
    """Makes forecasts while somebody asks for them, one at a time, and keeps the last one."""

    def __init__(
        self,
        store: EndedJobs,
        core: Callable[[], Core],
        state: Callable[[], str],
        now: Callable[[], float],
        *,
        seconds: float = SECONDS,
        limits: ForkLimits = LIMITS,
        correction: Callable[[], Correction] = lambda: UNCORRECTED,
        told: Callable[[Forecast], None] = lambda forecast: None,
    ) -> None:
        """`core` gives the present core between two of its steps, `state` the revision of what it knows.

        `correction` is how quantiles are corrected now; `told` is called with each forecast that is made.
        """
        self._correction = correction
        self._told = told
        self._past = PastRuns(store)
        self._core = core
        self._state = state
        self._now = now
        self._seconds = seconds
        self._limits = limits
        self._moment: Moment | None = None
        self._latest: Forecast | None = None
        self._making: asyncio.Task[None] | None = None
        self._next = 0.0
        """When another one may begin, by the monotonic clock."""
        self._took = 0.0
        """Seconds that the last one took, from the fork to the answer."""
        self.trouble = ""
        """Why there is no new one; "" if the last one succeeded."""

    async def latest(self, job: str = "") -> Forecast | None:
        """The forecast to show now, if possible one that knows this job; None if there is none yet, or if it failed.

        It is about the present state where that is quick to look at. Else it may be some seconds old, and another one is
        begun.
        """
        if self._latest is None or not self._is_present(self._latest.moment):
            if self._making is None:
                self._making = asyncio.create_task(self._make())
                self._making.add_done_callback(self._made)
            if self._must_wait(job):
                await asyncio.wait({self._making}, timeout=_PATIENCE)
        found = self._latest
        return found if found is not None and self._age(found) < _OLDEST else None

    async def moment(self) -> Moment:
        """The moment that a question asked now is about; to be used before the next await."""
        return self._moment_with(await self._past.read())

    def of(self, moment: Moment) -> Forecast | None:
        """The forecast of a moment, if it is there already."""
        return self._latest if self._latest is not None and self._latest.moment == moment else None

    async def aclose(self) -> None:
        """End the process of a forecast that is being made."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})

    def _must_wait(self, job: str) -> bool:
        found = self._latest
        if found is None or self._took <= _QUICK or self._age(found) > self._seconds + 2 * self._took:
            return True
        return bool(job) and found.estimate(job) is None

    def _age(self, forecast: Forecast) -> float:
        return self._now() - forecast.moment.at

    def _is_present(self, moment: Moment) -> bool:
        return moment.state == self._state() and self._now() - moment.at < _RENEWED

    def _moment_with(self, past: tuple[PastRun, ...]) -> Moment:
        """The moment of the present state: the one that was looked at before, or a new one with these past runs."""
        moment, state = self._moment, self._state()
        if moment is None or not self._is_present(moment):
            revision = state
            if moment is not None and moment.state == state:
                _, _, count = moment.revision.partition("+")
                revision = f"{state}+{int(count or 0) + 1}"
            moment = self._moment = Moment(self._now(), state, revision, past, self._correction())
        return moment

    async def _make(self) -> None:
        await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        moment = self._moment_with(await self._past.read())
        begun = time.monotonic()
        self._next = begun + self._seconds  # also for one that fails
        fork = Fork(partial(play_courses, self._core(), moment.past, moment.at), self._limits)
        try:
            found = msgspec.msgpack.decode(await fork.answer(), type=Forecasted)
        finally:
            await fork.end()
        self._took = time.monotonic() - begun
        self._next = begun + max(min(self._seconds, _QUICK_ONES * self._took), _SLOW_ONES * self._took)
        self._latest, self.trouble = Forecast(moment, found), ""
        self._told(self._latest)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making = None
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, CorralError):
            self.trouble = _TROUBLES.get(error.code, _FAILED)
            log.warning("no forecast could be made", code=error.code, message=error.message)
        elif error is not None:
            self.trouble = _FAILED
            log.error("no forecast could be made", error=f"{type(error).__name__}: {error}"[:500])
