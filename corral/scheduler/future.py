"""Why: "when does it start?" is answered by letting the scheduler itself live on, on copies, through all known ends.

What a plan proposes is carried out as control would; whoever is told to yield ends after its grace period and waits
again in its old place; whoever has a bounded duration ends when that is over. Nobody else ends, and nobody new comes.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.model.requests import GangRequest
from corral.scheduler.carrying_out import Steps, carry_out, told_to_end
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import (
    FOREVER,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    TasksLeaving,
    TasksReleased,
)
from corral.scheduler.gangs import Running
from corral.scheduler.planning import Memory, plan
from corral.scheduler.policy import Policy
from corral.scheduler.queue import Queue

Graces = Callable[[JobId], float]
"""Seconds between being told to end and being over at the latest, by job."""


def at_once(_: JobId) -> float:
    """Whoever is told to end does so at once."""
    return 0.0


class Ending(NamedTuple):
    """When a gang, or some of its tasks, are over."""

    at: float
    number: int
    job: JobId
    begun: float
    """Since when it runs: if it yielded meanwhile and began anew, this is about nobody any more."""
    tasks: tuple[TaskKey, ...]
    """None named: all of them, for good."""


class Future(Steps):
    """A cluster and a queue of its own that live through what is known; `now` is how far they have come."""

    def __init__(self, cluster: Cluster, queue: Queue, policy: Policy, now: float, graces: Graces) -> None:
        self.cluster = cluster.fork()
        self.queue = queue.fork()
        self.policy = policy
        self.now = now
        self.ended: tuple[JobId, ...] = ()
        """The jobs that ended, or shrank, at the time that it is now."""
        self.started: set[JobId] = set()
        """The jobs that were placed since it began."""
        self._graces = graces
        self._number = count()
        self._ends = [self._ending(max(at, now), job, ()) for at, job in self.cluster.ends]
        for job in sorted(self.cluster.gangs.leaving):
            self._ends.append(self._ending(now, job, tuple(sorted(self.cluster.gangs.by_job[job].leaving))))
        heapify(self._ends)
        self._again = inf
        memory = self.queue.memory
        if isinstance(memory, Memory):
            memory.cluster = self.cluster

    def _ending(self, at: float, job: JobId, tasks: tuple[TaskKey, ...]) -> Ending:
        """What is told to end at a time, and when it is over."""
        begun = self.cluster.gangs.by_job[job].placed_at
        return Ending(at + self._graces(job), next(self._number), job, begun, tasks)

    def cycle(self) -> Plan:
        """Plan once and carry it out."""
        found = plan(self.cluster, self.queue, self.policy, self.now)
        carry_out(self.cluster, self.queue, found, self.now, self)
        self._again = found.again_at if found.again_at is not None else inf
        return found

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Note when it ends, and have the tasks of an elastic gang that have no place wait for one."""
        self.started.add(found.job)
        if event.ends_at < FOREVER:
            heappush(self._ends, self._ending(event.ends_at, found.job, ()))
        if event.request is not None:
            self._wait_to_grow(found.job, event.request)

    def evict(self, cluster: Cluster, eviction: Eviction) -> None:
        """Tell it to end, and note when it will have."""
        told = told_to_end(cluster, eviction)
        cluster.apply(TasksLeaving(eviction.job, told))
        heappush(self._ends, self._ending(self.now, eviction.job, told))

    def advance(self) -> bool:
        """Go on to the next time at which something is known to happen; False when there is none."""
        at = min(self._ends[0].at if self._ends else inf, self._again if self._again > self.now else inf)
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

    def _end(self, gang: Running, tasks: tuple[TaskKey, ...]) -> None:
        """These tasks (or all) are over; those that yielded wait again."""
        held, request = tuple(self.cluster.holds(gang.job)), gang.request
        self.cluster.apply(TasksReleased(gang.job, tasks or held, self.now))
        if not tasks:
            for waiting in self.queue.waiting(gang.job):
                self.queue.apply(GangWithdrawn(gang.job, waiting.tasks))
        elif request is None:
            return
        elif set(tasks) >= set(held):
            self.queue.apply(GangQueued(structs.replace(request, beside=())))
        else:
            self._wait_to_grow(gang.job, request)

    def _wait_to_grow(self, job: JobId, request: GangRequest) -> None:
        """The tasks of an elastic gang that have no place wait for one."""
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
            self.queue.apply(GangQueued(structs.replace(request, roles=tuple(roles), beside=nodes)))
