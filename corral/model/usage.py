"""Who used how much: device time of attempts, by user, queue, job, tag or node."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from corral.model.exits import ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED, STOP_REQUESTED, SUCCEEDED
from corral.model.records import Record

DAY = 86_400
"""Seconds."""
MOST_ROWS = 1000
"""Rows of one report; those with the least device time are summed into one."""
NOT_LOST = frozenset({SUCCEEDED, STOP_REQUESTED, ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED})
"""Codes of attempts whose time is not lost: they ended well, or because somebody or their job asked for it."""


class By(StrEnum):
    """What use is summed by."""

    USER = "user"
    QUEUE = "queue"
    JOB = "job"
    TAG = "tag"
    NODE = "node"


class UsageRow(Record, frozen=True):
    """The use of one user, queue, job, tag or node."""

    key: str
    """Its name, of a job its id; "" has no name: jobs without a tag, or those that were removed since."""
    name: str = ""
    """The name of a job."""
    device_seconds: float = 0.0
    """Seconds of whole devices; half a device for two seconds is one."""
    lost_device_seconds: float = 0.0
    """The part in attempts that failed, were preempted, or were lost with their node."""
    task_seconds: float = 0.0


class UsageReport(Record, frozen=True):
    """The use from one time to another."""

    begin: str
    end: str
    by: str
    total: UsageRow
    items: tuple[UsageRow, ...] = ()
    """The largest first."""
    left_out: int = 0
    """Further rows, which are in the total alone."""


class Use(NamedTuple):
    """Seconds of devices and tasks."""

    device_seconds: float = 0.0
    lost_device_seconds: float = 0.0
    task_seconds: float = 0.0

    def plus(self, other: Use) -> Use:
        """The sum of both."""
        return Use(*(a + b for a, b in zip(self, other, strict=True)))


class Held(msgspec.Struct, frozen=True, gc=False):
    """One attempt as the account sees it; times are in seconds since 1970."""

    started: float
    ended: float
    device_millis: int
    code: int | None

    def within(self, begin: float, end: float) -> Use:
        """Its use between two times."""
        seconds = max(0.0, min(self.ended, end) - max(self.started, begin))
        devices = seconds * self.device_millis / 1000
        lost = self.code is not None and self.code not in NOT_LOST
        return Use(devices, devices if lost else 0.0, seconds)

    def by_day(self) -> dict[int, Use]:
        """Its use by the number of the day since 1970, in UTC."""
        days = range(int(self.started // DAY), int(self.ended // DAY) + 1)
        found = {day: self.within(day * DAY, (day + 1) * DAY) for day in days}
        return {day: use for day, use in found.items() if use.task_seconds}
