"""Compute how much of each queue resource a gang requests or holds.

Queues count devices, processors, memory, and the device models that some queue names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import add

from msgspec import structs

from corral.kernel.units import DEVICE
from corral.model.placement import Placement
from corral.model.requests import GangRequest, RoleRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_count import wanted
from corral.scheduler.queues.queue_tree import BASE, QueueTree


def asked(request: GangRequest, queues: QueueTree, *, every: bool = False) -> list[int]:
    """Return the queue resources that a gang needs to begin, or with `every` those of all its tasks.

    A model counts only where the role names it. Where the value of a device share depends on the device, the largest
    possible value counts.
    """
    names = queues.names
    total = [0] * len(names)
    for role in request.roles:
        count = len(role.indexes) if every else role.minimum
        for at, amount in enumerate((_devices(role, queues), role.cpu_millis, role.memory_bytes)):
            total[at] += count * amount
        model = f"devices/{role.devices.model}"
        if model in names:
            total[names.index(model)] += count * _devices(role, queues, model)
    return total


def with_extra(request: GangRequest, extra: int) -> GangRequest:
    """Return the gang with its minimum and at most `extra` more tasks, filled role by role."""
    roles = []
    for role in request.roles:
        more = min(max(extra, 0), len(role.indexes) - role.minimum)
        extra -= more
        if role.minimum + more:
            roles.append(structs.replace(role, indexes=role.indexes[: role.minimum + more]))
    return structs.replace(request, roles=tuple(roles))


def placed_amounts(cluster: Cluster, request: GangRequest, placements: Sequence[Placement]) -> list[int]:
    """Return the queue resources that gangs of one shape hold at these placements."""
    names = cluster.queues.names
    total = [0] * len(names)
    if all(role.minimum == len(role.indexes) for role in request.roles):
        counts = {role.role: len(role.indexes) * len(placements) for role in request.roles}
    else:
        counts = Counter(task.role for placement in placements for task in placement.tasks)
    plain = not (
        cluster.queues.models or cluster.queues.has_slices or any(role.devices.share for role in request.roles)
    )
    for role in request.roles:
        devices = _devices(role, cluster.queues) if plain else 0
        for at, amount in enumerate((devices, role.cpu_millis, role.memory_bytes)):
            total[at] += counts[role.role] * amount
    for placement in placements if not plain else ():
        total[0], *total[len(BASE) :] = map(add, [total[0], *total[len(BASE) :]], cluster.devices_of(placement))
    return total


def _devices(role: RoleRequest, queues: QueueTree, resource: str = "devices") -> int:
    """Return the thousandths that one task's devices count for."""
    ask = role.devices
    if ask.share is None and not queues.has_slices:
        return DEVICE * (len(ask.ids) or ask.count)
    return wanted(ask, [each for tree in queues.trees for each in tree.kinds], resource)


def smallest(request: GangRequest) -> GangRequest:
    """Return the gang reduced to its minimum."""
    extra = any(role.minimum < len(role.indexes) for role in request.roles)
    return with_extra(request, 0) if extra and starts_anew(request) else request


def starts_anew(request: GangRequest) -> bool:
    """Return whether the gang has a minimum; growth of a running gang has none."""
    return any(role.minimum for role in request.roles)
