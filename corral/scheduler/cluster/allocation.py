"""The resources held on a node, as one value that holding, reserving and undoing share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corral.kernel.amounts import UNBOUNDED
from corral.model.inventory import Node
from corral.model.requests import GangRequest, NodeSharing, RoleRequest
from corral.scheduler.placement.shape import Amounts, TaskShape, task_shape

CLOSED = 1 << 32
"""Additional task slots that an exclusive task occupies, so that no other task fits on its node."""
_ENDLESS = 1 << 60


class DeviceFraction(NamedTuple):
    """A part of one device, in millionths of its compute and of its memory."""

    device: int
    compute: int
    memory: int


class Neighbour(NamedTuple):
    """A job with tags or anti-affinity rules on a node."""

    job: str
    tags: tuple[str, ...]
    anti_affinity: tuple[str, ...]
    """It shares no cell of `level` with jobs that carry one of these tags."""
    level: str


class ExtraAllocation(NamedTuple):
    """The rarer holdings: other resources by name, device parts, and tags or anti-affinity rules."""

    amounts: Amounts = ()
    shares: tuple[DeviceFraction, ...] = ()
    near: tuple[Neighbour, ...] = ()


class Allocation(NamedTuple):
    """The resources that some tasks hold on one node; `devices` are those held whole."""

    at: int
    devices: int
    tasks: int
    cpu: int
    memory: int
    shm: int
    extra: ExtraAllocation | None = None

    def plus(self, more: Allocation) -> Allocation:
        """Return the sum of both, on the node of this one."""
        return Allocation(
            self.at,
            self.devices | more.devices,
            self.tasks + more.tasks,
            self.cpu + more.cpu,
            self.memory + more.memory,
            self.shm + more.shm,
            _both(self.extra, more.extra),
        )


def nothing(at: int) -> Allocation:
    """Return an empty allocation on a node."""
    return Allocation(at, 0, 0, 0, 0, 0)


def allocation_of(
    shape: TaskShape,
    at: int,
    devices: int,
    tasks: int,
    shares: tuple[DeviceFraction, ...] = (),
    near: tuple[Neighbour, ...] = (),
    *,
    exclusive: bool = False,
) -> Allocation:
    """Return the allocation of `tasks` tasks of a shape on one node, with these devices between them."""
    extra = None
    if shape.more or shares or near:
        extra = ExtraAllocation(tuple((name, tasks * amount) for name, amount in shape.more), shares, near)
    held = tasks * (1 + CLOSED) if exclusive else tasks
    return Allocation(at, devices, held, tasks * shape.cpu, tasks * shape.memory, tasks * shape.shm, extra)


def task_allocation(request: GangRequest, role: RoleRequest) -> Allocation:
    """Return what one task of a role holds besides its devices; it is on no node yet."""
    sharing, tags = request.company or NodeSharing(), request.tags
    near: tuple[Neighbour, ...] = ()
    if tags or sharing.averse:
        near = (Neighbour(request.job, tags, sharing.averse, sharing.averse_level if sharing.averse else ""),)
    return allocation_of(task_shape(role), -1, 0, 1, near=near, exclusive=sharing.exclusive)


def named_columns(nodes: Sequence[Node]) -> dict[str, list[int]]:
    """Return by resource name how much of it each node has; a resource that no node counts has no column."""
    names = sorted({name for node in nodes for name in node.resources})
    return {name: [node.resources.get(name, _ENDLESS if name in UNBOUNDED else 0) for node in nodes] for name in names}


def summed(amounts: Iterable[tuple[str, int]]) -> Amounts:
    """Return the sum for each name, sorted by name."""
    total: dict[str, int] = {}
    for name, amount in amounts:
        total[name] = total.get(name, 0) + amount
    return tuple(sorted(total.items()))


def _both(first: ExtraAllocation | None, second: ExtraAllocation | None) -> ExtraAllocation | None:
    if first is None or second is None:
        return first or second
    amounts = summed((*first.amounts, *second.amounts))
    return ExtraAllocation(amounts, (*first.shares, *second.shares), (*first.near, *second.near))


class Neighbours:
    """The jobs with tags or anti-affinity rules by node position, with the number of their tasks there."""

    def __init__(self) -> None:
        self.at: dict[int, dict[Neighbour, int]] = {}
        self.anti_affinity = 0
        """How many of them have anti-affinity rules."""

    def add(self, at: int, near: Neighbour) -> None:
        """Add a neighbour."""
        here = self.at.setdefault(at, {})
        here[near] = here.get(near, 0) + 1
        self.anti_affinity += bool(near.anti_affinity)

    def remove(self, at: int, near: Neighbour) -> None:
        """Remove a neighbour."""
        here = self.at[at]
        here[near] -= 1
        if not here[near]:
            del here[near]
        if not here:
            del self.at[at]
        self.anti_affinity -= bool(near.anti_affinity)

    def listed(self) -> list[tuple[int, list[tuple[Neighbour, int]]]]:
        """Return the whole state in a fixed order."""
        return sorted((at, sorted(here.items())) for at, here in self.at.items())

    def copy(self) -> Neighbours:
        """Return an independent copy."""
        twin = Neighbours()
        twin.at, twin.anti_affinity = {at: dict(here) for at, here in self.at.items()}, self.anti_affinity
        return twin
