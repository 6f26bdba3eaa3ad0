"""Sum the resources that others' pods hold on each node, which Corral's jobs cannot have.

Source of the rule for a pod's request: Kubernetes' `PodRequests` (component-helpers, resource). It is the sum of
containers and sidecars, or the largest init container with the sidecars started before it, plus the pod's overhead. A
pod-level request replaces that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from corral.engines.kubernetes.api.quantities import count
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod

PODS: Final = "pods"
TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_NOTHING: Final[Mapping[str, int]] = {}


class Others:
    """The resources that others' pods hold on each node; `pods` is their number."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, tuple[tuple[str, int], ...]]] = {}
        self._known: dict[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._elsewhere: frozenset[str] = frozenset()
        self._owned: dict[str, Pod] = {}
        """Pods owned by an object for a job, by key."""

    def on(self, node: str) -> Mapping[str, int]:
        """Return the resources held on a node."""
        return self._totals.get(node, _NOTHING)

    def fold(self, change: Change[Pod]) -> str:
        """Fold a pod's change. Return the node whose held resources changed, "" for none."""
        pod, key = change.object, change.object.key
        owners = _owners(pod) if pod.metadata.owner_references else ()
        if owners and not change.gone:
            self._owned[key] = pod
        else:
            self._owned.pop(key, None)
        there = pod.spec.node_name and not change.gone and pod.status.phase not in TERMINAL
        holds = there and not any(uid in self._elsewhere for uid in owners)
        before = self._held.get(key)
        wanted = requests(pod) if holds else ()
        now = (pod.spec.node_name, self._known.setdefault(wanted, wanted)) if holds else None
        if before == now:
            return ""
        if before is not None:
            del self._held[key]
            self._add(*before, sign=-1)
        if now is not None:
            self._held[key] = now
            self._add(*now, sign=1)
        return pod.spec.node_name

    def run_elsewhere(self, uids: Collection[str]) -> list[str]:
        """Set the external jobs: pods that these objects own count as their tasks, and not here.

        Returns the nodes whose held resources changed.
        """
        self._elsewhere = frozenset(uids)
        return [node for pod in list(self._owned.values()) if (node := self.fold(Change(pod)))]

    def _add(self, node: str, amounts: tuple[tuple[str, int], ...], *, sign: int) -> None:
        totals = self._totals.setdefault(node, {})
        for resource, amount in amounts:
            totals[resource] = totals.get(resource, 0) + sign * amount
        if not totals[PODS]:
            del self._totals[node]


def _owners(pod: Pod) -> list[str]:
    """Return the UIDs of the UnifiedJobs that own the pod, which their own controllers may have created."""
    return [
        owner.uid
        for owner in pod.metadata.owner_references
        if owner.kind == "UnifiedJob" and owner.api_version.startswith("corral.dev/")
    ]


def requests(pod: Pod) -> tuple[tuple[str, int], ...]:
    """Return the resources that a pod holds on its node, sorted by name."""
    spec = pod.spec
    running: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in spec.init_containers:
        asked = container.resources.requests
        for resource, text in asked.items():
            wanted = running.get(resource, 0) + count(resource, text)
            largest[resource] = max(largest.get(resource, 0), wanted)
            if container.restart_policy == "Always":
                running[resource] = wanted
    for container in spec.containers:
        for resource, text in container.resources.requests.items():
            running[resource] = running.get(resource, 0) + count(resource, text)
    total = {resource: max(running.get(resource, 0), largest.get(resource, 0)) for resource in {**running, **largest}}
    total |= {resource: count(resource, text) for resource, text in spec.resources.requests.items()}
    for resource, text in spec.overhead.items():
        total[resource] = total.get(resource, 0) + count(resource, text)
    total[PODS] = 1
    return tuple(sorted(total.items()))
