"""Why: the scheduler, the engines and the policy follow the documents that are stored, at every start and on line.

A configuration that cannot be read (it was stored by another version) leaves the one in force as it is, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

import structlog

from corral.kernel.errors import CorralError
from corral.model.configuration import Configuration, read_configuration
from corral.model.documents import GuaranteeFinding
from corral.scheduler import Cluster, Policy, QueuesConfigured, find_policy
from corral.scheduler.excess import bound_of, over_limit
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


def broken_by(cluster: Cluster, before: Configuration, after: Configuration, now: float) -> list[GuaranteeFinding]:
    """The guarantees that a change would break for jobs that run: what a queue holds by right, it would hold no more.

    Tried on a fork: the cluster is left as it is.
    """
    twin = cluster.fork()
    twin.apply(QueuesConfigured(after.queue_specs()))
    old = {spec.name: spec for spec in before.queue_specs()}
    yielding = Counter(each.by_queue for each in over_limit(twin, now))
    found = []
    for spec in after.queue_specs():
        was = old.get(spec.name)
        held = _held(cluster, spec.name) | _held(twin, spec.name)
        for resource, amount in sorted(held.items()):
            by_right = min(amount, was.deserved.get(resource, 0)) if was else 0
            owed = spec.deserved.get(resource, 0)
            if by_right > owed:
                found.append(_finding(spec.name, resource, by_right, owed, "what it deserves", "they may be reclaimed"))
        earlier = _bounds(cluster, spec.name)
        for resource, bound in _bounds(twin, spec.name).items():
            if held[resource] > bound < earlier.get(resource, inf):
                jobs = yielding[spec.name]
                cost = f"{jobs} job{'' if jobs == 1 else 's'} would yield" if jobs else "no job of it can yield"
                found.append(_finding(spec.name, resource, held[resource], int(bound), "its limit", cost))
    return found


def _bounds(cluster: Cluster, queue: str) -> dict[str, float]:
    """The most that a queue may hold, by resource name."""
    node = cluster.queues.nodes.get(queue)
    return dict(zip(cluster.queues.names, bound_of(node), strict=True)) if node else {}


def _held(cluster: Cluster, queue: str) -> dict[str, int]:
    """What the jobs of a queue and of those below it hold, by resource name."""
    tree = cluster.queues
    node = tree.nodes.get(queue)
    return dict(zip(tree.names, node.used, strict=True)) if node else {}


def _finding(queue: str, resource: str, needed: int, available: int, right: str, cost: str) -> GuaranteeFinding:
    needs, has = spoken_amount(resource, needed), spoken_amount(resource, available)
    message = f"jobs of the queue {queue} hold {needs} of {resource} within {right}, which would be {has}: {cost}"
    return GuaranteeFinding(message, queue, resource, needed=needed, available=available, preemptible=True)
