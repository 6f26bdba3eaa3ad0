"""Why: queues count devices, processors and memory; this says how much of them a gang asks for, or got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import add

from msgspec import structs

from corral.kernel.units import DEVICE
from corral.model.placement import Placement
from corral.model.requests import GangRequest, RoleAsk
from corral.scheduler.cluster import Cluster
from corral.scheduler.counting import wanted
from corral.scheduler.queues import BASE, QueueTree


def asked(request: GangRequest, queues: QueueTree, *, every: bool = False) -> list[int]:
    """What a gang needs to begin, or for `every` task of it, in the terms of the queues; unnamed models count for none.

    What a part is of its device may depend on which one it gets: then it is the most that it can be.
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
    """The gang with its minimum and at most so many more tasks, roles in order."""
    roles = []
    for role in request.roles:
        more = min(max(extra, 0), len(role.indexes) - role.minimum)
        extra -= more
        if role.minimum + more:
            roles.append(structs.replace(role, indexes=role.indexes[: role.minimum + more]))
    return structs.replace(request, roles=tuple(roles))


def placed_amounts(cluster: Cluster, request: GangRequest, placements: Sequence[Placement]) -> list[int]:
    """What equal gangs hold where they were placed, in the terms of the cluster's queues."""
    names = cluster.queues.names
    total = [0] * len(names)
    if all(role.minimum == len(role.indexes) for role in request.roles):
        counts = {role.role: len(role.indexes) * len(placements) for role in request.roles}
    else:
        counts = Counter(task.role for placement in placements for task in placement.tasks)
    plain = not (cluster.queues.models or cluster.queues.cut or any(role.devices.share for role in request.roles))
    for role in request.roles:
        devices = _devices(role, cluster.queues) if plain else 0
        for at, amount in enumerate((devices, role.cpu_millis, role.memory_bytes)):
            total[at] += counts[role.role] * amount
    for placement in placements if not plain else ():
        total[0], *total[len(BASE) :] = map(add, [total[0], *total[len(BASE) :]], cluster.devices_of(placement))
    return total


def _devices(role: RoleAsk, queues: QueueTree, resource: str = "devices") -> int:
    """What the devices of each task count for."""
    ask = role.devices
    if ask.share is None and not queues.cut:
        return DEVICE * (len(ask.ids) or ask.count)
    return wanted(ask, [each for tree in queues.trees for each in tree.kinds], resource)
