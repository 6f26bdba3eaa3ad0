"""Compare a node's configured devices with those that its machine reports.

A node that differs is marked with both figures and takes no new tasks until they agree. Its running tasks go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import structs

from corral.kernel import units
from corral.model.inventory import Device, Inventory, Mismatch, Node

_TOLERANCE = 0.9
"""Fraction of the configured memory that a device must report: vendors say 80 GiB, the driver reports 79.6."""
_GONE = "the machine reports it no longer"


def differences(configured: Sequence[Device], reported: Sequence[Device]) -> tuple[Mismatch, ...]:
    """List the differences between configured and reported devices. An unset model, memory or cell matches anything."""
    found: list[Mismatch] = []
    models = {device.index: device.model for device in configured}
    named = [structs.replace(each, model=each.model if models.get(each.index, each.model) else "") for each in reported]
    kinds, there = _spoken(configured), _spoken(named)
    if kinds != there:
        found.append(Mismatch("devices", kinds, there))
    wanted, numbers = {device.index for device in configured}, {device.index for device in reported}
    if len(wanted) == len(numbers) and wanted != numbers:
        found.append(Mismatch("numbers", _numbers(wanted), _numbers(numbers)))
    by_index = {device.index: device for device in reported}
    small = [
        device
        for device in configured
        if device.index in by_index and by_index[device.index].memory_bytes < device.memory_bytes * _TOLERANCE
    ]
    if small:
        least = min(by_index[device.index].memory_bytes for device in small)
        most = max(device.memory_bytes for device in small)
        found.append(Mismatch("memory", units.format_memory(most), units.format_memory(least)))
    if not found:
        found += _wired_otherwise(configured, reported)
    return tuple(found)


def reconciled(configured: Node, reported: Node) -> Node:
    """Return the configured node with its machine's devices, marked as mismatched where the two differ.

    A configured node without devices takes the reported ones.
    """
    node = structs.replace(configured, devices=reported.devices, links=reported.links)
    if not configured.devices:
        return node
    return marked(node, differences(configured.devices, reported.devices))


def marked(node: Node, mismatches: tuple[Mismatch, ...]) -> Node:
    """Return the node, not ready if there is a mismatch."""
    if not mismatches:
        return node
    said = "; ".join(f"{each.what}: {each.configured} configured, {each.reported} reported" for each in mismatches)
    reason = f"the machine reports other devices than configured ({said})"
    return structs.replace(node, mismatches=mismatches, ready=False, ready_reason=reason)


def kept(before: Inventory, now: Inventory) -> Inventory:
    """Return the current inventory with each device at its previous index, and vanished devices as unhealthy.

    Drivers renumber the remaining devices from 0, so devices are matched by id.
    """
    known = {node.name: node for node in before.nodes}
    return structs.replace(now, nodes=tuple(_kept(known.get(node.name), node) for node in now.nodes))


def _kept(before: Node | None, now: Node) -> Node:
    if before is None or any(device.described for device in (*before.devices, *now.devices)):
        return now
    numbers = {device.id: device.index for device in before.devices}
    seen = {device.id for device in now.devices}
    gone = [device for device in before.devices if device.id not in seen]
    if not gone and all(numbers.get(device.id, device.index) == device.index for device in now.devices):
        return now
    free = iter(sorted(set(range(len(numbers) + len(now.devices))) - set(numbers.values())))
    placed = [structs.replace(each, index=numbers.get(each.id, -1)) for each in now.devices]
    placed = [each if each.index >= 0 else structs.replace(each, index=next(free)) for each in placed]
    lost = [structs.replace(each, healthy=False, health_reason=_GONE) for each in gone]
    devices = tuple(sorted((*placed, *lost), key=lambda device: device.index))
    return structs.replace(now, devices=devices, links=_rearranged(devices, before, now))


def _rearranged(devices: tuple[Device, ...], before: Node, now: Node) -> tuple[tuple[int, ...], ...]:
    """Return the links in the order of `devices`. A vanished device keeps its previous links."""
    at = {device.id: place for place, device in enumerate(now.devices)}
    was = {device.id: place for place, device in enumerate(before.devices)}

    def link(a: str, b: str) -> int:
        for places, links in ((at, now.links), (was, before.links)):
            if links and a in places and b in places:
                return links[places[a]][places[b]]
        return 0

    return tuple(tuple(link(a.id, b.id) for b in devices) for a in devices)


def _spoken(devices: Iterable[Device]) -> str:
    counts = Counter((device.model or device.kind) for device in devices)
    return ", ".join(f"{count} × {model}" for model, count in sorted(counts.items())) or "none"


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _wired_otherwise(configured: Sequence[Device], reported: Sequence[Device]) -> list[Mismatch]:
    """List the cell levels at which devices are grouped differently. A level missing on either side is not compared."""
    wanted, there = _groups(configured), _groups(reported)
    return [
        Mismatch(level, _sets(wanted[level]), _sets(there[level]))
        for level in wanted
        if level in there and wanted[level] != there[level]
    ]


def _groups(devices: Sequence[Device]) -> dict[str, set[tuple[int, ...]]]:
    cells: dict[str, dict[str, list[int]]] = {}
    for device in sorted(devices, key=lambda device: device.index):
        for level, name in device.cells:
            cells.setdefault(level, {}).setdefault(name, []).append(device.index)
    return {level: {tuple(members) for members in named.values()} for level, named in cells.items()}


def _sets(groups: set[tuple[int, ...]]) -> str:
    return " ".join("{" + _numbers(members) + "}" for members in sorted(groups))
