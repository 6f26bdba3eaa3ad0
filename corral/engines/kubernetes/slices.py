"""Why: drivers tell in ResourceSlices which devices a node has; this is what the scheduler sees of them.

A pool counts when all slices of its newest generation are there; until then the state before stays. A pool that is gone
(kubelets delete their node's slices at every start) leaves its devices in sight, not to be had, until it is back or its
node is gone: a moment's absence must not look like devices that were pulled out. Source of the rules: Kubernetes,
`resource.k8s.io/v1` ResourceSlice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from corral.engines.kubernetes.claims import Attribute, ResourceSlice, SliceDevice
from corral.engines.kubernetes.quantities import count
from corral.model.inventory import Device

AWAY: Final = "its driver does not publish it at the moment"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_MODELS: Final = ("model", "productName", "product")
_NUMA: Final = ("numa", "numaNode")
_SWITCH: Final = "pcie-switch"
_NUMBER: Final = re.compile(r"(\d{1,6})$")
_MOST_INDEX: Final = 4096

PoolName = tuple[str, str, str]
"""Node, driver and pool."""


class Named(msgspec.Struct, frozen=True):
    """How a claim names a device."""

    driver: str
    pool: str
    device: str


class Slices:
    """All slices of nodes; what follows from them is told node by node."""

    def __init__(self) -> None:
        self._slices: dict[PoolName, dict[str, ResourceSlice]] = defaultdict(dict)
        self._whole: dict[str, dict[PoolName, tuple[SliceDevice, ...]]] = defaultdict(dict)
        self._away: set[PoolName] = set()
        self._nodes: dict[tuple[str, str], str] = {}
        self._told: dict[str, tuple[tuple[Device, Named], ...]] = {}

    def put(self, found: ResourceSlice) -> str:
        """There is such a slice; the node whose devices may be others now ("" where it is of no node)."""
        name = _pool(found)
        if name[0]:
            self._nodes[name[1:]] = name[0]
            self._slices[name][found.key] = found
            self._settle(name)
        return name[0]

    def drop(self, found: ResourceSlice) -> str:
        """There is no such slice any more; the node it was of."""
        name = _pool(found)
        if name[0]:
            self._slices[name].pop(found.key, None)
            self._settle(name)
        return name[0]

    def forget(self, node: str) -> None:
        """The node is gone: so are devices of it whose driver went first."""
        pools = self._whole.get(node, {})
        self._told.pop(node, None)
        for name in [name for name in pools if name in self._away]:
            del pools[name]
            self._away.discard(name)

    def node_of(self, device: Named) -> str:
        """The node that a device is of; "" where nothing was published of it."""
        return self._nodes.get((device.driver, device.pool), "")

    def devices(self, node: str) -> tuple[tuple[Device, Named], ...]:
        """The node's devices in the order of their indexes, each with how a claim names it."""
        if node in self._told:
            return self._told[node]
        seen = [(name, device) for name, devices in sorted(self._whole.get(node, {}).items()) for device in devices]
        numbers = _numbers([device for _, device in seen])
        told = (
            (_translated(number, name, device, away=name in self._away), Named(name[1], name[2], device.name))
            for number, (name, device) in zip(numbers, seen, strict=True)
        )
        self._told[node] = tuple(sorted(told, key=lambda each: each[0].index))
        return self._told[node]

    def _settle(self, name: PoolName) -> None:
        self._told.pop(name[0], None)
        slices = self._slices[name].values()
        newest = max((each.spec.pool.generation for each in slices), default=0)
        current = [each for each in slices if each.spec.pool.generation == newest]
        if not current:
            del self._slices[name]
            if name in self._whole.get(name[0], {}):
                self._away.add(name)
        elif len(current) == current[0].spec.pool.resource_slice_count:
            in_order = sorted(current, key=lambda each: each.metadata.name)
            self._whole[name[0]][name] = tuple(device for each in in_order for device in each.spec.devices)
            self._away.discard(name)


def _pool(found: ResourceSlice) -> PoolName:
    return found.spec.node_name, found.spec.driver, found.spec.pool.name


def _numbers(devices: list[SliceDevice]) -> list[int]:
    """The drivers' own numbers (attribute `index`, or the end of the name) where no two are equal; else their order."""
    own = [_own_number(device) for device in devices]
    if None not in own and len(set(own)) == len(own):
        return [number for number in own if number is not None]
    return list(range(len(devices)))


def _own_number(device: SliceDevice) -> int | None:
    said = device.attributes.get("index", Attribute()).number
    if said is None:
        found = _NUMBER.search(device.name)
        said = int(found[1]) if found else None
    return said if said is not None and 0 <= said < _MOST_INDEX else None


def _translated(index: int, name: PoolName, device: SliceDevice, *, away: bool) -> Device:
    _, driver, pool = name
    healthy = _attribute(device, driver, "healthy")
    reason = AWAY if away else "" if healthy in ("", "true") else _attribute(device, driver, "healthReason")
    taint = next((taint.key for taint in device.taints if taint.effect in ("NoSchedule", "NoExecute")), "")
    if not away and not reason and (healthy == "false" or taint):
        reason = f"its driver taints it with {taint}" if taint else "its driver says that it is broken"
    return Device(
        index=index,
        id=_attribute(device, driver, "uuid") or f"{driver}/{pool}/{device.name}",
        kind=_attribute(device, driver, "kind") or _attribute(device, driver, "type") or "gpu",
        model=_first(device, driver, _MODELS),
        cells=tuple(_cells(device, driver)),
        memory_bytes=next((count("", each.value) for key, each in device.capacity.items() if key == "memory"), 0),
        healthy=not reason,
        health_reason=reason,
    )


def _cells(device: SliceDevice, driver: str) -> Iterable[tuple[str, str]]:
    """The levels that the driver lists, or else what other drivers are known to tell: NUMA node and PCIe root."""
    levels = [level for level in _attribute(device, driver, "levels").split(",") if level]
    for level in levels:
        first, *others = level.split("-")
        value = _attribute(device, driver, first + "".join(other.capitalize() for other in others))
        if value:
            yield level, value
    root = _attribute(device, driver, PCIE_ROOT)
    if not levels and (numa := _first(device, driver, _NUMA)):
        yield "numa", numa
    if _SWITCH not in levels and root:
        yield _SWITCH, root


def _first(device: SliceDevice, driver: str, names: Iterable[str]) -> str:
    return next((value for name in names if (value := _attribute(device, driver, name))), "")


def _attribute(device: SliceDevice, driver: str, name: str) -> str:
    """An attribute as text, "" where there is none; names without a domain are the driver's own."""
    found = device.attributes.get(name) or device.attributes.get(f"{driver}/{name}")
    if found is None:
        return ""
    if found.flag is not None:
        return "true" if found.flag else "false"
    return str(found.number) if found.number is not None else found.text or found.version or ""
