"""The configuration in force: what the scheduler, launches and graces read of the documents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from corral.model.configuration import Configuration
from corral.scheduler import HivedConfigured, Policy, PriorityOrder, QueuesConfigured, find_policy
from corral.scheduler.planners.hived.algorithm import HivedAlgorithm
from corral.spec.policy import PolicyDocument
from corral.spec.storage import StorageDocument


@dataclass(frozen=True)
class Configured:
    """The documents in force, and what follows from them."""

    policy: Policy
    now: Configuration = field(default_factory=Configuration)
    hived: HivedConfigured = field(default_factory=lambda: HivedConfigured(None))
    """What HiveD's algorithm decides about; nothing while its preset is not in force."""
    following: frozenset[str] = frozenset()
    """The engines whose nodes are those that documents describe."""

    def grace(self, queue: str, own: float, asked: float | None = None) -> float | None:
        """Seconds between the request to end and the kill of a preempted task; None leaves the job its `own`.

        A drain may ask for other seconds than the job; the queue bounds both.
        """
        said = self.now.queues.get(queue)
        most = said.grace_period_seconds if said is not None else 0
        return min(own if asked is None else asked, float(most)) if most else asked

    def storage(self, name: str) -> StorageDocument | None:
        """The document of a storage; None when there is none."""
        return self.now.storages.get(name)

    def image_pull_secrets(self, queue: str) -> tuple[str, ...]:
        """The registry secrets of a queue and of the queues above it, nearest first."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        while queue in self.now.queues and queue not in seen:
            seen.add(queue)
            said = self.now.queues[queue]
            found |= dict.fromkeys(said.image_pull_secrets)
            queue = said.parent
        return tuple(found)

    def told(self) -> QueuesConfigured:
        """The event by which the scheduler learns of the queues."""
        return QueuesConfigured(self.now.queue_specs())


def hived_configured(configuration: Configuration) -> HivedConfigured:
    """The event that tells the scheduler about HiveD's algorithm.

    Raises InvalidInput when HiveD cannot express the documents, or when the cells of virtual clusters do not fit.
    """
    found = configuration.hived()
    if found is None:
        return HivedConfigured(None)
    engine, cluster = found
    HivedAlgorithm(cluster)
    lazily = configuration.policy is not None and configuration.policy.lazy_preemption
    return HivedConfigured(cluster, engine, lazily)


def scheduler_policy(document: PolicyDocument | None, default: Policy) -> Policy:
    """The scheduling policy of a document.

    Raises InvalidInput for a preset that is not installed.
    """
    if document is None:
        return default
    policy = find_policy(document.preset or document.order)
    order, ageing = policy.order, float(document.ageing.seconds_per_priority)
    return replace(
        policy,
        order=PriorityOrder(ageing) if ageing and isinstance(order, PriorityOrder) else order,
        fair_users=policy.fair_users and document.fair_users,
        backfill=policy.backfill and document.backfill,
        preemption=policy.preemption and document.preemption,
        consolidation=policy.consolidation and document.consolidation,
        move_seconds=float(document.elastic.move_seconds) if policy.move_seconds else 0.0,
    )
