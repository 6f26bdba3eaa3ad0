"""Why: what a document says of a machine and what the machine reports may differ, and then neither is to be built on.

A node that differs is marked with the figures and takes no new tasks until the two agree; what runs there goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import structs

from corral.kernel import units
from corral.model.inventory import Device, Inventory, Mismatch, Node

_TOLERANCE = 0.9
"""Vendors say 80 GiB and the driver reports 79.6: a device has what is configured when it has nearly that."""
_GONE = "the machine reports it no longer"


def differences(configured: Sequence[Device], reported: Sequence[Device]) -> tuple[Mismatch, ...]:
    """What a machine reports otherwise than configured; a model, memory or cell that is left open fits everything."""
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
    """The configured node with the devices that its machine reports, marked where the two differ.

    A configured node without devices takes whatever is reported.
    """
    node = structs.replace(configured, devices=reported.devices, links=reported.links)
    if not configured.devices:
        return node
    return marked(node, differences(configured.devices, reported.devices))


def marked(node: Node, mismatches: tuple[Mismatch, ...]) -> Node:
    """The node as it is shown and trusted: not at all when there is a mismatch."""
    if not mismatches:
        return node
    said = "; ".join(f"{each.what}: {each.configured} configured, {each.reported} reported" for each in mismatches)
    reason = f"the machine reports other devices than configured ({said})"
    return structs.replace(node, mismatches=mismatches, ready=False, ready_reason=reason)


def kept(before: Inventory, now: Inventory) -> Inventory:
    """What is seen now, with every device under the number it had, and those that vanished there but unhealthy.

    Drivers count the devices that are left from 0 again: a task's devices are known by their ids.
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
    """The links in the order of `devices`; a vanished device's are those it had."""
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
    """The levels at which the devices are grouped otherwise; a level that either side does not name is left open."""
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
