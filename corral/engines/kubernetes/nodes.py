"""Why: what Corral reads of machines, and of what the cluster's components tell about objects."""

from __future__ import annotations

from msgspec import field

from corral.engines.kubernetes.objects import Condition, Meta, Object, Slim


class Taint(Slim, frozen=True):
    """Why a node takes only pods that tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Slim, frozen=True):
    """What was decided about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Address(Slim, frozen=True):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeInfo(Slim, frozen=True):
    """Which machine and which programs a node is."""

    machine_id: str = field(name="machineID", default="")
    boot_id: str = field(name="bootID", default="")
    kubelet_version: str = ""
    container_runtime_version: str = ""
    os_image: str = ""
    architecture: str = ""


class NodeStatus(Slim, frozen=True):
    """What a node has and how it is."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[Address, ...] = ()
    node_info: NodeInfo = NodeInfo()


class NodeMeta(Meta, frozen=True):
    """`metadata` of a node: an annotation may name its devices."""

    annotations: dict[str, str] = {}


class Node(Object, frozen=True):
    """`v1` Node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ObjectReference(Slim, frozen=True):
    """Which object an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(Slim, frozen=True):
    """Who reported an event."""

    component: str = ""
    host: str = ""


class Event(Object, frozen=True):
    """`v1` Event: what a component tells people about an object."""

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
