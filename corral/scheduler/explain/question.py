"""What a question about a waiting job brings along: how long others take to end, and what a job file can express."""

from __future__ import annotations

from collections.abc import Callable

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change

GracePeriods = Callable[[JobId], float]
"""Returns for a job the most seconds between the order to end and its end."""
Said = Callable[[GangRequest, Change, GangRequest], Change | None]
"""Expresses a change of a request as a change of its job file; None where a job file cannot express it."""


def at_once(_: JobId) -> float:
    """The grace period of a job that ends at once: 0 seconds."""
    return 0.0


def as_it_is(_asked: GangRequest, change: Change, _wanted: GangRequest) -> Change:
    """Accept every change as it is."""
    return change
