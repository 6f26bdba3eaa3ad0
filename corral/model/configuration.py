"""Merge all current documents into one configuration, so that submission and scheduling read the same.

A Cluster document may contain queues in short form; a Queue document of the same name replaces them. The Policy named
`default` is in force.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec import structs

from corral.kernel.errors import InvalidInput
from corral.model.accounts import QueueRecord
from corral.model.document_revisions import DocumentRevision
from corral.model.queue_ancestors import upwards
from corral.model.queue_specs import pinned_names, queue_spec
from corral.model.queues import QueueSpec
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import Document, identity, load_document
from corral.spec.errors import Path
from corral.spec.hived.configuration import HivedCluster
from corral.spec.hived.exporter import hived_from
from corral.spec.policy import PolicyDocument
from corral.spec.queue import QueueDocument
from corral.spec.quota_check import quota_findings
from corral.spec.storage import StorageDocument

IN_FORCE: Final = "default"
"""The name of the Policy document that is in force."""
T = TypeVar("T")


@dataclass(frozen=True)
class Configuration:
    """The merged current documents; `change` is the change number of the documents it was read from."""

    clusters: Mapping[str, ClusterDocument] = field(default_factory=dict)
    """By engine."""
    queues: Mapping[str, QueueDocument] = field(default_factory=lambda: {"default": QueueDocument(name="default")})
    """Every queue by name; `default` always exists."""
    policy: PolicyDocument | None = None
    """The policy in force; None: the program's defaults."""
    storages: Mapping[str, StorageDocument] = field(default_factory=dict)
    """Storages that jobs may mount at a path of their choice, by name."""
    change: int = 0

    def findings(self) -> list[tuple[Path, str]]:
        """Inconsistencies between documents, and quotas above the capacity of the described machines."""
        described = [cluster for cluster in self.clusters.values() if cluster.nodes]
        cluster = described[0] if len(described) == 1 == len(self.clusters) else None
        return quota_findings(cluster, self.queues.values())

    def queue_records(self) -> list[QueueRecord]:
        """The queues in the form that submission and lists read from the store."""
        return [QueueRecord(name, queue.to_document()) for name, queue in sorted(self.queues.items())]

    def queue_specs(self) -> tuple[QueueSpec, ...]:
        """The queues in the scheduler's form, ordered by name."""
        types = {
            name: level for _, each in sorted(self.clusters.items()) for name, level in each.machines.types.items()
        }
        pins: dict[str, str] = {}
        for engine, cluster in sorted(self.clusters.items()):
            pins |= pinned_names(engine, cluster.machines.pinned)
        half_life = float(self.policy.half_life_seconds) if self.policy is not None else 0.0
        specs = (queue_spec(queue, types, pins) for _, queue in sorted(self.queues.items()))
        return tuple(
            each if each.half_life_seconds else structs.replace(each, half_life_seconds=half_life) for each in specs
        )

    def hived(self) -> tuple[str, HivedCluster] | None:
        """The engine and the cells that HiveD's algorithm schedules; None if the `hived` preset is not in force.

        Raises InvalidInput if there is not exactly one Cluster document, or if HiveD cannot express the documents.
        """
        if self.policy is None or self.policy.preset != "hived":
            return None
        if len(self.clusters) != 1:
            said = ", ".join(sorted(self.clusters)) or "none"
            message = f"The hived preset decides about one Cluster document of cell types; those there are: {said}."
            raise InvalidInput("hived-needs-one-cluster", message)
        engine, cluster = next(iter(self.clusters.items()))
        owners = [self.queues[name] for name in sorted(self.queues)]
        return engine, hived_from(cluster, owners)


def configuration_of(documents: Iterable[Document], change: int = 0) -> Configuration:
    """Merge these documents into a configuration."""
    clusters: dict[str, ClusterDocument] = {}
    named: dict[str, QueueDocument] = {}
    policy: PolicyDocument | None = None
    storages: dict[str, StorageDocument] = {}
    for document in documents:
        if isinstance(document, ClusterDocument):
            clusters[document.engine] = document
        elif isinstance(document, QueueDocument):
            named[document.name] = document
        elif isinstance(document, StorageDocument):
            storages[document.name] = document
        elif isinstance(document, PolicyDocument) and document.name == IN_FORCE:
            policy = document
    queues = {"default": QueueDocument(name="default")}
    for _, cluster in sorted(clusters.items()):
        queues |= {queue.name: queue for queue in cluster.queues if queue.name != "default" or writes_default(cluster)}
    return Configuration(clusters, queues | named, policy, storages, change)


def read_configuration(revisions: Iterable[DocumentRevision], change: int = 0) -> Configuration:
    """Merge stored documents into a configuration."""
    return configuration_of((read_revision(each) for each in revisions), change)


def read_revision(revision: DocumentRevision) -> Document:
    """Parse the document of a revision that is not a deletion."""
    return load_document(json.loads(revision.doc), filename=f"{revision.kind}/{revision.name}")[0]


def canonical(document: Document) -> str:
    """The JSON text under which a document is stored; equal documents give equal text."""
    if isinstance(document, ClusterDocument):
        return json.dumps(to_document(document), separators=(",", ":"), ensure_ascii=False)  # keeps the nodes' order
    return document.to_json()


def to_document(document: Document) -> dict[str, Any]:
    """The document as people write it, without values left at the default or at the cluster's common `node`."""
    kind, name = identity(document)
    head = {"apiVersion": document.api_version, "kind": kind}
    if isinstance(document, ClusterDocument):
        head["engine"] = name
        body = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    else:
        head["name"] = name
        body = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return head | {key: value for key, value in body.items() if key not in head}


def writes_default(cluster: ClusterDocument) -> bool:
    """Whether a Cluster document itself defines the queue `default`."""
    return "default" in cluster.queue_shapes


def rule_of(
    configuration: Configuration, queue: str, pick: Callable[[QueueDocument | PolicyDocument], T | None]
) -> T | None:
    """The rule that holds for a queue: its own, that of the nearest queue above it, or the policy's."""
    for _, found in upwards(configuration.queues, queue):
        rule = pick(found)
        if rule is not None:
            return rule
    return pick(configuration.policy) if configuration.policy is not None else None
