"""Simulate the scheduler forward on a fork of its planner, through all known ends.

An evicted gang ends after its grace period and waits again in its old position. A gang with a bounded duration ends at
its bound. No other gang ends, and no new one arrives.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from corral.kernel.agenda import Agenda
from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.scheduler.events import FOREVER, GangPlaced, TasksLeaving
from corral.scheduler.explain.question import GracePeriods
from corral.scheduler.plan_execution import evicted_tasks
from corral.scheduler.planners.planner import Planner
from corral.scheduler.virtual_run import VirtualRun


class Ending(NamedTuple):
    """The future end of a gang, or of some of its tasks."""

    job: JobId
    begun: float
    """When the gang was placed; an ending of an earlier run of the job is ignored."""
    tasks: tuple[TaskKey, ...]
    """Empty: all tasks end, and the job is over."""


class Forecast(VirtualRun):
    """A forked planner that is advanced through known events; `now` is the simulated time."""

    def __init__(self, planner: Planner, now: float, grace_periods: GracePeriods) -> None:
        super().__init__(planner.fork(), now)
        self.ended: tuple[JobId, ...] = ()
        """The jobs that ended or shrank at the current simulated time."""
        self.started: set[JobId] = set()
        """The jobs placed since the simulation began."""
        self._grace_periods = grace_periods
        gangs = self.cluster.gangs
        ends = [self._ending(max(at, now), job, ()) for at, job in self.cluster.ends]
        ends += [self._ending(now, job, tuple(sorted(gangs.by_job[job].leaving))) for job in sorted(gangs.leaving)]
        self._ends = Agenda(ends)
        self._next_look_at = inf

    def _ending(self, at: float, job: JobId, tasks: tuple[TaskKey, ...]) -> tuple[float, Ending]:
        """Build the ending of tasks that start to terminate at a time, after their grace period."""
        return at + self._grace_periods(job), Ending(job, self.cluster.gangs.by_job[job].placed_at, tasks)

    def cycle(self) -> Plan:
        """Plan once and carry out the plan."""
        found = super().cycle()
        self._next_look_at = found.again_at if found.again_at is not None else inf
        return found

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Record when the gang ends, and queue the unplaced tasks of an elastic gang as growth."""
        self.started.add(found.job)
        if event.ends_at < FOREVER:
            self._ends.add(*self._ending(event.ends_at, found.job, ()))
        super().placed(found, event)

    def evict(self, planner: Planner, eviction: Eviction) -> None:
        """Mark the evicted tasks as leaving, and record when they end."""
        tasks = evicted_tasks(planner.cluster, eviction)
        planner.fold(TasksLeaving(eviction.job, tasks))
        self._ends.add(*self._ending(self.now, eviction.job, tasks))

    def advance(self) -> bool:
        """Advance to the next known event; False if there is none."""
        at = min(self._ends.next_at, self._next_look_at if self._next_look_at > self.now else inf)
        if at == inf:
            return False
        self.now, ended = at, dict[JobId, None]()
        for job, begun, tasks in self._ends.due(at):
            gang = self.cluster.gangs.by_job.get(job)
            if gang is None or gang.placed_at != begun:
                continue
            if tasks:
                self.give_way(job, tasks)
            else:
                self.end(job)
            ended[job] = None
        self.ended = tuple(ended)
        return True
