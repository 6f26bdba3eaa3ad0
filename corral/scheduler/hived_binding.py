"""Why: HiveD speaks of pods in affinity groups, Corral of tasks in gangs; this is the dictionary, both ways.

What HiveD keeps of a bound pod is kept in its task's `cells`: a mark, the chain, the pinned cell, and for each device the
type of the owned cell it is in ("" where it is opportunistic). With the placement it is all that a restart needs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import TaskPlacement
from corral.model.requests import ALONE, GangRequest, RoleAsk
from corral.scheduler.hived.cells import HIGHEST, OPPORTUNISTIC
from corral.scheduler.hived.groups import Bind, Member, PodPlacement, PodRequest

MARK: Final = "hived"


class BoundTask(NamedTuple):
    """What a task's `cells` say."""

    chain: str = ""
    pinned_cell: str = ""
    owned_types: tuple[str, ...] = ()


def written(bound: BoundTask) -> tuple[str, ...]:
    """As `cells` of a placement."""
    return (MARK, bound.chain, bound.pinned_cell, *bound.owned_types)


def read(cells: Sequence[str]) -> BoundTask:
    """From `cells`; what another policy placed is opportunistic."""
    if len(cells) < 3 or cells[0] != MARK:
        return BoundTask()
    return BoundTask(cells[1], cells[2], tuple(cells[3:]))


def pod_name(job: JobId, task: TaskKey) -> str:
    """The name of the pod that a task is."""
    return f"{job}.{task.role}-{task.index}"


def label_of(role: RoleAsk, index: int) -> str:
    """Which of its job's affinity groups a task is in; "" is the one of all that say nothing."""
    return f"{ALONE}{role.role}-{index}" if role.affinity == ALONE else role.affinity


def label_for(part: GangRequest) -> str:
    """The affinity group that a part of a gang, or a gang that is not parted, is."""
    return next((label_of(role, role.indexes[0]) for role in part.roles if role.devices.count and role.indexes), "")


def parts_of(request: GangRequest) -> list[GangRequest]:
    """A gang by its affinity groups, in the order of its roles, without what has no devices."""
    parts: dict[str, list[RoleAsk]] = defaultdict(list)
    for role in request.roles:
        if role.devices.count and role.affinity == ALONE:
            for index in role.indexes:
                alone = msgspec.structs.replace(role, indexes=(index,), minimum=min(1, role.minimum))
                parts[label_of(role, index)].append(alone)
        elif role.devices.count:
            parts[role.affinity].append(role)
    if not parts or list(parts) == [""]:
        return [request]
    return [msgspec.structs.replace(request, roles=tuple(roles)) for roles in parts.values()]


def group_name(job: JobId, label: str, first: TaskKey | None = None) -> str:
    """What HiveD calls an affinity group of a job; with a task, one that joined when there was one of that label."""
    base = f"{job}+[{in_name(label)}]" if label else str(job)
    return base if first is None else f"{base}+{first.role}-{first.index}"


def in_name(label: str) -> str:
    """A label as it stands in the name of a group, so that this can stand in a URL as it is."""
    return quote(label, safe="").replace("%", "=")


def label_in(group: str) -> str:
    """The label in the name of an affinity group, as `in_name` writes it."""
    _, opened, rest = group.partition("+[")
    return rest.partition("]")[0] if opened else ""


def job_in(group: str) -> JobId:
    """The job that an affinity group belongs to."""
    return JobId(group.partition("+")[0])


def priority_of(priority: int) -> int:
    """HiveD knows -1 for all that is opportunistic, and 0 to 1000."""
    return OPPORTUNISTIC if priority < 0 else min(priority, HIGHEST)


def pods_of(
    job: JobId,
    queue: str,
    priority: int,
    sizes: Iterable[tuple[TaskKey, int]],
    group: str,
    *,
    leaf_type: str = "",
    lazy_preemption: bool = False,
    pinned_cell: str = "",
) -> dict[TaskKey, PodRequest]:
    """The pods of one group that tasks with so many devices each are; those without devices are none."""
    wanted = [(task, size) for task, size in sizes if size]
    counts = Counter(size for _, size in wanted)
    members = tuple(Member(count, size) for size, count in sorted(counts.items()))
    return {
        task: PodRequest(
            pod=pod_name(job, task),
            vc=queue,
            priority=priority_of(priority),
            leaves=size,
            group=group,
            members=members,
            leaf_type=leaf_type,
            pinned_cell=pinned_cell,
            lazy_preemption=lazy_preemption,
            ignore_suggested=False,
        )
        for task, size in wanted
    }


def sizes_of(request: GangRequest) -> list[tuple[TaskKey, int]]:
    """How many devices each task of a gang asks for."""
    return [(TaskKey(role.role, index), role.devices.count) for role in request.roles for index in role.indexes]


def pinned_cell_of(request: GangRequest) -> str:
    """The pinned cell that one affinity group has to be in; "" is none."""
    return request.pinned_cell or next((role.pinned_cell for role in request.roles if role.devices.count), "")


def model_of(request: GangRequest) -> str:
    """The type of the devices that a gang asks for; "" is any."""
    return next((role.devices.model for role in request.roles if role.devices.count), "")


def bind_of(engine: str, tasks: Sequence[TaskPlacement]) -> Bind:
    """The binding of a group whose pods these tasks are, as that of its smallest pod."""
    ordered = sorted(tasks, key=lambda task: (len(task.devices), task.node, task.devices))
    places = tuple(PodPlacement(task.node.removeprefix(f"{engine}/"), task.devices, _types(task)) for task in ordered)
    return Bind(places[0].node, places[0].devices, read(ordered[0].cells).chain, places)


def _types(task: TaskPlacement) -> tuple[str, ...]:
    types = read(task.cells).owned_types
    return types if len(types) == len(task.devices) else ("",) * len(task.devices)
