"""What each clock hour of a life was like: waits, devices in use, preemptions and jobs that wait, by queue."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from corral.control.core.core import Core
from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.phases import Phase, phase
from corral.model.store_writes import FactWrite

HOUR: Final = 3600.0


@dataclass(slots=True)
class Spell:
    """One queue in one hour. Times are in seconds."""

    waits: array[float] = field(default_factory=lambda: array("d"))
    """Of the jobs that started, from when they began to wait."""
    preempted: int = 0
    device_seconds: float = 0.0
    waiting: int = 0
    """Jobs that wait at the end of the hour."""


class HourBook:
    """Writes down what happens to the jobs of a core, from `begin` on; times are in seconds since 1970."""

    def __init__(self, begin: float) -> None:
        self.hours: dict[int, dict[str, Spell]] = {}
        """By the number of the hour since 1970 and by queue."""
        self._at = begin
        self._used: dict[str, float] = {}
        self._seen: tuple[object, int] | None = None
        self._waits_since: dict[JobId, float] = {}
        self._queue_of: dict[JobId, str] = {}

    def take_over(self, core: Core) -> None:
        """Begin with the jobs of a core, and forget those of a core before it."""
        self._waits_since.clear()
        for job in core.world.jobs.values():
            if phase(job.run) is Phase.WAITING and not job.run.hold and not job.run.suspended:
                self._waits_since[job.id] = job.run.waits_since or job.created_at
                self._queue_of[job.id] = job.terms.queue
        self.look(core)

    def advance(self, at: float) -> None:
        """Go on to a time with the devices in use as they are."""
        while self._at < at:
            hour = int(self._at // HOUR)
            end = min(at, (hour + 1) * HOUR)
            for queue, used in self._used.items():
                self._spell(hour, queue).device_seconds += used * (end - self._at)
            self._at = end
            if end == (hour + 1) * HOUR:
                self._count_waiting(hour)

    def close(self, at: float) -> None:
        """Go on to a time at which it ends."""
        self.advance(at)
        if at % HOUR:
            self._count_waiting(int(at // HOUR))

    def look(self, core: Core) -> None:
        """See which devices are in use from now on."""
        cluster = core.world.cluster
        if self._seen == (cluster.queues, cluster.revision):
            return
        self._seen = cluster.queues, cluster.revision
        own = {
            name: node.used[0] - sum(child.used[0] for child in node.children)
            for name, node in cluster.queues.nodes.items()
        }
        self._used = {name: used / DEVICE for name, used in own.items() if used}

    def collect(self, facts: Iterable[FactWrite], core: Core) -> Iterator[tuple[JobId, float]]:
        """Write down what happened; gives the jobs that started, and when."""
        for each in facts:
            kind, job = each.fact.kind, each.job
            if kind == "job.queued":
                self._waits_since.setdefault(job, each.at)
            elif kind == "job.started" and (since := self._waits_since.pop(job, None)) is not None:
                self._spell(int(each.at // HOUR), self._queue(job, core)).waits.append(each.at - since)
                yield job, each.at
            elif kind == "job.preempted":
                self._spell(int(each.at // HOUR), self._queue(job, core)).preempted += 1
            elif kind == "job.completed":
                self._waits_since.pop(job, None)
                self._queue_of.pop(job, None)

    def _count_waiting(self, hour: int) -> None:
        for job in self._waits_since:
            self._spell(hour, self._queue_of.get(job, "default")).waiting += 1

    def _queue(self, job: JobId, core: Core) -> str:
        live = core.world.jobs.get(job)
        if live is not None:
            self._queue_of[job] = live.terms.queue
        return self._queue_of.get(job, "default")

    def _spell(self, hour: int, queue: str) -> Spell:
        queues = self.hours.setdefault(hour, {})
        found = queues.get(queue)
        if found is None:
            found = queues[queue] = Spell()
        return found
