"""Move the running groups to a state with another configuration, without the restart that HiveD needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.scheduler.planners.hived.algorithm.cells import PhysicalCell
from corral.scheduler.planners.hived.algorithm.groups import Bind, Group, GroupState
from corral.scheduler.planners.hived.algorithm.recovery import restore
from corral.scheduler.planners.hived.algorithm.state import State


@dataclass(frozen=True, slots=True)
class Changes:
    """The effects of a new configuration on the groups; no running pod is touched."""

    lazily_preempted: tuple[str, ...]
    """Groups that used owned cells and now run opportunistically."""
    ignored: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Group, node and devices that still run but are not in the configuration any more."""
    cancelled: tuple[str, ...]
    """Groups whose preemption was cancelled; their pods must be scheduled again."""


def move_groups(old: State, new: State) -> Changes:
    """Account in `new` for everything that runs in `old`, in its order of allocation."""
    lost, ignored = [], []
    waiting = tuple(group.name for group in old.groups.values() if group.state is GroupState.PREEMPTING)
    for group in old.groups.values():
        if group.state is GroupState.PREEMPTING:
            continue
        moved = _move(group, new)
        for slot in moved.slots:
            gone = _gone(slot.devices, slot.cells)
            if gone:
                ignored.append((group.name, slot.node, gone))
    for name, before in old.groups.items():
        after = new.groups.get(name)
        if before.guaranteed and after is not None and after.lazily_preempted_by:
            lost.append(name)
    new.settle()
    return Changes(tuple(lost), tuple(ignored), waiting)


def _move(group: Group, new: State) -> Group:
    first = next(pod for pod in group.pods)
    moved = restore(new, first, Bind("", (), group.chain, group.placements()))
    for slot, before in zip(moved.slots, group.slots, strict=True):
        slot.pod = before.pod
    if group.lazily_preempted_by and not moved.guaranteed:
        moved.lazily_preempted_by, moved.lazily_preempted_at = group.lazily_preempted_by, group.lazily_preempted_at
    return moved


def _gone(devices: Iterable[int], cells: Iterable[PhysicalCell | None]) -> tuple[int, ...]:
    return tuple(device for device, cell in zip(devices, cells, strict=True) if cell is None)
