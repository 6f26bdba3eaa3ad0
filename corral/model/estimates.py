"""Estimates of starts that were given to people, what came true of them, and the report of both by queue."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.estimate_correction import Outcome, Quantiles
from corral.model.records import Record

WINDOWS: Final = (7, 30)
"""The days that a report may look back."""
KEPT_SECONDS: Final = 40 * 86_400.0
"""Seconds for which estimates are kept: the longest window, and some days in which the last ones come true."""
MOST_KEPT: Final = 50_000
"""Estimates that are kept; beyond them the oldest are deleted."""
AGAIN_SECONDS: Final = 3600.0
"""Of one job no second estimate is stored within this time."""


class GivenEstimate(msgspec.Struct, frozen=True, gc=False):
    """When a job will start, as it was told at a time; the quantiles are in seconds after it, None: after the horizon."""

    job: str
    queue: str
    at: float
    """Seconds since 1970."""
    revision: str
    """The revision of the scheduler's state that was looked at."""
    horizon: float
    """Seconds after `at` until which was looked."""
    courses: int
    """How many courses the quantiles are of; of one all three are equal, and there is no interval."""
    p10: float | None = None
    p50: float | None = None
    p90: float | None = None
    raw: Quantiles = (None, None, None)
    """The quantiles of the courses, before past errors of the queue were taken into account."""


class LivedEstimate(msgspec.Struct, frozen=True, gc=False):
    """An estimate, and what came true; times are in seconds since 1970."""

    given: GivenEstimate
    started: float | None = None
    """The job's first start after the estimate."""
    ended: float | None = None
    """The job ended then without a start after the estimate."""

    @property
    def is_open(self) -> bool:
        """Whether the job still waits."""
        return self.started is None and self.ended is None

    def waited(self, now: float) -> float | None:
        """Seconds from the estimate to the start, or so far for a job that waits; None: it ended without a start."""
        if self.ended is not None:
            return None
        return max(0.0, (now if self.started is None else self.started) - self.given.at)

    def outcome(self) -> Outcome | None:
        """What corrects later estimates; None while the job has not started, and for estimates of one course."""
        given = self.given
        if self.started is None or given.courses < 2:
            return None
        return Outcome(max(0.0, self.started - given.at), given.raw, given.horizon)


class QueueEstimates(Record, frozen=True):
    """How good the estimates of one queue were. Times are in seconds; a median is null where nothing is to be counted."""

    queue: str
    given: int = 0
    """Estimates that were stored in this time."""
    jobs: int = 0
    """The jobs that they are of."""
    started: int = 0
    """Those whose job has started since."""
    waiting: int = 0
    """Those whose job still waits; of these only those past their P90 are judged."""
    not_started: int = 0
    """Those whose job ended without a start; they are not judged."""
    held: int = 0
    """Intervals from P10 to P90 in which the job started."""
    early: int = 0
    """Intervals before which it started."""
    late: int = 0
    """Intervals after which it started, or still waits."""
    coverage: float | None = None
    """The part of the judged intervals that held; 0.8 is aimed at."""
    width: float | None = None
    """The median of P90 - P10; null also when most reach beyond the horizon."""
    past_width: float | None = None
    """P90 - P10 of the waits themselves, from the estimate to the start: what an interval has to be narrower than."""
    bias: float | None = None
    """The median of the start less P50; positive: jobs start later than they are told."""
    error: float | None = None
    """The median of how far the start was from P50."""


class EstimateReport(Record, frozen=True):
    """How good the estimates of the last days were, by queue."""

    at: str
    days: int
    queues: tuple[QueueEstimates, ...] = ()
    """By name; only queues with estimates."""
    total: QueueEstimates = QueueEstimates("")
    """All of these queues together."""
