"""Structs for the tenth of a pod's 5 KB that Corral reads; the decoder skips the rest.

Field names are Kubernetes' own in snake case. Tuples and `gc=False` keep a hundred thousand of them away from the
garbage collector. A field that the API server omits has the default here. Fields that it writes as null (an unset Go
time, an empty list) accept null.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from msgspec import field


class Slim(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The base of all structs here; unknown fields are skipped."""


class OwnerReference(Slim, frozen=True):
    """The owner of an object."""

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
    """The base of every watched object."""

    metadata: Meta = Meta()

    @property
    def key(self) -> str:
        """The unique key, which also differs from a later object of the same name."""
        return self.metadata.uid or f"{self.metadata.namespace}/{self.metadata.name}"


class Condition(Slim, frozen=True):
    """One condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerPort(Slim, frozen=True):
    """A port of a container. `host_port` 0 uses no port of the node."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(name="hostIP", default="")


class ClaimUse(Slim, frozen=True):
    """The pod's claim that a container uses, and the request of it; "" for all requests."""

    name: str = ""
    request: str = ""


class Requirements(Slim, frozen=True):
    """Quantities by resource, as Kubernetes writes them (`500m`, `2Gi`), and claims."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    claims: tuple[ClaimUse, ...] = ()


class Container(Slim, frozen=True):
    """One container of a pod's spec. `restart_policy` Always makes an init container a sidecar."""

    name: str = ""
    resources: Requirements = Requirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class PodClaim(Slim, frozen=True):
    """A pod's local name of a resource claim, and the claim's name."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Slim, frozen=True):
    """`spec` of a pod."""

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
    """When a running container started."""

    started_at: str | None = None


class Terminated(Slim, frozen=True):
    """The end of a container."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Slim, frozen=True):
    """The state of a container; at most one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim, frozen=True):
    """The status of one container, as the kubelet reports it."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Slim, frozen=True):
    """The status of one pod, as the kubelet reports it."""

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
    """Any object of which only the metadata is read."""


def seconds(stamp: str | None) -> float | None:
    """Return the seconds since 1970 of an RFC 3339 time, None if it is missing or invalid."""
    if not stamp:
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
