"""Simulate the scheduler forward on a fork of its planner, through all known ends.

Plans are carried out as control would. An evicted gang ends after its grace period and waits again in its old position.
A gang with a bounded duration ends at its bound. No other gang ends, and no new one arrives.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.model.requests import GangRequest
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.events import (
    FOREVER,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    TasksLeaving,
    TasksReleased,
)
from corral.scheduler.explain.question import GracePeriods
from corral.scheduler.plan_execution import PlanHooks, evicted_tasks, execute_plan
from corral.scheduler.planners.planner import Planner


class Ending(NamedTuple):
    """The future end of a gang, or of some of its tasks."""

    at: float
    number: int
    job: JobId
    begun: float
    """When the gang was placed; an ending of an earlier run of the job is ignored."""
    tasks: tuple[TaskKey, ...]
    """Empty: all tasks end, and the job is over."""


class Forecast(PlanHooks):
    """A forked planner that is advanced through known events; `now` is the simulated time."""

    def __init__(self, planner: Planner, now: float, grace_periods: GracePeriods) -> None:
        self.planner = planner.fork()
        self.cluster, self.queue = self.planner.cluster, self.planner.queue
        self.now = now
        self.ended: tuple[JobId, ...] = ()
        """The jobs that ended or shrank at the current simulated time."""
        self.started: set[JobId] = set()
        """The jobs placed since the simulation began."""
        self._grace_periods = grace_periods
        self._number = count()
        self._ends = [self._ending(max(at, now), job, ()) for at, job in self.cluster.ends]
        for job in sorted(self.cluster.gangs.leaving):
            self._ends.append(self._ending(now, job, tuple(sorted(self.cluster.gangs.by_job[job].leaving))))
        heapify(self._ends)
        self._next_look_at = inf

    def _ending(self, at: float, job: JobId, tasks: tuple[TaskKey, ...]) -> Ending:
        """Build the ending of tasks that start to terminate at a time, after their grace period."""
        begun = self.cluster.gangs.by_job[job].placed_at
        return Ending(at + self._grace_periods(job), next(self._number), job, begun, tasks)

    def cycle(self) -> Plan:
        """Plan once and carry out the plan."""
        found = self.planner.plan(self.now)
        execute_plan(self.planner, found, self.now, self)
        self._next_look_at = found.again_at if found.again_at is not None else inf
        return found

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Record when the gang ends, and queue the unplaced tasks of an elastic gang as growth."""
        self.started.add(found.job)
        if event.ends_at < FOREVER:
            heappush(self._ends, self._ending(event.ends_at, found.job, ()))
        if event.request is not None:
            self._wait_to_grow(found.job, event.request)

    def evict(self, planner: Planner, eviction: Eviction) -> None:
        """Mark the evicted tasks as leaving, and record when they end."""
        tasks = evicted_tasks(planner.cluster, eviction)
        planner.fold(TasksLeaving(eviction.job, tasks))
        heappush(self._ends, self._ending(self.now, eviction.job, tasks))

    def advance(self) -> bool:
        """Advance to the next known event; False if there is none."""
        at = min(self._ends[0].at if self._ends else inf, self._next_look_at if self._next_look_at > self.now else inf)
        if at == inf:
            return False
        self.now, ended = at, list[JobId]()
        while self._ends and self._ends[0].at <= at:
            ending = heappop(self._ends)
            gang = self.cluster.gangs.by_job.get(ending.job)
            if gang is not None and gang.placed_at == ending.begun:
                self._end(gang, ending.tasks)
                ended.append(ending.job)
        self.ended = tuple(dict.fromkeys(ended))
        return True

    def _end(self, gang: RunningGang, tasks: tuple[TaskKey, ...]) -> None:
        """Release these tasks, or all; evicted tasks are queued again."""
        held, request = tuple(self.cluster.holds(gang.job)), gang.request
        self.planner.fold(TasksReleased(gang.job, tasks or held, self.now))
        if not tasks:
            for waiting in self.queue.waiting(gang.job):
                self.planner.fold(GangWithdrawn(gang.job, waiting.tasks))
        elif request is None:
            return
        elif set(tasks) >= set(held):
            self.planner.fold(GangQueued(structs.replace(request, beside=())))
        else:
            self._wait_to_grow(gang.job, request)

    def _wait_to_grow(self, job: JobId, request: GangRequest) -> None:
        """Queue the tasks of an elastic gang that have no place."""
        held = self.cluster.holds(job)
        if not held or all(role.minimum == len(role.indexes) for role in request.roles):
            return
        roles = []
        for role in request.roles:
            missing = tuple(index for index in role.indexes if TaskKey(role.role, index) not in held)
            if missing:
                roles.append(structs.replace(role, indexes=missing, minimum=0))
        if roles:
            nodes = tuple(dict.fromkeys(hold.node for hold in held.values()))
            self.planner.fold(GangQueued(structs.replace(request, roles=tuple(roles), beside=nodes)))
