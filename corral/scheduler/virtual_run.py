"""Run a planner in virtual time: carry out its plans, and let gangs end, shrink, grow and wait again.

Benchmarks, pictures and tests derive from it; each decides when gangs end.
"""

from __future__ import annotations

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import GangPlacement, Plan
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import GangPlaced, GangQueued, GangWithdrawn, TasksReleased
from corral.scheduler.plan_execution import PlanHooks, execute_plan
from corral.scheduler.planners.planner import Planner
from corral.scheduler.queues.waiting_queue import Queue


class VirtualRun(PlanHooks):
    """A planner whose plans take effect at once; `now` is the virtual time in seconds."""

    def __init__(self, planner: Planner, now: float = 0.0) -> None:
        self.planner = planner
        self.now = now

    @property
    def cluster(self) -> Cluster:
        """The planner's cluster."""
        return self.planner.cluster

    @property
    def queue(self) -> Queue:
        """The planner's queue."""
        return self.planner.queue

    def cycle(self) -> Plan:
        """Plan once and carry out the plan."""
        found = self.plan()
        execute_plan(self.planner, found, self.now, self)
        return found

    def plan(self) -> Plan:
        """Return the next plan."""
        return self.planner.plan(self.now)

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Queue the unplaced tasks of an elastic gang as growth."""
        self.wait_to_grow(found.job, event.request)

    def release(self, job: JobId, tasks: tuple[TaskKey, ...]) -> None:
        """Free what these tasks hold."""
        self.planner.fold(TasksReleased(job, tasks, self.now))

    def end(self, *jobs: str) -> None:
        """End these jobs: they hold nothing and wait for nothing any more."""
        for job in map(JobId, jobs):
            for waiting in self.queue.waiting(job):
                self.planner.fold(GangWithdrawn(job, waiting.tasks))
                self.planner.fold(TasksReleased(job, waiting.tasks, self.now))  # a planner may have kept cells for them
            self.release(job, tuple(self.cluster.holds(job)))

    def give_way(self, job: JobId, tasks: tuple[TaskKey, ...] = ()) -> None:
        """End the preempted tasks of a gang, or all of them.

        A gang that holds nothing then waits again in its old position, any other one waits to grow again.
        """
        held, request = tuple(self.cluster.holds(job)), self.cluster.gangs.by_job[job].request
        self.release(job, tasks or held)
        if request is None:
            return
        if not tasks or set(tasks) >= set(held):
            self.planner.fold(GangQueued(structs.replace(request, beside=())))
        else:
            self.wait_to_grow(job, request)

    def wait_to_grow(self, job: JobId, request: GangRequest) -> None:
        """Queue the tasks of a running elastic gang that have no place."""
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
