"""The estimated start of a waiting gang, and the changes that would start it now."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from corral.kernel.ids import JobId

Written = str | int | float
"""A value as it stands in a job file; "" is a field that is left out."""


class Basis(StrEnum):
    """How certain an estimated start is."""

    NOW = "now"
    """The next cycle starts it."""
    AT_LATEST = "at-latest"
    """Jobs with known ends free enough by then, and no job behind it in the queue can delay it."""
    EXPECTED = "expected"
    """The scheduler, simulated with the jobs known now, starts it then."""
    NOT_BEFORE = "not-before"
    """If running jobs use all the time they may, it is still waiting then; nothing later is known."""
    UNKNOWN = "unknown"
    """The jobs in its way have no known end."""
    NEVER = "never"
    """The existing machines cannot hold it, or its limits never let it start."""
    NOT_ESTIMATED = "not-estimated"
    """No estimate was computed; the message says why."""


class ForecastMark(msgspec.Struct, frozen=True):
    """Which forecast an estimate comes from; marks of equal revision look at the same state."""

    at: float
    """Seconds since 1970: when the state was as the forecast has it."""
    revision: str
    seeds: int
    """Courses that were drawn, from seed 0 on; 1 where all run times are known."""


class Estimate(msgspec.Struct, frozen=True):
    """When a waiting gang is likely to start."""

    basis: Basis
    message: str
    """One sentence: the grounds for the time, or the reason why there is none."""
    at: float | None = None
    """Seconds since 1970; None: no time is known."""
    after: tuple[JobId, ...] = ()
    """The last jobs that must end first, or those that have no known end."""
    p10: float | None = None
    """Quantiles over the courses of the forecast; None: none, or later than it looks."""
    p50: float | None = None
    p90: float | None = None
    forecast: ForecastMark | None = None
    """None: the estimate needs no look into the future."""


class Change(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """One change that would start the gang now, checked with the scheduler itself."""

    path: str
    """The field of the job file (`roles.worker.resources.devices`), or of a queue (`Queue/lab: limit.devices`)."""
    before: Written
    after: Written
    message: str
    """One sentence."""


class Outlook(msgspec.Struct, frozen=True):
    """The estimated start of a waiting gang, and changes that would help."""

    estimate: Estimate
    changes: tuple[Change, ...] = ()
    """The smallest changes first; empty when no small change is known to help."""
