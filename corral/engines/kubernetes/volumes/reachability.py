"""Tell which nodes cannot reach the volume of a claim, so that jobs that mount it avoid them.

A disk is in one zone or on one machine, and a pod bound elsewhere waits for it forever. Corral bypasses kube-scheduler,
which would check this. So each node gets a label per claim that it cannot reach (`model.inventory.ELSEWHERE` and the
claim's name). Source of the rule: `PersistentVolume.spec.nodeAffinity` (component-helpers, storage/volume,
`CheckNodeAffinity`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import field

from corral.engines.kubernetes.watch.pod_structs import Meta, Object, Slim
from corral.model.inventory import ELSEWHERE

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation with the node where a claim gets its volume. A class with WaitForFirstConsumer waits for it."""
RESERVED: Final = "corral.dev/reserved"
"""The label of claims that no job may mount, "true": the server keeps its own data there."""


class Requirement(Slim, frozen=True):
    """A requirement on a label, or on the name, of a node."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class Term(Slim, frozen=True):
    """Requirements that must all hold."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class Selector(Slim, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[Term, ...] = ()


class Affinity(Slim, frozen=True):
    """The nodes from which a volume can be reached; all without `required`."""

    required: Selector | None = None


class ObjectName(Slim, frozen=True):
    """The claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""


class VolumeSpec(Slim, frozen=True):
    """The location of a volume, and its claim."""

    node_affinity: Affinity = Affinity()
    claim_ref: ObjectName = ObjectName()


class Volume(Object, frozen=True):
    """`v1` PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()


class ClaimMeta(Meta, frozen=True):
    """`metadata` of a claim. Storage components write annotations there."""

    annotations: dict[str, str] = {}


class ClaimSpec(Slim, frozen=True):
    """The volume of a claim; "" while it has none."""

    volume_name: str = ""


class ClaimStatus(Slim, frozen=True):
    """The phase of a claim."""

    phase: str = ""


class VolumeClaim(Slim, frozen=True):
    """`v1` PersistentVolumeClaim."""

    metadata: ClaimMeta = field(default_factory=ClaimMeta)
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class Volumes:
    """The volumes of one namespace's claims that not every node reaches."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._by_volume: dict[str, tuple[str, tuple[Term, ...]]] = {}
        self._terms: dict[str, tuple[Term, ...]] = {}

    def put(self, volume: Volume) -> bool:
        """Add or replace a volume. Return whether that changes the claims that nodes reach."""
        claim, needed = volume.spec.claim_ref, volume.spec.node_affinity.required
        ours = claim.namespace == self._namespace and needed is not None
        return self._set(volume.metadata.name, (claim.name, needed.node_selector_terms) if ours and needed else None)

    def drop(self, volume: Volume) -> bool:
        """Remove a volume. Return whether that changes anything."""
        return self._set(volume.metadata.name, None)

    def out_of_reach(self, labels: Mapping[str, str], node: str) -> dict[str, str]:
        """Return the labels of a node for the claims that it cannot reach."""
        return {
            f"{ELSEWHERE}{claim}": "elsewhere"
            for claim, terms in self._terms.items()
            if not any(_holds(term, labels, node) for term in terms)
        }

    def _set(self, volume: str, found: tuple[str, tuple[Term, ...]] | None) -> bool:
        before = self._by_volume.get(volume)
        if found == before:
            return False
        if found is None:
            del self._by_volume[volume]
        else:
            self._by_volume[volume] = found
        self._terms = dict(self._by_volume.values())
        return True


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the names of the volume claims that a pod mounts."""
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes", ()))
    return list(dict.fromkeys(source["claimName"] for source in sources if source and source.get("claimName")))


def _holds(term: Term, labels: Mapping[str, str], node: str) -> bool:
    """Return whether a node meets all of a term's requirements. An empty term never holds, as in Kubernetes."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    return _all(expressions, labels) and _all(fields, {"metadata.name": node})


def _all(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(_is(requirement, labels.get(requirement.key)) for requirement in requirements)


def _is(requirement: Requirement, value: str | None) -> bool:
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not values or not (_WHOLE.fullmatch(value) and _WHOLE.fullmatch(values[0])):
        return False
    return int(value) > int(values[0]) if requirement.operator == "Gt" else int(value) < int(values[0])
