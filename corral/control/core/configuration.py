"""The configuration in force: what the scheduler, launches and graces read of the documents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from corral.model.configuration import Configuration
from corral.model.queue_ancestors import cache_default
from corral.scheduler import (
    Policy,
    PriorityOrder,
    QueuesConfigured,
    find_allot,
    find_place,
    find_planner,
    find_policy,
    find_preempt,
)
from corral.spec.policy import PolicyDocument
from corral.spec.storage import StorageDocument


@dataclass(frozen=True)
class Configured:
    """The documents in force, and what follows from them."""

    policy: Policy
    now: Configuration = field(default_factory=Configuration)
    planner: object = None
    """The settings of the policy's planner, as `planner_settings` returns them."""
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

    def compile_cache(self, queue: str) -> tuple[str, str] | None:
        """The default of `compileCache` for the jobs of a queue, and the queue that sets it; None if none does."""
        return cache_default(self.now.queues, queue)

    def told(self) -> QueuesConfigured:
        """The event by which the scheduler learns of the queues."""
        return QueuesConfigured(self.now.queue_specs())


def planner_settings(policy: Policy, configuration: Configuration) -> object:
    """What the policy's planner reads of the documents.

    Raises InvalidInput when it cannot work with them, or when there is no such planner.
    """
    return find_planner(policy.planner).settings(configuration)


def scheduler_policy(document: PolicyDocument | None, default: Policy) -> Policy:
    """The scheduling policy of a document.

    Raises InvalidInput for a preset, an order or another part that is not installed.
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
        allot=find_allot(document.allot) if document.allot else policy.allot,
        preempt=find_preempt(document.preempt) if document.preempt else policy.preempt,
        place=find_place(document.place) if document.place else policy.place,
    )
