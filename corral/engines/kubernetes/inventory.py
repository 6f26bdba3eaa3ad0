"""Translate a cluster's nodes to the scheduler's inventory.

A device that a plugin only counts has no identity: the plugin chooses the unit that a pod gets. Such devices are
numbered. Broken ones, and those held by others' pods, are shown as unavailable at the highest numbers that no pod of
Corral's holds. On nodes managed by Corral alone, devices have names: those published by drivers or listed in an
annotation.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from corral.engines.kubernetes.api.quantities import count
from corral.engines.kubernetes.devices.managed_nodes import (
    NO_NAMED_DEVICES,
    DeviceAccess,
    NamedDevices,
    is_managed,
    listed,
    unusable_reason,
)
from corral.engines.kubernetes.devices.resource_slices import ClaimDevice
from corral.engines.kubernetes.pods.labels import MANAGED, MOST_DEVICES, device_id
from corral.engines.kubernetes.settings import INNER, KubernetesSettings
from corral.engines.kubernetes.watch import node_structs as kubernetes
from corral.engines.kubernetes.watch.foreign_pods import PODS, ForeignPods
from corral.kernel.amounts import names_for
from corral.model.inventory import Device, Inventory, Node, Taint
from corral.spec.dialects.accelerators import kind_of
from corral.spec.placement.network import RDMA_LABEL

_log = logging.getLogger(__name__)
TAKEN: Final = "in use by pods that are not Corral's"
BROKEN: Final = "the device plugin reports it as unhealthy"
_RDMA: Final = "rdma/"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_HEALTH: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that only repeat the condition Ready."""
_RESOURCES: Final = names_for("kubernetes")
"""The amounts of the table by their resource's name."""
_MODELS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "accelerator")
_MEMORY: Final = (("nvidia.com/gpu.memory", 2**20), ("amd.com/gpu.vram", 2**30))
"""Memory labels of the vendors' feature discovery, and the bytes of their unit."""


class Nodes:
    """All nodes as the scheduler sees them. Only changed nodes are translated again."""

    def __init__(
        self,
        settings: KubernetesSettings,
        named: NamedDevices | None = None,
        more_labels: Callable[[Mapping[str, str], str], Mapping[str, str]] = lambda labels, name: {},
    ) -> None:
        """`more_labels` returns additional labels of a node, given its labels and name."""
        self._settings, self._named, self._more = settings, named or NamedDevices(), more_labels
        self._seen: dict[str, kubernetes.Node] = {}
        self._translated: dict[str, Node] = {}
        self._touched: set[str] = set()
        self._inventory: Inventory | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def put(self, node: kubernetes.Node) -> None:
        """Add or replace a node."""
        self._seen[node.metadata.name] = node
        self.touch(node.metadata.name)

    def rdma(self, name: str) -> tuple[str, ...]:
        """Return the resources by which a pod on the node gets a network with RDMA."""
        seen = self._seen.get(name)
        amounts = seen.status.allocatable if seen is not None else {}
        return rdma_resources({name: count(name, text) for name, text in amounts.items()})

    def drop(self, name: str) -> None:
        """Remove a node."""
        self._seen.pop(name, None)
        self._translated.pop(name, None)
        self._inventory = None

    def touch(self, name: str) -> None:
        """Mark a node for translation: its used resources may have changed."""
        self._touched.add(name)

    def touch_all(self) -> None:
        """Mark all nodes for translation."""
        self._touched.update(self._seen)

    def inventory(self, held: ForeignPods, mine: Callable[[str], frozenset[int]]) -> Inventory:
        """Return all nodes, less resources held by others. `mine` returns the devices held by Corral's pods on a node.

        It returns the same object while nothing changed: most node updates are heartbeats. A node that fails to
        translate is left out and does not affect others.
        """
        touched, self._touched = self._touched, set()
        for name in touched & self._seen.keys():
            try:
                seen = self._translate(name, held, mine)
            except Exception:
                _log.exception("node %s is not offered: what it says of itself was not understood", name)
                if self._translated.pop(name, None) is not None:
                    self._inventory = None
                continue
            if seen != self._translated.get(name):
                self._translated[name] = seen
                self._inventory = None
        if self._inventory is None:
            self._inventory = self._gathered()
        return self._inventory

    def _translate(self, name: str, held: ForeignPods, mine: Callable[[str], frozenset[int]]) -> Node:
        node = self._seen[name]
        named = self._named.devices(name, managed=is_managed(node))
        seen = translated(node, held.on(name), mine(name), self._settings, named)
        more = self._more(seen.labels, name)
        return msgspec.structs.replace(seen, labels={**seen.labels, **more}) if more else seen

    def device_access(self, name: str) -> DeviceAccess:
        """Return how a node's named devices are given to pods."""
        node = self._seen.get(name)
        return NO_NAMED_DEVICES if node is None else self._named.device_access(node)

    def _gathered(self) -> Inventory:
        nodes = _distinct([self._translated[name] for name in sorted(self._translated)])
        used = {level for node in nodes for level, _ in node.cells}
        upper = tuple(level for level, _ in self._settings.topology if level in used)
        return Inventory(self._settings.name, tuple(nodes), (*upper, *INNER))


def translated(
    node: kubernetes.Node,
    held: Mapping[str, int],
    mine: frozenset[int],
    settings: KubernetesSettings,
    named: Sequence[tuple[Device, ClaimDevice]] = (),
) -> Node:
    """Translate one node. `named` are the devices that drivers publish on it."""
    labels, status = node.metadata.labels, node.status
    left = {name: max(0, count(name, text) - held.get(name, 0)) for name, text in status.allocatable.items()}
    devices = _devices(node, held, mine, settings, [device for device, _ in named])
    kinds = {name for name in left if kind_of(name, settings.devices)}
    others = {name: amount for name, amount in left.items() if "/" in name and name not in kinds | _RESOURCES.keys()}
    counted = {each.name: left[name] for name, each in _RESOURCES.items() if name in left and not each.column}
    ready, reason = _ready(node)
    return Node(
        name=f"{settings.name}/{node.metadata.name}",
        cells=tuple((level, labels[label]) for level, label in settings.topology if labels.get(label)),
        devices=devices,
        cpu_millis=left.get("cpu", 0),
        memory_bytes=left.get("memory", 0),
        shm_bytes=left.get("memory", 0),
        max_tasks=left.get(PODS, 0),
        resources=others | counted,
        labels=_with_network(labels, others),
        taints=tuple(_taints(node)),
        ready=ready,
        ready_reason=reason,
    )


def _with_network(labels: dict[str, str], others: Mapping[str, int]) -> dict[str, str]:
    """Return the labels, with the RDMA label where a device plugin still has RDMA resources free."""
    if RDMA_LABEL[0] in labels or not rdma_resources(others):
        return labels
    return labels | dict([RDMA_LABEL])


def rdma_resources(amounts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the resources by which a pod gets a network with RDMA, such as `rdma/hca_shared_devices_a`."""
    return tuple(sorted(name for name, amount in amounts.items() if name.startswith(_RDMA) and amount > 0))


def _devices(
    node: kubernetes.Node,
    held: Mapping[str, int],
    mine: frozenset[int],
    settings: KubernetesSettings,
    published: list[Device],
) -> tuple[Device, ...]:
    """Return the node's devices, named ones first, `MOST_DEVICES` at most.

    Devices of a kind that has named ones are not counted in addition.
    """
    labels, status = node.metadata.labels, node.status
    model = next((labels[label] for label in _MODELS if label in labels), "")
    memory = next((count("", labels[label]) * unit for label, unit in _MEMORY if label in labels), 0)
    counting = [name for name in sorted({**status.capacity, **status.allocatable}) if kind_of(name, settings.devices)]
    devices = published if is_managed(node) else [each for each in published if not counting]
    kinds = {device.kind for device in devices}
    for resource in counting:
        kind = kind_of(resource, settings.devices)
        if kind in kinds:
            continue
        usable = count(resource, status.allocatable.get(resource, "0"))
        total = max(usable, count(resource, status.capacity.get(resource, "0")))
        first = max((device.index for device in devices), default=-1) + 1
        if is_managed(node) and (names := listed(node)):
            reason = unusable_reason(len(names), usable, held.get(resource, 0))
            devices = [*devices, *_listed(names, first, Device(0, "", kind, model, (), memory), reason)]
            continue
        numbers = range(first, min(first + total, MOST_DEVICES))
        free = [index for index in reversed(numbers) if index not in mine]
        broken = set(free[: total - usable])
        taken = set(free[total - usable :][: held.get(resource, 0)])
        for index in numbers:
            reason = BROKEN if index in broken else TAKEN if index in taken else ""
            name = device_id(resource, index - first)
            devices = [
                *devices,
                Device(index, name, kind, model, (), memory, not reason, reason, counted=True),
            ]
    return tuple(device for device in devices if device.index < MOST_DEVICES)


def _listed(names: Iterable[tuple[Device, str]], first: int, alike: Device, reason: str) -> Iterable[Device]:
    """Yield the devices that an annotation names, described by their node's labels."""
    for at, (device, _) in enumerate(names):
        yield msgspec.structs.replace(
            alike,
            index=first + at,
            id=device.id,
            model=device.model or alike.model,
            cells=device.cells,
            healthy=not reason,
            health_reason=reason,
        )


def _ready(node: kubernetes.Node) -> tuple[bool, str]:
    if node.metadata.deletion_timestamp:
        return False, "the node is being removed from the cluster"
    conditions = {condition.type: condition for condition in node.status.conditions}
    ready = conditions.get("Ready")
    if ready is None:
        return False, "its kubelet has not reported yet"
    if ready.status != "True":
        return False, f"{ready.reason or 'not ready'}: {ready.message}".rstrip(": ")[:500]
    network = conditions.get("NetworkUnavailable")
    if network is not None and network.status == "True":
        return False, f"{network.reason or 'no network'}: {network.message}".rstrip(": ")[:500]
    return True, ""


def _taints(node: kubernetes.Node) -> Iterable[Taint]:
    """Yield the taints that jobs must tolerate, without readiness taints and the managed taint, which all tolerate."""
    keys = {taint.key for taint in node.spec.taints}
    if node.spec.unschedulable and _UNSCHEDULABLE not in keys:
        yield Taint(_UNSCHEDULABLE)
    for taint in node.spec.taints:
        if taint.key not in _HEALTH and taint.key != MANAGED:
            yield Taint(taint.key, taint.value, taint.effect)


def _distinct(nodes: list[Node]) -> list[Node]:
    """Make cell names unique: a name used in different outer cells is prefixed with the outer names."""
    outer: dict[tuple[str, str], set[tuple[tuple[str, str], ...]]] = defaultdict(set)
    for node in nodes:
        for depth, cell in enumerate(node.cells):
            outer[cell].add(node.cells[:depth])
    double = {cell for cell, paths in outer.items() if len(paths) > 1}
    if not double:
        return nodes
    out = []
    for node in nodes:
        cells = tuple(
            (level, "/".join(name for _, name in node.cells[: depth + 1])) if (level, name) in double else (level, name)
            for depth, (level, name) in enumerate(node.cells)
        )
        out.append(msgspec.structs.replace(node, cells=cells))
    return out
