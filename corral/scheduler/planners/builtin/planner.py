"""The built-in planner: it decides by a policy's order, fairness, backfill and preemption."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Final, get_args

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.configuration import Configuration
from corral.model.plan import PartFault, Plan, Reasons
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import ClusterEvent, GangQueued, PlannerEvent, QueueEvent
from corral.scheduler.explain.question import Said, as_it_is
from corral.scheduler.explain.shortage import could_ever_fit
from corral.scheduler.explain.smallest_change import smallest_changes
from corral.scheduler.planners.builtin.planning import Memory, explain, plan
from corral.scheduler.planners.planner import Planner
from corral.scheduler.policy.faults import PolicyInForce
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.registry import find_policy
from corral.scheduler.preemption.return_estimate import likely_back
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.views.cell_owners import Owners, quota_owners

_OF_CLUSTER: Final = frozenset(get_args(ClusterEvent))
_OF_QUEUE: Final = frozenset(get_args(QueueEvent))


class BuiltinPlanner:
    """Plans by a policy; its whole state is the cluster, the queue, and how often parts of the policy failed."""

    def __init__(
        self, cluster: Cluster | None = None, queue: Queue | None = None, policy: Policy | None = None
    ) -> None:
        self.cluster = cluster if cluster is not None else Cluster()
        self.queue = queue if queue is not None else Queue()
        self.queue.history = self.cluster.history
        self._in_force = PolicyInForce(policy if policy is not None else find_policy())

    @property
    def policy(self) -> Policy:
        """Return the policy in force, without the parts that were switched off."""
        return self._in_force.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._in_force.configure(policy)

    @classmethod
    def settings(cls, configuration: Configuration) -> object:
        """Return None: it reads nothing but queues and policy."""
        return None

    @classmethod
    def take_over(cls, before: Planner, policy: Policy, settings: object, now: float) -> Planner:
        """Return a planner over the same cluster and queue, or `before` itself with the policy."""
        if isinstance(before, BuiltinPlanner):
            before.policy = policy
            return before
        return cls(before.cluster, before.queue, policy)

    @property
    def revision(self) -> tuple[int, ...]:
        """Return the revisions of cluster and queue."""
        return (self.cluster.revision, self.queue.revision)

    def fold(self, event: PlannerEvent) -> None:
        """Fold one committed event into cluster and queue; `Cluster.apply` says what it raises."""
        kind = type(event)
        if kind in _OF_CLUSTER:
            self.cluster.apply(event)  # type: ignore[arg-type]
        if kind in _OF_QUEUE:
            self.queue.apply(event)  # type: ignore[arg-type]
        if isinstance(event, PartFault):
            self._in_force.fold(event)

    def plan(self, now: float) -> Plan:
        """Return the next plan."""
        found = plan(self.cluster, self.queue, self.policy, now)
        if found.faults:
            return msgspec.structs.replace(found, faults=self._in_force.counted(found.faults))
        return found

    def explain(self, job: JobId, now: float) -> Reasons | None:
        """Return why a job waits; None if it does not wait."""
        return explain(self.cluster, self.queue, self.policy, job, now)

    def explain_new(self, request: GangRequest, now: float) -> Reasons | None:
        """Return why a gang would wait if it were queued now, found on a fork of the queue."""
        queue = self.queue.fork()
        queue.apply(GangQueued(request))
        return explain(self.cluster, queue, self.policy, request.job, now)

    def could_ever_fit(self, request: GangRequest) -> Reasons | None:
        """Return why a gang could not start even if nothing ran; None if it could."""
        return could_ever_fit(self.cluster, request)

    def smallest_changes(self, job: JobId, reasons: Reasons, now: float, said: Said = as_it_is) -> tuple[Change, ...]:
        """Return the smallest changes that would start a waiting job now."""
        return smallest_changes(self.cluster, self.queue, self.policy, job, reasons, now, said)

    def likely_back(self, job: JobId, tasks: Collection[TaskKey], now: float) -> float | None:
        """Return when a gang that must leave these tasks' nodes fits there again or elsewhere; None if unknown."""
        return likely_back(self.cluster, job, tasks, now)

    def owners_of(self, engine: str) -> Owners | None:
        """Return the owners by the quotas of queues; None if no queue owns cells of the engine."""
        return quota_owners(self.cluster, engine)

    def without_guarantee(self) -> Mapping[JobId, str]:
        """Return nothing: guests of cells are no longer guaranteed, but no gang took that from them."""
        return {}

    def newly_without_guarantee(self) -> tuple[JobId, ...]:
        """Return nothing."""
        return ()

    def fork(self) -> BuiltinPlanner:
        """Return an independent copy, with what planning remembers."""
        twin = BuiltinPlanner(self.cluster.fork(), self.queue.fork(), self.policy)
        twin._in_force = self._in_force.copy()
        if isinstance(twin.queue.memory, Memory):
            twin.queue.memory.cluster = twin.cluster
        return twin

    def digest(self) -> str:
        """Return a hash of cluster and queue, and of how often parts of the policy failed."""
        state = f"{self.cluster.digest()}{self.queue.digest()}{self._in_force.columns()}"
        return blake2b(state.encode(), digest_size=16).hexdigest()

    def consistent(self) -> bool:
        """Return whether all indexes equal a rebuild."""
        return self.cluster.consistent()
