"""Placements of tasks on nodes and devices.

A placement names devices, not counts, so that the engine starts exactly the scheduler's decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE


class DeviceShare(msgspec.Struct, frozen=True, gc=False):
    """The fraction of a device that a task was given, in millionths of its computing power and of its memory."""

    compute: int
    memory: int


class TaskPlacement(msgspec.Struct, frozen=True, gc=False):
    """One task's node (`engine/node`) and the indexes of its devices on that node."""

    role: str
    index: int
    node: str
    devices: tuple[int, ...] = ()
    order: int = 0
    """The task's position in its gang's topology order; adjacent positions are close together."""
    share: DeviceShare | None = None
    """Its fraction of its one device; None is the whole device."""
    cells: tuple[str, ...] = ()
    """The cells (`engine|level:name`) of its queue that guarantee it these devices; empty for a guest.

    Under the *hived* preset the content of HiveD's bind info instead (`corral.scheduler.planners.hived.pod_mapping`).
    """

    @property
    def key(self) -> TaskKey:
        """The key of the placed task."""
        return TaskKey(self.role, self.index)

    @property
    def device_millis(self) -> int:
        """Its devices in thousandths; of a fraction, the larger of computing power and memory counts."""
        if self.share is None:
            return DEVICE * len(self.devices)
        return max(1, max(self.share.compute, self.share.memory) * DEVICE // 1_000_000)


class Placement(msgspec.Struct, frozen=True, gc=False):
    """The placements of one gang's tasks, in topology order (adjacent tasks are close together).

    `notes` says which preferences were relaxed, such as a preferred level.
    """

    tasks: tuple[TaskPlacement, ...]
    notes: tuple[str, ...] = ()
    demoted: tuple[JobId, ...] = ()
    """The gangs that lose their guarantee to this one and run on (HiveD's lazy preemption)."""


def in_rank_order(tasks: Sequence[TaskPlacement], role: str) -> tuple[TaskPlacement, ...]:
    """Rotate the topology order so that the lowest index of `role` comes first; ring neighbours stay neighbours."""
    places = [place for place, task in enumerate(tasks) if task.role == role]
    first = min(places, key=lambda place: tasks[place].index, default=0)
    return (*tasks[first:], *tasks[:first])
