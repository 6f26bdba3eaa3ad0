"""Why: a placement names devices, not counts, so that what the scheduler decided is exactly what an engine starts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE


class DeviceShare(msgspec.Struct, frozen=True):
    """The part of a device that a task was given, in millionths of its computing power and of its memory."""

    compute: int
    memory: int


class TaskPlacement(msgspec.Struct, frozen=True):
    """Where one task runs: a node (`engine/node`) and the device indexes on it that are its own."""

    role: str
    index: int
    node: str
    devices: tuple[int, ...] = ()
    order: int = 0
    """The task's place in its gang's topology order: neighbours in this order are near each other."""
    share: DeviceShare | None = None
    """The part that it has of its one device; None is the whole."""
    cells: tuple[str, ...] = ()
    """The cells (`engine|level:name`) of its queue that guarantee it these devices; a guest has none.

    Under the *hived* preset what HiveD's bind info says instead (`corral.scheduler.hived_binding`).
    """

    @property
    def key(self) -> TaskKey:
        """The task placed."""
        return TaskKey(self.role, self.index)

    @property
    def device_millis(self) -> int:
        """What it has, in thousandths of devices: of a part the larger of computing power and memory counts."""
        if self.share is None:
            return DEVICE * len(self.devices)
        return max(1, max(self.share.compute, self.share.memory) * DEVICE // 1_000_000)


class Placement(msgspec.Struct, frozen=True):
    """Where the tasks of one gang run, in topology order (neighbours in the list are near each other).

    `notes` says what was relaxed, such as a preferred level that could not be had.
    """

    tasks: tuple[TaskPlacement, ...]
    notes: tuple[str, ...] = ()
    demoted: tuple[JobId, ...] = ()
    """The gangs that lose their guarantee to this one and run on (HiveD's lazy preemption)."""


def in_rank_order(tasks: Sequence[TaskPlacement], role: str) -> tuple[TaskPlacement, ...]:
    """Topology order, turned round until the lowest index of `role` comes first: a ring stays a ring."""
    places = [place for place, task in enumerate(tasks) if task.role == role]
    first = min(places, key=lambda place: tasks[place].index, default=0)
    return (*tasks[first:], *tasks[:first])
