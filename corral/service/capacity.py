"""Why: a job that no machine known could ever hold is refused when it is submitted, not left waiting for ever.

This only counts (devices, processors, memory, labels, on nodes as last reported); the scheduler has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from corral.kernel.units import counted, format_cpu, format_memory
from corral.model.asks import amounts_of
from corral.model.inventory import UNBOUNDED, Device, Node
from corral.spec.company import Devices
from corral.spec.job import UnifiedJob
from corral.spec.role import Role

_MOST_SELECTORS = 1000
"""So many are remembered."""


class Capacity:
    """The nodes known now, those that count alike as one: a submit must not cost as much as there are nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        kinds: dict[Hashable, list[Node]] = {}
        for node in nodes:
            kinds.setdefault(_counts_as(node), []).append(node)
        self._kinds = tuple(map(tuple, kinds.values()))
        self._labelled: dict[Hashable, tuple[tuple[Node, ...], ...]] = {}
        self.devices = sum(_healthy(alike[0], "", "") * len(alike) for alike in self._kinds)
        """The healthy ones of all nodes."""

    def labelled(self, selector: Mapping[str, str]) -> tuple[tuple[Node, ...], ...]:
        """The nodes with these labels, by kind."""
        if not selector:
            return self._kinds
        key = tuple(sorted(selector.items()))
        found = self._labelled.get(key)
        if found is None:
            chosen = (tuple(node for node in alike if _has_labels(node, selector)) for alike in self._kinds)
            found = tuple(filter(None, chosen))
            if len(self._labelled) >= _MOST_SELECTORS:
                self._labelled.clear()
            self._labelled[key] = found
        return found


def _counts_as(node: Node) -> Hashable:
    """Equal for nodes that hold equally many tasks of whatever role their labels let in; ids of devices apart."""
    devices = Counter((device.kind, device.model, device.healthy) for device in node.devices)
    indexes = tuple(device.index for device in node.devices)
    amounts = (node.max_tasks, node.cpu_millis, node.memory_bytes, tuple(sorted(node.resources.items())))
    return (amounts, indexes, tuple(sorted(devices.items())))


def impossible(job: UnifiedJob, capacity: Capacity) -> str:
    """One sentence that says why the machines, all empty, could not hold the job; "" when nothing speaks against it."""
    wanted = job.gang_size()
    devices_wanted = 0
    for role in job.spec.roles:
        count = wanted[role.name]
        if count == 0:
            continue
        fitting = capacity.labelled(role.node_selector)
        if not fitting:
            return f"Role {role.name} wants nodes labelled {dict(role.node_selector)}, and there are none."
        places = sum(_places_on(alike, role) for alike in fitting)
        if places < count:
            return _sentence(role, count, places, [alike[0] for alike in fitting])
        devices_wanted += _devices_of(role, count)
    if devices_wanted > capacity.devices:
        return (
            f"The job wants {counted(devices_wanted, 'device')} at once, and {capacity.devices} healthy ones are there."
        )
    return ""


def _places_on(alike: Sequence[Node], role: Role) -> int:
    """How many tasks of a role nodes of one kind hold; only ids of devices tell them apart."""
    if any(not name.isdecimal() for name in role.resources.devices.named):
        return sum(_places(node, role) for node in alike)
    return len(alike) * _places(alike[0], role)


def _places(node: Node, role: Role) -> int:
    """How many tasks of a role the node holds when it is empty."""
    resources = role.resources
    places = node.max_tasks
    if resources.cpu_millis:
        places = min(places, node.cpu_millis // resources.cpu_millis)
    if resources.memory_bytes:
        places = min(places, node.memory_bytes // resources.memory_bytes)
    for name, amount in amounts_of(role).items():
        if name in node.resources or name not in UNBOUNDED:
            places = min(places, node.resources.get(name, 0) // amount)
    devices = resources.devices
    if devices.named:
        there = {str(device.index) for device in node.devices} | {device.id for device in node.devices}
        return min(places, _on_one(devices)) if there.issuperset(devices.named) else 0
    if devices.count:
        healthy = _healthy(node, devices.kind, devices.model)
        places = min(places, healthy * _on_one(devices) // devices.count)
    return places


def _on_one(devices: Devices) -> int:
    """How many tasks one device holds at the most."""
    share = devices.share
    return 100 // max(share.compute_percent, share.memory_percent, 1) if share.asked else 1


def _devices_of(role: Role, count: int) -> int:
    """How many devices so many tasks need at the least."""
    devices = role.resources.devices
    return -(-count // _on_one(devices)) if devices.share.asked else count * _device_count(role)


def _healthy(node: Node, kind: str, model: str) -> int:
    return sum(device.healthy and _is(device, kind, model) for device in node.devices)


def _is(device: Device, kind: str, model: str) -> bool:
    return (not kind or device.kind == kind) and (not model or model.lower() in device.model.lower())


def _has_labels(node: Node, selector: Mapping[str, str]) -> bool:
    return all(node.labels.get(name) == value for name, value in selector.items())


def _device_count(role: Role) -> int:
    devices = role.resources.devices
    return len(devices.named) or devices.count


def _sentence(role: Role, count: int, places: int, nodes: Sequence[Node]) -> str:
    devices, resources = role.resources.devices, role.resources
    kind = " ".join(part for part in (devices.model, devices.kind or "device") if part)
    asked = []
    if _device_count(role):
        what = f"the devices {', '.join(devices.named)}" if devices.named else counted(devices.count, kind)
        if devices.share.asked:
            what = f"a part of {what}"
        largest = max((_healthy(node, devices.kind, devices.model) for node in nodes), default=0)
        asked.append(f"{what} (the largest node has {largest})")
    if resources.cpu_millis:
        asked.append(f"{format_cpu(resources.cpu_millis)} processor{'s' * (resources.cpu_millis != 1000)}")
    if resources.memory_bytes:
        asked.append(f"{format_memory(resources.memory_bytes)} of memory")
    wants = f"Role {role.name} wants {counted(count, 'task')} with {', '.join(asked)} each"
    return f"{wants}; all nodes together have room for {places}."
