"""Why: whatever a task can hold of a node is one value, so that holding, reserving and undoing are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corral.model.inventory import UNBOUNDED, Node
from corral.scheduler.shapes import Amounts, TaskShape

CLOSED = 1 << 32
"""So many tasks besides itself does a task hold whose job has its nodes for itself: then no other task fits."""
_ENDLESS = 1 << 60


class Part(NamedTuple):
    """A part of one device, in millionths of its computing power and of its memory."""

    device: int
    compute: int
    memory: int


class Neighbour(NamedTuple):
    """A job that others keep away from, or that keeps others away."""

    job: str
    tags: tuple[str, ...]
    averse: tuple[str, ...]
    """It shares no cell of `level` with jobs that carry one of these tags."""
    level: str


class Extra(NamedTuple):
    """What few tasks hold: other resources by name, parts of devices, and what matters to jobs beside them."""

    amounts: Amounts = ()
    shares: tuple[Part, ...] = ()
    near: tuple[Neighbour, ...] = ()


class Take(NamedTuple):
    """What some tasks hold on one node; `devices` are those they have whole."""

    at: int
    devices: int
    tasks: int
    cpu: int
    memory: int
    shm: int
    extra: Extra | None = None

    def plus(self, more: Take) -> Take:
        """Both together, on the node of this one."""
        return Take(
            self.at,
            self.devices | more.devices,
            self.tasks + more.tasks,
            self.cpu + more.cpu,
            self.memory + more.memory,
            self.shm + more.shm,
            _both(self.extra, more.extra),
        )


def nothing(at: int) -> Take:
    """Nothing held on a node."""
    return Take(at, 0, 0, 0, 0, 0)


def take_of(
    shape: TaskShape,
    at: int,
    devices: int,
    tasks: int,
    shares: tuple[Part, ...] = (),
    near: tuple[Neighbour, ...] = (),
    *,
    exclusive: bool = False,
) -> Take:
    """What `tasks` tasks of a shape hold on one node, with these devices between them."""
    extra = None
    if shape.more or shares or near:
        extra = Extra(tuple((name, tasks * amount) for name, amount in shape.more), shares, near)
    held = tasks * (1 + CLOSED) if exclusive else tasks
    return Take(at, devices, held, tasks * shape.cpu, tasks * shape.memory, tasks * shape.shm, extra)


def named_columns(nodes: Sequence[Node]) -> dict[str, list[int]]:
    """By name of a resource how much of it each node has; what nobody counts has no column."""
    names = sorted({name for node in nodes for name in node.resources})
    return {name: [node.resources.get(name, _ENDLESS if name in UNBOUNDED else 0) for node in nodes] for name in names}


def summed(amounts: Iterable[tuple[str, int]]) -> Amounts:
    """Each name once, in order."""
    total: dict[str, int] = {}
    for name, amount in amounts:
        total[name] = total.get(name, 0) + amount
    return tuple(sorted(total.items()))


def _both(first: Extra | None, second: Extra | None) -> Extra | None:
    if first is None or second is None:
        return first or second
    amounts = summed((*first.amounts, *second.amounts))
    return Extra(amounts, (*first.shares, *second.shares), (*first.near, *second.near))


class Neighbours:
    """By node position which neighbours are there, and how often each; empty where nobody minds anybody."""

    def __init__(self) -> None:
        self.at: dict[int, dict[Neighbour, int]] = {}
        self.averse = 0
        """How many of them keep others away."""

    def add(self, at: int, near: Neighbour) -> None:
        """One more."""
        here = self.at.setdefault(at, {})
        here[near] = here.get(near, 0) + 1
        self.averse += bool(near.averse)

    def remove(self, at: int, near: Neighbour) -> None:
        """One less."""
        here = self.at[at]
        here[near] -= 1
        if not here[near]:
            del here[near]
        if not here:
            del self.at[at]
        self.averse -= bool(near.averse)

    def listed(self) -> list[tuple[int, list[tuple[Neighbour, int]]]]:
        """All of it in one order."""
        return sorted((at, sorted(here.items())) for at, here in self.at.items())

    def copy(self) -> Neighbours:
        """An independent copy."""
        twin = Neighbours()
        twin.at, twin.averse = {at: dict(here) for at, here in self.at.items()}, self.averse
        return twin
