"""Carry out plans on a cluster in virtual time; preempted jobs end when the test says so."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Node
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Plan, Rule
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    Cluster,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    PlanHooks,
    Planner,
    Policy,
    Queue,
    QueuesConfigured,
    TasksReleased,
    execute_plan,
)
from tests.scheduler.machines import check, cluster


class Life(PlanHooks):
    """Virtual time, one cluster, one queue; checks every placement and compares every index with a rebuilt one."""

    def __init__(self, nodes: Sequence[Node], queues: Sequence[QueueSpec] = (), policy: Policy | None = None) -> None:
        self.planner: Planner = BuiltinPlanner(cluster(*nodes), policy=policy)
        self.queue.arrange(self.policy.order)
        self.now = 0.0
        self.requests: dict[str, GangRequest] = {}
        self.running: dict[str, float] = {}
        """Start time by running job."""
        self.leaving: dict[str, Eviction] = {}
        self.receipts: list[Eviction] = []
        self.configure(*queues)

    @property
    def cluster(self) -> Cluster:
        """The planner's cluster."""
        return self.planner.cluster

    @property
    def queue(self) -> Queue:
        """The planner's queue."""
        return self.planner.queue

    @property
    def policy(self) -> Policy:
        """The planner's policy."""
        return self.planner.policy

    def configure(self, *queues: QueueSpec) -> None:
        """Set the queues."""
        self.planner.fold(QueuesConfigured(tuple(queues)))

    def submit(self, *requests: GangRequest) -> None:
        """Queue these requests."""
        for request in requests:
            self.requests[request.job] = request
            self.planner.fold(GangQueued(request))

    def cycle(self, at: float | None = None) -> Plan:
        """Plan once and carry it out; preempted gangs are told, and keep their devices until they end."""
        self.now = self.now if at is None else at
        before = self.planner.digest()
        found = self.planner.plan(self.now)
        assert self.planner.digest() == before
        execute_plan(self.planner, found, self.now, self)
        assert self.planner.consistent()
        return found

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        """Check that the placement fulfils its request."""
        check(self.cluster, request, found.placement)
        return found.placement

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Run the gang; its missing tasks wait to grow."""
        self.running.setdefault(found.job, self.now)
        self.grow(found.job)

    def evict(self, planner: Planner, eviction: Eviction) -> None:
        """Tell a gang to end, once; it keeps its devices."""
        assert eviction.job in self.running
        assert len(set(eviction.tasks)) < len(self.cluster.holds(eviction.job))
        before_it = self.leaving.get(eviction.job)
        assert before_it is None or (before_it.tasks and not set(before_it.tasks) & set(eviction.tasks))
        super().evict(planner, eviction)
        self.receipts.append(eviction)
        if eviction.tasks and before_it is not None:
            eviction = structs.replace(eviction, tasks=(*before_it.tasks, *eviction.tasks))
        self.leaving[eviction.job] = eviction

    def end(self, *jobs: str) -> None:
        """End these jobs."""
        for job in jobs:
            for waiting in self.queue.waiting(JobId(job)):
                self.planner.fold(GangWithdrawn(JobId(job), waiting.tasks))
                self.planner.fold(TasksReleased(JobId(job), waiting.tasks, self.now))
            self.planner.fold(TasksReleased(JobId(job), tuple(self.cluster.holds(JobId(job))), self.now))
            self.running.pop(job, None)
            self.leaving.pop(job, None)

    def yielded(self) -> None:
        """End all preempted gangs; they wait again in their old places, and shrunk ones wait to grow."""
        for job, eviction in list(self.leaving.items()):
            if eviction.tasks:
                self.shrink(job, *eviction.tasks)
                del self.leaving[job]
                continue
            self.end(job)
            self.planner.fold(GangQueued(self.requests[job]))

    def shrink(self, job: str, *tasks: TaskKey) -> None:
        """End these tasks, which then wait to join their gang again."""
        self.planner.fold(TasksReleased(JobId(job), tasks, self.now))
        self.grow(job)

    def grow(self, job: str) -> None:
        """Queue the missing tasks of a running elastic gang."""
        held = self.cluster.holds(JobId(job))
        request = self.requests[job]
        roles = []
        for role in request.roles:
            missing = tuple(index for index in role.indexes if TaskKey(role.role, index) not in held)
            if missing:
                roles.append(structs.replace(role, indexes=missing, minimum=0))
        if roles and held:
            nodes = tuple(dict.fromkeys(hold.node for hold in held.values()))
            self.planner.fold(GangQueued(structs.replace(request, roles=tuple(roles), beside=nodes)))

    def sizes(self) -> dict[str, int]:
        """The number of tasks of each running job."""
        return {job: len(self.cluster.holds(JobId(job))) for job in sorted(self.running)}

    def settle(self, at: float | None = None, cycles: int = 20) -> None:
        """Plan until nothing changes; preempted gangs end at once."""
        for _ in range(cycles):
            found, quiet = self.cycle(at), not self.leaving
            self.yielded()
            if quiet and not found.placements:
                return
        raise AssertionError(f"nothing settles: {self.receipts[-4:]}")

    def why(self, job: str) -> str:
        """The code of a waiting job's last reason."""
        entry = self.queue.first(JobId(job))
        assert entry is not None and entry.reported is not None
        return entry.reported.binding.code

    def rules(self) -> list[tuple[str, Rule]]:
        """The preempted jobs and the rules of their preemption, in order."""
        return [(receipt.job, receipt.rule) for receipt in self.receipts]
