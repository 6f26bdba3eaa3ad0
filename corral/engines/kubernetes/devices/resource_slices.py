"""Translate the ResourceSlices of drivers to the nodes' devices.

A pool counts once all slices of its newest generation exist; until then the previous state stays. Kubelets delete their
node's slices at every start. So devices of a missing pool stay listed as unavailable until it is back or its node is
gone, and a short absence does not look like removed devices. Source of the rules: Kubernetes `resource.k8s.io/v1`
ResourceSlice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from corral.engines.kubernetes.api.quantities import count
from corral.engines.kubernetes.devices.structs import Attribute, ResourceSlice, SliceDevice
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
    """A device's name in a claim."""

    driver: str
    pool: str
    device: str


class Slices:
    """The slices of all nodes and the devices derived from them, per node."""

    def __init__(self) -> None:
        self._slices: dict[PoolName, dict[str, ResourceSlice]] = defaultdict(dict)
        self._whole: dict[str, dict[PoolName, tuple[SliceDevice, ...]]] = defaultdict(dict)
        self._away: set[PoolName] = set()
        self._nodes: dict[tuple[str, str], str] = {}
        self._told: dict[str, tuple[tuple[Device, Named], ...]] = {}

    def put(self, found: ResourceSlice) -> str:
        """Add or replace a slice. Return the node whose devices may have changed, "" if it has no node."""
        name = _pool(found)
        if name[0]:
            self._nodes[name[1:]] = name[0]
            self._slices[name][found.key] = found
            self._settle(name)
        return name[0]

    def drop(self, found: ResourceSlice) -> str:
        """Remove a slice. Return the node whose devices may have changed."""
        name = _pool(found)
        if name[0]:
            self._slices[name].pop(found.key, None)
            self._settle(name)
        return name[0]

    def forget(self, node: str) -> None:
        """Forget a removed node's devices whose pools were already gone."""
        pools = self._whole.get(node, {})
        self._told.pop(node, None)
        for name in [name for name in pools if name in self._away]:
            del pools[name]
            self._away.discard(name)

    def node_of(self, device: Named) -> str:
        """Return the node of a device, "" if nothing about it was published."""
        return self._nodes.get((device.driver, device.pool), "")

    def devices(self, node: str) -> tuple[tuple[Device, Named], ...]:
        """Return the node's devices in the order of their indexes, each with its name for a claim."""
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
    """Return the drivers' own numbers (attribute `index`, or the end of the name) if they are unique, else their order."""
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
    """Yield the device's cells: the driver's own levels, or else known attributes for NUMA node and PCIe root."""
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
    """Return an attribute as text, "" if it is missing. Names without a domain are the driver's own."""
    found = device.attributes.get(name) or device.attributes.get(f"{driver}/{name}")
    if found is None:
        return ""
    if found.flag is not None:
        return "true" if found.flag else "false"
    return str(found.number) if found.number is not None else found.text or found.version or ""
