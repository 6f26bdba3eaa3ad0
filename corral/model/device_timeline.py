"""Who was on which devices, and who is expected to be: the past from attempts, the next day from the forecast."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.records import Record
from corral.model.what_if import DAY, Stay, TimelineNode

LONGEST_WINDOW: Final = 2 * DAY
"""Seconds from the begin to the end of a timeline, at most."""
MOST_BARS: Final = 2000
"""Stays of the past, and as many expected ones, in one answer."""
MOST_TIMELINE_NODES: Final = 50
"""Nodes in one answer."""


class ExpectedStays(msgspec.Struct, frozen=True):
    """Control's answer: what the forecast has on some nodes. Times of stays are in seconds after `at`."""

    at: float = 0.0
    seconds: float = 0.0
    """How far it looks ahead."""
    stays: tuple[Stay, ...] = ()
    left_out: int = 0
    trouble: str = ""
    """Why there is no forecast, as a sentence; "" if there is one."""


class DeviceStay(Record, frozen=True):
    """A job on devices of one node for a time."""

    job: str
    """Its id."""
    name: str
    user: str
    queue: str
    node: str
    devices: tuple[int, ...]
    """Indexes of the node's devices."""
    begin: str
    end: str | None = None
    """Null: it still runs, or an expected one ends after the forecast does."""


class DeviceTimeline(Record, frozen=True):
    """What ran on the devices of some nodes, and what is expected to run there."""

    at: str
    """When it was asked for: the past ends here."""
    begin: str
    end: str
    nodes: tuple[TimelineNode, ...] = ()
    """By name."""
    past: tuple[DeviceStay, ...] = ()
    """Attempts of tasks, the latest first. Those of jobs that were removed are not known any more."""
    past_left_out: int = 0
    expected: tuple[DeviceStay, ...] = ()
    """From the first course of the forecast, the earliest first; it goes on with what runs now."""
    expected_left_out: int = 0
    forecast_until: str | None = None
    """How far the forecast looks ahead; null without one."""
    trouble: str = ""
    """Why there is no forecast; "" where there is one, or where nothing of the time is to come."""
    next: str | None = None
