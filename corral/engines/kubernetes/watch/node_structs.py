"""Structs for the parts of nodes and events that Corral reads."""

from __future__ import annotations

from msgspec import field

from corral.engines.kubernetes.watch.pod_structs import Condition, Meta, Object, Slim


class Taint(Slim, frozen=True):
    """A node's taint: only pods that tolerate it are placed there."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Slim, frozen=True):
    """`spec` of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Address(Slim, frozen=True):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeInfo(Slim, frozen=True):
    """The machine and software versions of a node."""

    machine_id: str = field(name="machineID", default="")
    boot_id: str = field(name="bootID", default="")
    kubelet_version: str = ""
    container_runtime_version: str = ""
    os_image: str = ""
    architecture: str = ""


class NodeStatus(Slim, frozen=True):
    """The capacity and conditions of a node."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[Address, ...] = ()
    node_info: NodeInfo = NodeInfo()


class NodeMeta(Meta, frozen=True):
    """`metadata` of a node. An annotation may list its devices."""

    annotations: dict[str, str] = {}


class Node(Object, frozen=True):
    """`v1` Node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ObjectReference(Slim, frozen=True):
    """The object of an event."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(Slim, frozen=True):
    """The reporter of an event."""

    component: str = ""
    host: str = ""


class Event(Object, frozen=True):
    """`v1` Event: a component's message about an object."""

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
