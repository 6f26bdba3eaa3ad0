"""Apply the stored documents to the scheduler, the engines and the policy, at every start and while running.

When documents cannot be read (another version stored them), the configuration in force stays, and an error is logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from corral.kernel.errors import CorralError
from corral.model.configuration import Configuration, read_configuration
from corral.model.inventory import Inventory
from corral.scheduler import HivedConfigured, Policy, PriorityOrder, QueuesConfigured, find_policy
from corral.scheduler.hived import HivedAlgorithm
from corral.spec.cluster import ClusterDocument
from corral.spec.policy import PolicyDocument
from corral.spec.storage import StorageDocument
from corral.store import Store

log = structlog.get_logger()


class Presenter(Protocol):
    """The engines whose nodes are described by Cluster documents."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        """The inventories that those engines would present with these Cluster documents (by engine)."""
        ...

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        """Have those engines present the documents' nodes from now on; returns the engines' names."""
        ...


class NothingDescribed:
    """A presenter for engines that discover their nodes themselves."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        """No inventory."""
        return ()

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        """No engine."""
        return frozenset()


class Configured:
    """The configuration in force."""

    def __init__(self, store: Store, default: Policy, presenter: Presenter) -> None:
        self._store = store
        self._default = default
        self.presenter = presenter
        self.now = Configuration()
        self.hived = HivedConfigured(None)
        """The settings of HiveD's algorithm; empty while its preset is not in force."""
        self.policy = default
        self.following: frozenset[str] = frozenset()
        """The engines whose nodes are described by documents."""

    async def load(self) -> None:
        """Read the current documents, and have the engines present the nodes that they describe."""
        documents = await self._store.all_documents()
        try:
            self.now = read_configuration(documents.revisions, documents.change)
        except CorralError as error:
            log.error("the stored documents cannot be read; the configuration in force stays", message=error.message)
        try:
            policy = scheduler_policy(self.now.policy, self._default)
            self.hived = hived_configured(self.now)
            self.policy = policy
        except CorralError as error:
            log.error("the stored policy cannot be followed; the one in force stays", message=error.message)
        self.following = self.presenter.present(self.now.clusters)
        log.info("configured", change=self.now.change, queues=len(self.now.queues), policy=self.policy.name)

    def grace(self, queue: str, own: float) -> float | None:
        """Seconds of grace that a preempted job gets where its queue bounds them; None where it does not."""
        said = self.now.queues.get(queue)
        most = said.grace_period_seconds if said is not None else 0
        return min(own, float(most)) if most else None

    def storage(self, name: str) -> StorageDocument | None:
        """The document of a storage; None when there is none."""
        return self.now.storages.get(name)

    def image_pull_secrets(self, queue: str) -> tuple[str, ...]:
        """The pull secrets for a queue's images: its own and its ancestors', nearest first."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        while queue in self.now.queues and queue not in seen:
            seen.add(queue)
            said = self.now.queues[queue]
            found |= dict.fromkeys(said.image_pull_secrets)
            queue = said.parent
        return tuple(found)

    def told(self) -> QueuesConfigured:
        """The event that tells the scheduler about the queues."""
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
