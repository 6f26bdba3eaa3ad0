"""Why: of a pod's five kilobytes Corral reads a tenth; these structs name that tenth, and the decoder skips the rest.

Field names are Kubernetes' own in snake case. Tuples and `gc=False` keep a hundred thousand of them out of the garbage
collector's sight. What the API server leaves out is the default here; what it writes as null (a Go time that was never
set, an empty list) is accepted as such.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from msgspec import field


class Slim(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What every struct here has in common; unknown fields are skipped."""


class OwnerReference(Slim, frozen=True):
    """Which object this one goes with."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Slim, frozen=True):
    """`metadata` of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Object(Slim, frozen=True):
    """What every watched object has."""

    metadata: Meta = Meta()

    @property
    def key(self) -> str:
        """What tells this object from every other, also from a later one of the same name."""
        return self.metadata.uid or f"{self.metadata.namespace}/{self.metadata.name}"


class Condition(Slim, frozen=True):
    """One condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerPort(Slim, frozen=True):
    """A port that a container names; `host_port` 0 takes none of the node's."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(name="hostIP", default="")


class ClaimUse(Slim, frozen=True):
    """Which of the pod's claims a container uses, and which request of it; "" is all of them."""

    name: str = ""
    request: str = ""


class Requirements(Slim, frozen=True):
    """Quantities by resource, as Kubernetes writes them (`500m`, `2Gi`), and claims."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    claims: tuple[ClaimUse, ...] = ()


class Container(Slim, frozen=True):
    """One container of a pod's spec; `restart_policy` Always makes an init container a sidecar."""

    name: str = ""
    resources: Requirements = Requirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class PodClaim(Slim, frozen=True):
    """A pod's name for one of its resource claims, and the claim it means."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Slim, frozen=True):
    """What the pod asks for."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Requirements = Requirements()
    overhead: dict[str, str] = {}
    resource_claims: tuple[PodClaim, ...] = ()
    priority: int = 0


class Waiting(Slim, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Running(Slim, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class Terminated(Slim, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Slim, frozen=True):
    """At most one of the three is there."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim, frozen=True):
    """One container as the kubelet sees it."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Slim, frozen=True):
    """One pod as the kubelet sees it."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(name="podIP", default="")
    host_ip: str = field(name="hostIP", default="")
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodClaim, ...] = ()


class Pod(Object, frozen=True):
    """`v1` Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Bare(Object, frozen=True):
    """Any object of which only the metadata matters."""


def seconds(stamp: str | None) -> float | None:
    """Seconds since 1970 of an RFC 3339 time as Kubernetes writes it; None where there is none or it cannot be read."""
    if not stamp:
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
