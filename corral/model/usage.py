"""Who used how much: device, CPU and memory time of attempts, by user, queue, job, tag, node or device model."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from corral.model.exits import ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED, STOP_REQUESTED, SUCCEEDED
from corral.model.records import Record

DAY = 86_400
"""Seconds."""
GIB = 1024**3
"""Bytes."""
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
    MODEL = "model"


class UsageRow(Record, frozen=True):
    """The use of one user, queue, job, tag, node or device model."""

    key: str
    """Its name, of a job its id.

    "" has no name: jobs without a tag, jobs that were removed since, or devices of no known model.
    """
    name: str = ""
    """The name of a job."""
    device_seconds: float = 0.0
    """Seconds of whole devices; half a device for two seconds is one."""
    lost_device_seconds: float = 0.0
    """The part in attempts that failed, were preempted, or were lost with their node."""
    task_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Seconds of the processors that the tasks asked for, not of those that they used."""
    memory_gib_seconds: float = 0.0
    """Seconds of the memory that the tasks asked for, in GiB."""
    measured_task_seconds: float = 0.0
    """The part of the tasks' seconds in which they were measured; what follows is of this part alone."""
    used_cpu_seconds: float = 0.0
    """Seconds of processors that the tasks used."""
    used_memory_gib_seconds: float = 0.0
    """Seconds of memory that the tasks used, in GiB."""
    energy_joules: float = 0.0
    """Energy of the devices that the tasks held, where these tell their power."""
    measured_device_seconds: float = 0.0
    """The part of the devices' seconds in which their use was measured; what follows is of this part alone."""
    used_device_seconds: float = 0.0
    """Seconds of devices by their use: a device of which 40 % are in use for ten seconds counts four."""
    idle_device_seconds: float = 0.0
    """Seconds of devices whose use was below 5 %, in attempts that are not lost: with the lost ones all that was wasted."""
    cost: float | None = None
    """What it costs by the Prices document; null where there is none."""


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
    currency: str = ""
    """Of the costs, by ISO 4217; "" where there are no prices."""


class Use(NamedTuple):
    """Seconds of devices, tasks, processors and GiB of memory, as asked for and as measured, and joules."""

    device_seconds: float = 0.0
    lost_device_seconds: float = 0.0
    task_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_gib_seconds: float = 0.0
    measured_task_seconds: float = 0.0
    used_cpu_seconds: float = 0.0
    used_memory_gib_seconds: float = 0.0
    energy_joules: float = 0.0
    measured_device_seconds: float = 0.0
    used_device_seconds: float = 0.0
    idle_device_seconds: float = 0.0

    def plus(self, other: Use) -> Use:
        """The sum of both."""
        return Use(*(a + b for a, b in zip(self, other, strict=True)))


class UseOf(NamedTuple):
    """The use of one key of a report, on one device model in one queue."""

    key: str
    queue: str
    model: str
    use: Use


class Used(NamedTuple):
    """The use in a period, in as many rows as were asked for."""

    rows: list[UsageRow]
    """The largest first."""
    total: Use
    """The sum of all rows, those too that were left out."""
    row_count: int
    """All rows."""


class Measured(NamedTuple):
    """What an attempt was measured to use."""

    seconds: float = 0.0
    """For which it was measured."""
    cpu_seconds: float = 0.0
    memory_gib_seconds: float = 0.0
    joules: float = 0.0
    device_seconds: float = 0.0
    """Of the devices whose use was measured."""
    used_device_seconds: float = 0.0
    idle_device_seconds: float = 0.0
    """In which a device was used less than a device that counts as idle."""

    def plus(self, other: Measured) -> Measured:
        """The sum of both."""
        return Measured(*(a + b for a, b in zip(self, other, strict=True)))


class Held(msgspec.Struct, frozen=True, gc=False):
    """One attempt as the account sees it; times are in seconds since 1970."""

    started: float
    ended: float
    device_millis: int
    code: int | None
    cpu_millis: int = 0
    memory_bytes: int = 0
    measured: Measured = Measured()

    def within(self, begin: float, end: float) -> Use:
        """Its use between two times; what was measured counts as if it had used the same all the time."""
        seconds = max(0.0, min(self.ended, end) - max(self.started, begin))
        devices = seconds * self.device_millis / 1000
        lost = self.code is not None and self.code not in NOT_LOST
        cpus, memory = seconds * self.cpu_millis / 1000, seconds * self.memory_bytes / GIB
        part = seconds / (self.ended - self.started) if self.ended > self.started else 0.0
        used = [part * each for each in self.measured]
        if lost:
            used[-1] = 0.0  # what idled in it is lost already
        return Use(devices, devices if lost else 0.0, seconds, cpus, memory, *used)

    def by_day(self) -> dict[int, Use]:
        """Its use by the number of the day since 1970, in UTC."""
        days = range(int(self.started // DAY), int(self.ended // DAY) + 1)
        found = {day: self.within(day * DAY, (day + 1) * DAY) for day in days}
        return {day: use for day, use in found.items() if use.task_seconds}
