"""Why: queues count devices, processors and memory; this says how much of them a gang asks for, or got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs

from corral.model.placement import Placement
from corral.model.requests import GangRequest, RoleAsk
from corral.scheduler.cluster import Cluster
from corral.scheduler.queues import BASE


def asked(request: GangRequest, names: Sequence[str], *, every: bool = False) -> list[int]:
    """What a gang needs to begin, or for `every` task of it, in the order of `names`; unnamed models count for none."""
    total = [0] * len(names)
    for role in request.roles:
        count = len(role.indexes) if every else role.minimum
        for at, amount in enumerate(_each(role)):
            total[at] += count * amount
        model = f"devices/{role.devices.model}"
        if model in names:
            total[names.index(model)] += count * _devices(role)
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
    for role in request.roles:
        for at, amount in enumerate(_each(role)):
            total[at] += counts[role.role] * amount
    if len(names) > len(BASE):
        for placement in placements:
            for model, count in cluster.models_of(placement).items():
                name = f"devices/{model}"
                if name in names:
                    total[names.index(name)] += count
    return total


def _devices(role: RoleAsk) -> int:
    return len(role.devices.ids) or role.devices.count


def _each(role: RoleAsk) -> tuple[int, int, int]:
    return _devices(role), role.cpu_millis, role.memory_bytes
