"""Carry out plans on a cluster in virtual time; preempted jobs end when the test says so."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Plan, Rule
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    GangPlaced,
    GangQueued,
    Planner,
    Policy,
    QueuesConfigured,
    VirtualRun,
)
from tests.scheduler.machines import check, cluster


class Life(VirtualRun):
    """Virtual time, one cluster, one queue; checks every placement and compares every index with a rebuilt one."""

    def __init__(self, nodes: Sequence[Node], queues: Sequence[QueueSpec] = (), policy: Policy | None = None) -> None:
        super().__init__(BuiltinPlanner(cluster(*nodes), policy=policy))
        self.queue.arrange(self.policy.order, self.cluster.history, 0.0)
        self.requests: dict[str, GangRequest] = {}
        self.running: dict[str, float] = {}
        """Start time by running job."""
        self.leaving: dict[str, Eviction] = {}
        self.receipts: list[Eviction] = []
        self.configure(*queues)

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
        found = super().cycle()
        assert self.planner.consistent()
        return found

    def plan(self) -> Plan:
        """Return the next plan; planning changes nothing."""
        before = self.planner.digest()
        found = super().plan()
        assert self.planner.digest() == before
        for fault in found.faults:
            assert fault.name != type(getattr(self.policy, fault.part)).__name__, f"a built-in part failed: {fault}"
        return found

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        """Check that the placement fulfils its request."""
        check(self.cluster, request, found.placement)
        return found.placement

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Run the gang; its missing tasks wait to grow."""
        self.running.setdefault(found.job, self.now)
        super().placed(found, event)

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
        super().end(*jobs)
        for job in jobs:
            self.running.pop(job, None)
            self.leaving.pop(job, None)

    def yielded(self) -> None:
        """End all preempted gangs; they wait again in their old places, and shrunk ones wait to grow."""
        for job, eviction in list(self.leaving.items()):
            self.give_way(JobId(job), eviction.tasks)
            del self.leaving[job]
            if not eviction.tasks:
                del self.running[job]

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
