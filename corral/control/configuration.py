"""Why: the scheduler, the engines and the policy follow the documents that are stored, at every start and on line.

A configuration that cannot be read (it was stored by another version) leaves the one in force as it is, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog

from corral.kernel.errors import CorralError
from corral.model.configuration import Configuration, read_configuration
from corral.model.documents import GuaranteeFinding
from corral.scheduler import Cluster, Policy, QueuesConfigured, find_policy
from corral.spec.amounts import spoken_amount
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


def broken_by(cluster: Cluster, before: Configuration, after: Configuration) -> list[GuaranteeFinding]:
    """The guarantees that a change would break for jobs that run: what a queue held by right, it would hold no more."""
    old = {spec.name: spec for spec in before.queue_specs()}
    found = []
    for spec in after.queue_specs():
        was = old.get(spec.name)
        if was is None:
            continue
        held = held_by(cluster, spec.name)
        for promise, earlier, later in (
            ("deserved", was.deserved, spec.deserved),
            ("limit", was.limit, spec.limit),
        ):
            for resource in sorted(earlier.keys() | later.keys()):
                finding = _less(spec.name, promise, resource, held.get(resource, 0), earlier, later)
                if finding is not None:
                    found.append(finding)
    return found


def held_by(cluster: Cluster, queue: str) -> dict[str, int]:
    """What the jobs of a queue and of those below it hold, by resource name."""
    tree = cluster.queues
    node = tree.nodes.get(queue)
    return dict(zip(tree.names, node.used, strict=True)) if node else {}


def _less(
    queue: str, promise: str, resource: str, held: int, earlier: Mapping[str, int], later: Mapping[str, int]
) -> GuaranteeFinding | None:
    """The finding for a promise that shrinks below what is held of it now; a limit that is not said bounds nothing."""
    if promise == "limit":
        bound = later.get(resource)
        by_right = held
    else:
        bound = later.get(resource, 0)
        by_right = min(held, earlier.get(resource, 0))
    if bound is None or by_right <= bound:
        return None
    needs, has = spoken_amount(resource, by_right), spoken_amount(resource, bound)
    message = f"jobs of the queue {queue} hold {needs} of {resource} within its {promise}, which would be {has}"
    return GuaranteeFinding(message, queue, resource, needed=by_right, available=bound, preemptible=True)
