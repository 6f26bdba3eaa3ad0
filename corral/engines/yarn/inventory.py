"""Read the cluster's nodes from the ResourceManager: resources, labels, and what other applications use of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from corral.engines.yarn.node_devices import ProbedDevice, ProbedNode
from corral.engines.yarn.settings import YarnSettings
from corral.kernel.amounts import names_for
from corral.kernel.errors import Unavailable
from corral.model.inventory import HOST_LABEL, LEVELS, Device, Inventory, Node, Taint

_MIB: Final = 1024 * 1024
_MOST_DEVICES: Final = 1024
"""Devices of one node that are shown."""
RESOURCES: Final = names_for("yarn")
"""The amounts of the table, except processors and memory, by the name of YARN's resource type."""
_GONE: Final = frozenset({"DECOMMISSIONED", "SHUTDOWN", "REBOOTED"})
"""States of nodes that have left the cluster."""
_ABSENT: Final = "ABSENT"
PARTITION: Final = "yarn.corral.dev/partition"
"""The key of the taint of nodes that YARN gives only to requests for their label."""


class Amount(msgspec.Struct, frozen=True):
    """One resource by name."""

    name: str
    value: int = 0
    units: str = ""


class _Amounts(msgspec.Struct, frozen=True, rename="camel"):
    resource_information: tuple[Amount, ...] = ()


class Resources(msgspec.Struct, frozen=True, rename="camel"):
    """Memory, vcores and every other resource."""

    resource_informations: _Amounts = _Amounts()

    def amounts(self) -> dict[str, int]:
        """The amounts by name; memory in MiB."""
        return {each.name: each.value for each in self.resource_informations.resource_information}


class Attribute(msgspec.Struct, frozen=True):
    """One node attribute."""

    name: str
    prefix: str = ""
    value: str = ""


class _Attributes(msgspec.Struct, frozen=True, rename="camel"):
    node_attribute_info: tuple[Attribute, ...] = ()


class YarnNode(msgspec.Struct, frozen=True, rename="camel"):
    """One node of the ResourceManager's list."""

    id: str
    state: str
    rack: str = ""
    node_host_name: str = ""
    http_address: str = msgspec.field(default="", name="nodeHTTPAddress")
    """HOST:PORT of the NodeManager's own interface."""
    health_report: str = ""
    node_labels: tuple[str, ...] = ()
    total_resource: Resources = Resources()
    used_resource: Resources = Resources()
    node_attributes_info: _Attributes | None = None

    def attributes(self) -> dict[str, str]:
        """The attributes by their full name."""
        found = self.node_attributes_info.node_attribute_info if self.node_attributes_info else ()
        return {f"{each.prefix}/{each.name}": each.value for each in found}


class NodeFacts(NamedTuple):
    """What a request for a container has to say of its node."""

    name: str
    """Without the engine's name."""
    pinned: bool
    """Whether the node has the attribute by which a container is pinned to it."""
    partition: str
    """Its node label, which a request for a container there has to name; "" for none."""
    devices: int


class _Label(msgspec.Struct, frozen=True):
    """A node label of the cluster."""

    name: str
    exclusivity: bool | str = True
    """Hadoop 3.4 writes it as text."""


class _Labels(msgspec.Struct, frozen=True, rename="camel"):
    node_label_info: tuple[_Label, ...] | _Label = ()
    """A single label comes without a list."""


def exclusive_labels_of(answer: Any) -> frozenset[str]:
    """The exclusive labels of an answer to `/ws/v1/cluster/get-node-labels`. Raises Unavailable for another shape."""
    try:
        told = msgspec.convert(answer or {}, _Labels).node_label_info
    except msgspec.ValidationError as error:
        message = f"The ResourceManager's list of node labels has an unknown form: {error}."
        raise Unavailable("hadoop-answer", message) from None
    labels = (told,) if isinstance(told, _Label) else told
    return frozenset(each.name for each in labels if each.exclusivity in (True, "true"))


def facts_of(nodes: list[YarnNode], settings: YarnSettings) -> tuple[dict[str, NodeFacts], dict[str, NodeFacts]]:
    """The facts of all nodes that are there, by their name and by the host that their containers name."""
    by_name: dict[str, NodeFacts] = {}
    by_host: dict[str, NodeFacts] = {}
    for each in nodes:
        if each.state in _GONE:
            continue
        name = node_name(each, settings)
        partition = next((label for label in each.node_labels if label), "")
        count = each.total_resource.amounts().get(settings.device_resource, 0)
        facts = NodeFacts(name, settings.attribute in each.attributes(), partition, min(count, _MOST_DEVICES))
        by_name[name] = by_host[each.id.rpartition(":")[0] or each.id] = facts
    return by_name, by_host


def nodes_of(answer: Any) -> list[YarnNode]:
    """The nodes of an answer to `/ws/v1/cluster/nodes`. Raises Unavailable when it has another shape."""
    try:
        return msgspec.convert((answer["nodes"] or {}).get("node", []), list[YarnNode])
    except (msgspec.ValidationError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(
            "hadoop-answer", f"The ResourceManager's list of nodes has an unknown form: {error}"
        ) from None


def as_absent(node: YarnNode) -> YarnNode:
    """A node as it was, that the ResourceManager does not list at the moment."""
    if node.state in _GONE:
        return node
    return msgspec.structs.replace(node, state=_ABSENT, health_report="the ResourceManager does not list it")


def inventory_of(
    nodes: list[YarnNode],
    settings: YarnSettings,
    ours: Mapping[str, Mapping[str, int]],
    held: Mapping[str, Collection[int]],
    exclusive: Collection[str] = (),
    probed: Mapping[str, ProbedNode] = {},
) -> Inventory:
    """The inventory: every node with what Corral may use of it.

    `ours` is what containers of this server use by node name; what is used beyond it belongs to other applications and
    is subtracted. `held` are the devices of this server's tasks by node name. `exclusive` are node labels whose nodes
    only tasks that tolerate the taint `PARTITION` may use, as YARN gives them only to requests for the label.
    `probed` has the devices that probes found, by node name.
    """
    found: dict[str, Node] = {}
    for each in nodes:
        if each.state in _GONE:
            continue
        name = node_name(each, settings)
        node = _node(each, settings, ours.get(name, {}), held.get(name, ()), exclusive, probed.get(name))
        if node.name not in found or not found[node.name].ready:  # a node that came back is listed beside its old self
            found[node.name] = node
    return Inventory(settings.name, tuple(sorted(found.values(), key=lambda node: node.name)), LEVELS)


def node_name(node: YarnNode, settings: YarnSettings) -> str:
    """The node's name without the engine's: its attribute's value, else its host's name."""
    return node.attributes().get(settings.attribute, "") or node.node_host_name or node.id


def _node(
    each: YarnNode,
    settings: YarnSettings,
    ours: Mapping[str, int],
    held: Collection[int],
    exclusive: Collection[str],
    probed: ProbedNode | None,
) -> Node:
    """One node. Without the attribute YARN chooses the node: it is in no rack then, and its devices are only counted."""
    pinned = settings.attribute in each.attributes()
    name = f"{settings.name}/{node_name(each, settings)}"
    total, used = each.total_resource.amounts(), each.used_resource.amounts()
    others = {key: max(0, used.get(key, 0) - ours.get(key, 0)) for key in total}
    free = {key: max(0, total[key] - others[key]) for key in total}
    known = {"memory-mb", "vcores", settings.device_resource}
    rack = each.rack.strip("/").replace("/", "-")
    count = total.get(settings.device_resource, 0)
    if probed is not None and (not pinned or len(probed.devices) != count):
        probed = None
    return Node(
        name=name,
        cells=(("rack", rack),) if pinned and rack and rack != "default-rack" else (),
        devices=_devices(
            name,
            settings,
            count,
            others.get(settings.device_resource, 0),
            held,
            counted=not pinned,
            probed=probed.devices if probed is not None else (),
        ),
        links=probed.links if probed is not None else (),
        cpu_millis=1000 * free.get("vcores", 0),
        memory_bytes=_MIB * free.get("memory-mb", 0),
        shm_bytes=_MIB * free.get("memory-mb", 0),  # /dev/shm is the node's own, and YARN does not count it
        resources={
            RESOURCES[key].name if key in RESOURCES else key: value
            for key, value in free.items()
            if key not in known and value
        }
        | {"ports": settings.ports[1] - settings.ports[0] + 1},
        labels=_labels(each),
        taints=tuple(Taint(PARTITION, label) for label in each.node_labels if label in exclusive),
        ready=each.state == "RUNNING",
        ready_reason="" if each.state == "RUNNING" else _reason(each),
        lost=each.state == "LOST",  # YARN has ended its containers, also if it comes back
    )


def _labels(node: YarnNode) -> dict[str, str]:
    host = {HOST_LABEL: node.node_host_name} if node.node_host_name else {}
    return host | {f"yarn.corral.dev/{label}": "true" for label in node.node_labels if label}


def _devices(
    name: str,
    settings: YarnSettings,
    count: int,
    others: int,
    held: Collection[int],
    *,
    counted: bool,
    probed: tuple[ProbedDevice, ...],
) -> tuple[Device, ...]:
    """The devices of a node. YARN counts and names none: others are taken to hold the last that no task here has."""
    free = [index for index in range(min(count, _MOST_DEVICES)) if index not in held]
    taken = set(free[len(free) - min(others, len(free)) :])
    plain = ProbedDevice("", "", 0)
    found = []
    for index in range(min(count, _MOST_DEVICES)):
        known = probed[index] if probed else plain
        trouble = known.fault or ("another YARN application holds it" if index in taken else "")
        found.append(
            Device(
                index,
                known.id or f"{name}:{index}",
                settings.device_kind,
                known.model,
                known.cells,
                known.memory_bytes,
                healthy=not trouble,
                health_reason=trouble,
                counted=counted,
            )
        )
    return tuple(found)


def _reason(node: YarnNode) -> str:
    report = f": {node.health_report}" if node.health_report else ""
    return f"YARN counts the node as {node.state.lower()}{report}"[:300]
