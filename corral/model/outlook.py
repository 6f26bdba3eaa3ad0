"""Why: whoever waits wants to know until when, and what would help: both are said with what they rest on, or not at all."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from corral.kernel.ids import JobId

Written = str | int | float
"""A value as a job file has it; "" is a field that is left out."""


class Basis(StrEnum):
    """How sure an estimate is."""

    NOW = "now"
    """The next cycle starts it."""
    AT_LATEST = "at-latest"
    """Known ends make room for it by then, and nobody who waits behind it can delay it."""
    EXPECTED = "expected"
    """The scheduler itself, played forward with what is known now, starts it then."""
    NOT_BEFORE = "not-before"
    """If what runs takes as long as it may, it still waits then; nothing later is known."""
    UNKNOWN = "unknown"
    """What is in its way has no known end."""
    NEVER = "never"
    """The machines that there are cannot hold it, or its bounds never let it begin."""
    NOT_ESTIMATED = "not-estimated"
    """Nobody worked it out; the message says why."""


class Estimate(msgspec.Struct, frozen=True):
    """When a waiting gang is likely to start."""

    basis: Basis
    message: str
    """One sentence: what the time rests on, or why there is none."""
    at: float | None = None
    """Seconds since 1970; None: no time is known."""
    after: tuple[JobId, ...] = ()
    """The jobs whose end it is waited for last, or that have no known end."""


class Change(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """One thing that, were it otherwise, would let the gang start now; proven by the scheduler itself."""

    path: str
    """The field of the job file (`roles.worker.resources.devices`), or of a queue (`Queue/lab: limit.devices`)."""
    before: Written
    after: Written
    message: str
    """One sentence."""


class Outlook(msgspec.Struct, frozen=True):
    """What a waiting gang may hope for."""

    estimate: Estimate
    changes: tuple[Change, ...] = ()
    """The smallest changes first; none when nothing small is known to help."""
