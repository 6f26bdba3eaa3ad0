"""Read the documents that configure the scheduler, and have the engines present the machines that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from corral.control.core.configuration import Configured, planner_settings, scheduler_policy
from corral.control.core.store import CoreStore
from corral.engines.kind import InventoryReader
from corral.kernel.errors import CorralError
from corral.model.configuration import read_configuration
from corral.model.inventory import Inventory
from corral.scheduler import Policy
from corral.spec.cluster import ClusterDocument

log = structlog.get_logger()


class Presenter(Protocol):
    """The engines whose nodes are described by Cluster documents."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        """The inventories that those engines would present with these Cluster documents (by engine)."""
        ...

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        """Have those engines present the documents' nodes from now on; returns the engines' names."""
        ...

    def completed(self, inventory: Inventory) -> Inventory:
        """An engine's inventory with what its Cluster document adds; unchanged where the engine follows its document."""
        ...


class NothingDescribed:
    """A presenter for engines that discover their nodes themselves."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        """No inventory."""
        return ()

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        """No engine."""
        return frozenset()

    def completed(self, inventory: Inventory) -> Inventory:
        """The inventory as it is."""
        return inventory


class DescribedEngines:
    """A presenter for several engines: some have a reader of described nodes, the others find their nodes themselves."""

    def __init__(self, readers: Mapping[str, InventoryReader]) -> None:
        self._readers = readers
        self._clusters: Mapping[str, ClusterDocument] = {}
        self._found: dict[str, Inventory] = {}
        """What the engines without a reader found last, by engine."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        """The inventories that the engines would have with these documents, of those that were seen."""
        read = (reader.described(clusters.get(engine)) for engine, reader in self._readers.items())
        found = tuple(self._found.values())
        return (*read, *(_completed(each, clusters.get(each.engine)) for each in found))

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        """Have each reader present the nodes of its engine's document."""
        self._clusters = clusters
        for engine, reader in self._readers.items():
            reader.present(clusters.get(engine))
        return frozenset(self._readers)

    def completed(self, inventory: Inventory) -> Inventory:
        """An inventory with what its engine's document adds, where the engine finds its nodes itself."""
        if inventory.engine in self._readers:
            return inventory
        self._found[inventory.engine] = inventory
        return _completed(inventory, self._clusters.get(inventory.engine))


def _completed(inventory: Inventory, document: ClusterDocument | None) -> Inventory:
    if document is None:
        return inventory
    from corral.devices.completed_inventory import completed  # few servers have such a document

    return completed(inventory, document)


async def read_configured(store: CoreStore, presenter: Presenter, default: Policy, before: Configured) -> Configured:
    """The configuration that the stored documents say; the engines present its machines.

    A part that cannot be read, because another version stored it, stays as it was `before`, and the log says so.
    `default` is the policy while no document says another. Raises Unavailable when the store does not answer.
    """
    documents = await store.all_documents()
    after = before
    try:
        after = replace(after, now=read_configuration(documents.revisions, documents.change))
    except CorralError as error:
        log.error("the stored documents cannot be read; the configuration in force stays", message=error.message)
    try:
        policy = scheduler_policy(after.now.policy, default)
        after = replace(after, policy=policy, planner=planner_settings(policy, after.now))
    except CorralError as error:
        log.error("the stored policy cannot be followed; the one in force stays", message=error.message)
    after = replace(after, following=presenter.present(after.now.clusters))
    log.info("configured", change=after.now.change, queues=len(after.now.queues), policy=after.policy.name)
    return after
