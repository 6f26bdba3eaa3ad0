"""Why: the scheduler, the engines and the policy follow the documents that are stored, at every start and on line.

A configuration that cannot be read (it was stored by another version) leaves the one in force as it is, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog

from corral.kernel.errors import CorralError
from corral.model.configuration import Configuration, read_configuration
from corral.scheduler import Policy, QueuesConfigured, find_policy
from corral.spec.cluster import ClusterDocument
from corral.spec.policy import PolicyDocument
from corral.store import Store

log = structlog.get_logger()

Present = Callable[[Mapping[str, ClusterDocument]], frozenset[str]]
"""Has the engines present what the cluster documents (by engine) describe; the names of those that do."""


def present_nothing(clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
    """Engines that find their machines themselves."""
    return frozenset()


class Configured:
    """The configuration in force."""

    def __init__(self, store: Store, default: Policy, present: Present = present_nothing) -> None:
        self._store = store
        self._default = default
        self._present = present
        self.now = Configuration()
        self.policy = default
        self.following: frozenset[str] = frozenset()
        """The engines whose nodes are those that documents describe."""

    async def load(self) -> None:
        """Read the documents as they are, and have the engines present the machines that they describe."""
        documents = await self._store.all_documents()
        try:
            found = read_configuration(documents.revisions, documents.change)
            policy = scheduler_policy(found.policy, self._default)
        except CorralError as error:
            log.error("the stored configuration cannot be read; the one in force stays", message=error.message)
            return
        self.now, self.policy = found, policy
        self.following = self._present(found.clusters)
        log.info("configured", change=found.change, queues=len(found.queues), policy=policy.name)

    def told(self) -> QueuesConfigured:
        """What the scheduler is told of it."""
        return QueuesConfigured(self.now.queue_specs())


def scheduler_policy(document: PolicyDocument | None, default: Policy) -> Policy:
    """The policy of a document.

    Raises InvalidInput for a preset that is not installed.
    """
    if document is None:
        return default
    policy = find_policy(document.preset or document.order)
    return replace(
        policy,
        backfill=document.backfill,
        preemption=policy.preemption and document.preemption,
        consolidation=document.consolidation,
    )
