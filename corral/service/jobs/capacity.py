"""Find jobs that no known node could ever hold, so that submit can refuse them instead of queueing them forever.

The check only counts devices, processors, memory and labels of nodes as last reported. The scheduler decides placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from corral.kernel.amounts import UNBOUNDED
from corral.kernel.units import counted, format_cpu, format_memory
from corral.model.inventory import Device, Node
from corral.model.request_builder import amounts_of, fraction_request
from corral.spec.job import UnifiedJob
from corral.spec.placement_rules import MILLIONTHS, Devices
from corral.spec.role import Role

_MOST_SELECTORS = 1000
"""Most node selectors whose nodes are cached; the cache is cleared when full."""


class Capacity:
    """The known nodes, grouped by equal capacity.

    The cost of a submit grows with the number of groups, not of nodes.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        kinds: dict[Hashable, list[Node]] = {}
        for node in nodes:
            kinds.setdefault(_counts_as(node), []).append(node)
        self._kinds = tuple(map(tuple, kinds.values()))
        self._labelled: dict[Hashable, tuple[tuple[Node, ...], ...]] = {}
        self.devices = sum(_healthy(alike[0], "", "") * len(alike) for alike in self._kinds)
        """Healthy devices of all nodes."""

    def labelled(self, selector: Mapping[str, str]) -> tuple[tuple[Node, ...], ...]:
        """The nodes with these labels, grouped by equal capacity."""
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
    """Key of nodes that hold equally many tasks of any role; labels and device ids are ignored."""
    devices = Counter((device.kind, device.model, device.healthy) for device in node.devices)
    indexes = tuple(device.index for device in node.devices)
    amounts = (node.max_tasks, node.cpu_millis, node.memory_bytes, tuple(sorted(node.resources.items())))
    return (amounts, indexes, tuple(sorted(devices.items())))


def capacity_obstacle(job: UnifiedJob, capacity: Capacity) -> str:
    """Say in one sentence why the nodes could not hold the job even if empty; "" if nothing is found."""
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
    """Tasks of a role that nodes of one group hold; nodes are counted one by one only if the role names device ids."""
    if any(not name.isdecimal() for name in role.resources.devices.named):
        return sum(_places(node, role) for node in alike)
    return len(alike) * _places(alike[0], role)


def _places(node: Node, role: Role) -> int:
    """Tasks of a role that the node holds when empty."""
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
    """Most tasks that one device holds."""
    return MILLIONTHS // max(_part(devices))


def _part(devices: Devices) -> tuple[int, int]:
    """The smallest part of one device that a task takes, in millionths of its compute and of its memory.

    An amount of memory counts as one millionth, because devices differ in memory size.
    """
    ask = fraction_request(devices.share)
    if ask is None:  # whole devices
        return MILLIONTHS, MILLIONTHS
    memory = 1 if ask.memory_bytes else ask.memory
    compute = ask.compute or memory or 1
    return compute, memory or compute


class _Fractional(NamedTuple):
    """The tasks of one role, each of which takes a fraction of a device."""

    tasks: int
    compute: int
    memory: int
    selector: Mapping[str, str]
    models: frozenset[tuple[str, str]]
    """The kinds and models of devices that suit the role."""

    def may_share_with(self, other: _Fractional) -> bool:
        """Whether tasks of both roles could share a device, judged by labels and models."""
        contradiction = any(other.selector.get(name, value) != value for name, value in self.selector.items())
        return not contradiction and not self.models.isdisjoint(other.models)


def _devices_wanted(wanted: Iterable[tuple[Role, int]], capacity: Capacity, *, alone: bool) -> int:
    """Fewest devices that the given numbers of tasks need; `alone` puts no two of them on one node.

    Tasks of several roles may share a device, as in the scheduler, up to all of its compute and all of its memory.
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
    """Fewest devices for the tasks of roles that may share devices."""
    by_compute = _fewest([(each.compute, each.tasks) for each in group])
    return max(by_compute, _fewest([(each.memory, each.tasks) for each in group]))


def _fewest(parts: Sequence[tuple[int, int]]) -> int:
    """Fewest devices that hold the parts, each given as a size in millionths and a count.

    The larger of two lower bounds: the sum of all sizes, and the count of large parts alone.
    """
    fewest = -(-sum(size * count for size, count in parts) // MILLIONTHS)
    for least, _ in parts:
        as_large = sum(count for size, count in parts if size >= least)
        fewest = max(fewest, -(-as_large // (MILLIONTHS // least)))
    return fewest


def _models(role: Role, capacity: Capacity) -> frozenset[tuple[str, str]]:
    """The kinds and models of healthy devices that suit a role, on nodes with its labels."""
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
