"""Why: a job that no machine known could ever hold is refused when it is submitted, not left waiting for ever.

This only counts (devices, processors, memory, labels, on nodes as last reported); the scheduler has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from corral.kernel.units import counted, format_cpu, format_memory
from corral.model.asks import amounts_of, share_ask
from corral.model.inventory import UNBOUNDED, Device, Node
from corral.spec.company import MILLIONTHS, Devices
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
    sizes = job.gang_size()
    wanted = [(role, sizes[role.name]) for role in job.spec.roles if sizes[role.name]]
    for role, count in wanted:
        fitting = capacity.labelled(role.node_selector)
        if not fitting:
            return f"Role {role.name} wants nodes labelled {dict(role.node_selector)}, and there are none."
        places = sum(_places_on(alike, role) for alike in fitting)
        if places < count:
            return _sentence(role, count, places, [alike[0] for alike in fitting])
    devices_wanted = _devices_wanted(wanted, capacity, alone=job.spec.sharing.one_task_per_node)
    if devices_wanted > capacity.devices:
        there = f"{counted(capacity.devices, 'healthy device')} {'is' if capacity.devices == 1 else 'are'} there"
        return f"The job wants {counted(devices_wanted, 'device')} at once, and {there}."
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
    return MILLIONTHS // max(_part(devices))


def _part(devices: Devices) -> tuple[int, int]:
    """The least that a task has of one device, in millionths of its computing power and of its memory.

    An amount of memory counts as one millionth, because devices have more or less memory.
    """
    ask = share_ask(devices.share)
    if ask is None:  # whole devices
        return MILLIONTHS, MILLIONTHS
    memory = 1 if ask.memory_bytes else ask.memory
    compute = ask.compute or memory or 1
    return compute, memory or compute


class _Fractional(NamedTuple):
    """The tasks of one role, each of which wants a part of a device."""

    tasks: int
    compute: int
    memory: int
    selector: Mapping[str, str]
    models: frozenset[tuple[str, str]]
    """The kinds and models of the devices that suit them."""

    def may_share_with(self, other: _Fractional) -> bool:
        """Whether tasks of both roles could be on one device, as far as labels and models tell."""
        contradiction = any(other.selector.get(name, value) != value for name, value in self.selector.items())
        return not contradiction and not self.models.isdisjoint(other.models)


def _devices_wanted(wanted: Iterable[tuple[Role, int]], capacity: Capacity, *, alone: bool) -> int:
    """How many devices so many tasks of each role need at the least; `alone`: no two of them are on one node.

    Tasks of several roles share devices as the scheduler lets them: up to the whole of computing power and of memory.
    """
    whole = 0
    groups: list[list[_Fractional]] = []
    for role, count in wanted:
        devices = role.resources.devices
        if alone or not devices.share.asked:
            whole += count * _device_count(role)
            continue
        added = _Fractional(count, *_part(devices), role.node_selector, _models(role, capacity))
        joined, apart = [added], []
        for group in groups:
            if any(map(added.may_share_with, group)):
                joined += group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return whole + sum(map(_devices_in_parts, groups))


def _devices_in_parts(group: Sequence[_Fractional]) -> int:
    """How many devices the tasks of roles that may share them need at the least."""
    by_compute = _fewest([(each.compute, each.tasks) for each in group])
    return max(by_compute, _fewest([(each.memory, each.tasks) for each in group]))


def _fewest(parts: Sequence[tuple[int, int]]) -> int:
    """How many devices hold parts, given by size in millionths and number: by their sum, and by the large ones alone."""
    fewest = -(-sum(size * count for size, count in parts) // MILLIONTHS)
    for least, _ in parts:
        as_large = sum(count for size, count in parts if size >= least)
        fewest = max(fewest, -(-as_large // (MILLIONTHS // least)))
    return fewest


def _models(role: Role, capacity: Capacity) -> frozenset[tuple[str, str]]:
    """The kinds and models of the healthy devices that suit a role, on nodes with its labels."""
    devices = role.resources.devices
    return frozenset(
        (device.kind, device.model)
        for alike in capacity.labelled(role.node_selector)
        for device in alike[0].devices
        if device.healthy and _is(device, devices.kind, devices.model)
    )


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
