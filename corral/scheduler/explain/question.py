"""What a question about a waiting job brings along: what a job file can express."""

from __future__ import annotations

from collections.abc import Callable

from corral.model.requests import GangRequest
from corral.model.start_estimates import Change

Said = Callable[[GangRequest, Change, GangRequest], Change | None]
"""Expresses a change of a request as a change of its job file; None where a job file cannot express it."""


def as_it_is(_asked: GangRequest, change: Change, _wanted: GangRequest) -> Change:
    """Accept every change as it is."""
    return change
