"""Translate between Corral's gangs and tasks and HiveD's affinity groups and pods.

HiveD's data of a bound pod is stored in its task's `cells`: a mark, the chain, the pinned cell, and for each device the
type of the owned cell that contains it ("" if opportunistic). With the placement, a restart needs no more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import TaskPlacement
from corral.model.requests import ALONE, GangRequest, RoleRequest
from corral.scheduler.planners.hived.algorithm.cells import HIGHEST, OPPORTUNISTIC
from corral.scheduler.planners.hived.algorithm.groups import Bind, Member, PodPlacement, PodRequest

MARK: Final = "hived"


class BoundTask(NamedTuple):
    """The content of a task's `cells`."""

    chain: str = ""
    pinned_cell: str = ""
    owned_types: tuple[str, ...] = ()


def written(bound: BoundTask) -> tuple[str, ...]:
    """Encode a bound task as the `cells` of a placement."""
    return (MARK, bound.chain, bound.pinned_cell, *bound.owned_types)


def read(cells: Sequence[str]) -> BoundTask:
    """Decode `cells`; a task that another policy placed is opportunistic."""
    if len(cells) < 3 or cells[0] != MARK:
        return BoundTask()
    return BoundTask(cells[1], cells[2], tuple(cells[3:]))


def pod_name(job: JobId, task: TaskKey) -> str:
    """Return the name of a task's pod."""
    return f"{job}.{task.role}-{task.index}"


def label_of(role: RoleRequest, index: int) -> str:
    """Return the affinity group label of a task; "" is the group of all tasks without a label."""
    return f"{ALONE}{role.role}-{index}" if role.affinity == ALONE else role.affinity


def label_for(part: GangRequest) -> str:
    """Return the affinity group label of a part of a gang, or of an undivided gang."""
    return next((label_of(role, role.indexes[0]) for role in part.roles if role.devices.count and role.indexes), "")


def parts_of(request: GangRequest) -> list[GangRequest]:
    """Split a gang by its affinity groups, in the order of its roles, without roles that need no devices.

    A gang without labels, or without devices, comes back whole.
    """
    parts: dict[str, list[RoleRequest]] = defaultdict(list)
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
    """Return HiveD's name for an affinity group of a job.

    `first` names a task of a group that starts while its label already has a group.
    """
    base = f"{job}+[{in_name(label)}]" if label else str(job)
    return base if first is None else f"{base}+{first.role}-{first.index}"


def in_name(label: str) -> str:
    """Encode a label for a group name, which may appear in a URL unescaped."""
    return quote(label, safe="").replace("%", "=")


def label_in(group: str) -> str:
    """Return the label in an affinity group's name, as encoded by `in_name`."""
    _, opened, rest = group.partition("+[")
    return rest.partition("]")[0] if opened else ""


def job_in(group: str) -> JobId:
    """Return the job that an affinity group belongs to."""
    return JobId(group.partition("+")[0])


def priority_of(priority: int) -> int:
    """Clamp a priority to HiveD's range: -1 for opportunistic, else 0 to 1000."""
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
    """Return the pods of one group, for tasks with these device counts; tasks without devices have no pod."""
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
    """Return how many devices each task of a gang requests."""
    return [(TaskKey(role.role, index), role.devices.count) for role in request.roles for index in role.indexes]


def pinned_cell_of(request: GangRequest) -> str:
    """Return the pinned cell that an affinity group must use; "" for none."""
    return request.pinned_cell or next((role.pinned_cell for role in request.roles if role.devices.count), "")


def model_of(request: GangRequest) -> str:
    """Return the device type that a gang requests; "" for any."""
    return next((role.devices.model for role in request.roles if role.devices.count), "")


def bind_of(engine: str, tasks: Sequence[TaskPlacement]) -> Bind:
    """Return the binding of a group whose pods are these tasks, from the view of its smallest pod."""
    ordered = sorted(tasks, key=lambda task: (len(task.devices), task.node, task.devices))
    places = tuple(PodPlacement(task.node.removeprefix(f"{engine}/"), task.devices, _types(task)) for task in ordered)
    return Bind(places[0].node, places[0].devices, read(ordered[0].cells).chain, places)


def _types(task: TaskPlacement) -> tuple[str, ...]:
    types = read(task.cells).owned_types
    return types if len(types) == len(task.devices) else ("",) * len(task.devices)
