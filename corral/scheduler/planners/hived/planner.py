"""HiveD as a planner: beside cluster and queue it keeps HiveD's account of one engine, folded from the same events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.configuration import Configuration
from corral.model.plan import CellsReserved, PartFault, Plan, Reasons
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change
from corral.scheduler.cluster.cluster import Cluster, placed_again
from corral.scheduler.events import (
    ClusterEvent,
    GangPlaced,
    GangQueued,
    GuaranteeLost,
    NodesSeen,
    NominationLapsed,
    PlannerEvent,
    QueueEvent,
    TasksReleased,
)
from corral.scheduler.explain.question import Said, as_it_is
from corral.scheduler.explain.shortage import could_ever_fit
from corral.scheduler.planners.hived.cell_owners import HivedOwners
from corral.scheduler.planners.hived.cycle import explain_hived, plan_hived
from corral.scheduler.planners.hived.settings import HivedSettings, read_settings
from corral.scheduler.planners.hived.state_fold import Hived
from corral.scheduler.planners.planner import Planner
from corral.scheduler.policy.faults import PolicyInForce
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.registry import find_policy
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.views.cell_owners import Owners, quota_owners


class HivedPlanner:
    """Plans by HiveD's algorithm; queue limits hold as under every planner."""

    def __init__(self, cluster: Cluster, queue: Queue, policy: Policy, settings: HivedSettings) -> None:
        """Let HiveD decide from now on, about running gangs too; gangs it did not place are opportunistic to it."""
        self.cluster = cluster
        self.queue = queue
        self._in_force = PolicyInForce(policy)
        self.configured = settings
        self.hived = Hived(settings)
        """HiveD's own account of the engine."""
        self._changes = 0
        queue.memory, queue.history = None, cluster.history
        for gang in sorted(cluster.gangs.by_job.values(), key=lambda gang: (gang.placed_at, gang.job)):
            self.hived.apply(placed_again(gang, cluster.holds(gang.job)))
        self._see_all()

    @property
    def policy(self) -> Policy:
        """Return the policy in force, without an order that was switched off."""
        return self._in_force.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._in_force.configure(policy)

    @classmethod
    def begun(cls, settings: HivedSettings, policy: Policy | None = None) -> HivedPlanner:
        """Return a planner that knows no machine yet."""
        return cls(Cluster(), Queue(), policy if policy is not None else find_policy("hived"), settings)

    @classmethod
    def settings(cls, configuration: Configuration) -> object:
        """Return HiveD's cells; `read_settings` says what it raises."""
        return read_settings(configuration)

    @classmethod
    def take_over(cls, before: Planner, policy: Policy, settings: object, now: float) -> Planner:
        """Return HiveD on these cells: a work-preserving reconfiguration where it decided about the engine before."""
        assert isinstance(settings, HivedSettings)
        if not isinstance(before, HivedPlanner) or before.configured.engine != settings.engine:
            return cls(before.cluster, before.queue, policy, settings)
        before.policy = policy
        return before if before.configured == settings else before.reconfigured(settings, now)

    def reconfigured(self, settings: HivedSettings, now: float = 0.0) -> HivedPlanner:
        """Return a planner with other cells over the same cluster and queue; running gangs are never ended by it."""
        twin = self._with(self.cluster, self.queue, self.hived.reconfigured(settings, now))
        twin.configured = settings
        twin._changes += 1
        twin._see_all()
        return twin

    def _see_all(self) -> None:
        for inventory in self.cluster.inventories():
            self.hived.apply(NodesSeen(inventory))

    def _with(self, cluster: Cluster, queue: Queue, hived: Hived) -> HivedPlanner:
        twin = object.__new__(HivedPlanner)
        twin.cluster, twin.queue, twin.hived = cluster, queue, hived
        twin._in_force = self._in_force.copy()
        twin.queue.history = twin.cluster.history
        twin.configured, twin._changes = self.configured, self._changes
        return twin

    @property
    def revision(self) -> tuple[int, ...]:
        """Return the revisions of cluster and queue, and the number of changes of HiveD's account."""
        return (self.cluster.revision, self.queue.revision, self._changes)

    def fold(self, event: PlannerEvent) -> None:
        """Fold one committed event into HiveD's account, cluster and queue; `Cluster.apply` says what it raises."""
        if isinstance(event, GangPlaced | TasksReleased | CellsReserved | NominationLapsed):
            self._changes += self.hived.apply(event)
        elif isinstance(event, GuaranteeLost):
            self.hived.recall_loss(event.job, event.by, event.at)
        before = self.cluster.revision
        if isinstance(event, ClusterEvent):
            self.cluster.apply(event)
        if isinstance(event, NodesSeen) and self.cluster.revision != before:
            self._changes += self.hived.apply(event)
        if isinstance(event, QueueEvent):
            self.queue.apply(event)
        if isinstance(event, PartFault):
            self._in_force.fold(event)

    def plan(self, now: float) -> Plan:
        """Return the next plan."""
        found = plan_hived(self, now)
        if found.faults:
            return msgspec.structs.replace(found, faults=self._in_force.counted(found.faults))
        return found

    def explain(self, job: JobId, now: float) -> Reasons | None:
        """Return why a job waits, by asking HiveD again; None if it does not wait."""
        return explain_hived(self, self.queue, job, now)

    def explain_new(self, request: GangRequest, now: float) -> Reasons | None:
        """Return why a gang would wait if it were queued now, found on a fork of the queue."""
        queue = self.queue.fork()
        queue.apply(GangQueued(request))
        return explain_hived(self, queue, request.job, now)

    def could_ever_fit(self, request: GangRequest) -> Reasons | None:
        """Return why a gang could not start even if nothing ran; a gang in several cells is always tried."""
        return could_ever_fit(self.cluster, request, in_several_cells=True)

    def smallest_changes(self, job: JobId, reasons: Reasons, now: float, said: Said = as_it_is) -> tuple[Change, ...]:
        """Return none: HiveD's algorithm is not asked about requests that nobody made."""
        return ()

    def likely_back(self, job: JobId, tasks: Collection[TaskKey], now: float) -> float | None:
        """Return None: HiveD knows no durations."""
        return None

    def owners_of(self, engine: str) -> Owners | None:
        """Return the owners by HiveD's bound cells on its own engine, and by the quotas of queues on others."""
        if engine == self.hived.engine:
            return HivedOwners(self.hived, self.cluster.engines[engine])
        return quota_owners(self.cluster, engine)

    def without_guarantee(self) -> Mapping[JobId, str]:
        """Return the jobs that were preempted lazily, each with the group that did it."""
        return {job: self.hived.preemptor(job) for job in self.hived.lost()}

    def newly_without_guarantee(self) -> tuple[JobId, ...]:
        """Return the jobs that the last configuration of cells has preempted lazily."""
        return self.hived.demoted()

    def fork(self) -> HivedPlanner:
        """Return an independent copy: O(cells) beside cluster and queue."""
        return self._with(self.cluster.fork(), self.queue.fork(), self.hived.copy())

    def digest(self) -> str:
        """Return a hash of cluster, queue and HiveD's account, and of how often the order failed."""
        parts = f"{self.cluster.digest()}{self.queue.digest()}{self.hived.digest()}{self._in_force.columns()}"
        return blake2b(parts.encode(), digest_size=16).hexdigest()

    def consistent(self) -> bool:
        """Return whether all indexes, and HiveD's account, equal a rebuild."""
        return self.hived.algorithm.consistent() and self.cluster.consistent()
