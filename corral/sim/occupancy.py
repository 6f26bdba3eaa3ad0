"""Which devices each run of a job held, from when to when: for a Gantt chart and for fragmentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

import msgspec

from corral.model.inventory import Inventory
from corral.model.placement import TaskPlacement
from corral.sim.curves import Span

MOST_STAYS: Final = 200_000
"""The most stays that are kept: some 20 MB of a written result."""


class Stay(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Devices of one node that a run of a job held, or that were lost with their node."""

    begin: float
    end: float
    """Both in seconds after the beginning of the trace."""
    job: str
    """Its name; "" where the node had failed."""
    user: str
    node: int
    """Counted from 0 in `Occupancy.nodes`."""
    devices: tuple[int, ...]
    """Counted from 0 on their node, rising."""


class Occupancy(msgspec.Struct, frozen=True):
    """All stays until a time."""

    nodes: tuple[tuple[str, int], ...]
    """The name of each node and the number of its devices."""
    stays: tuple[Stay, ...]
    """By their begin; none begins after `until`."""
    until: float | None = None
    """Nothing is known after this second, because there were too many stays; None: all is known."""

    def is_sound(self, latest: float) -> bool:
        """Return whether nodes, devices and times are such as a simulation can have written."""
        return all(
            0 <= stay.begin <= stay.end <= latest
            and 0 <= stay.node < len(self.nodes)
            and list(stay.devices) == sorted(set(stay.devices))
            and all(0 <= device < self.nodes[stay.node][1] for device in stay.devices)
            for stay in self.stays
        )


class Recorder:
    """Notes stays while a simulation is played; times in seconds after the beginning."""

    def __init__(self, inventory: Inventory, most: int = MOST_STAYS) -> None:
        self._most = most
        self._begun: dict[str, list[tuple[float, str, str, int, tuple[int, ...]]]] = {}
        """The stays of each job, or lost node, that have not ended."""
        self._stays: list[Stay] = []
        self._count = 0
        self._until: float | None = None
        self._nodes = tuple((node.name.partition("/")[2], len(node.devices)) for node in inventory.nodes)
        self._number = {node.name: number for number, node in enumerate(inventory.nodes)}
        self._ready = [True] * len(self._nodes)

    def begin(self, key: str, at: float, job: str, user: str, placements: Iterable[TaskPlacement]) -> None:
        """Note that a run of the job `key` begins; `job` is its name."""
        held: dict[int, list[int]] = defaultdict(list)
        for placement in placements:
            held[self._number[placement.node]] += placement.devices
        self._add(key, at, [(at, job, user, node, tuple(sorted(devices))) for node, devices in held.items() if devices])

    def end(self, key: str, at: float) -> None:
        """Note that what `key` holds is free again."""
        for begin, job, user, node, devices in self._begun.pop(key, ()):
            self._stays.append(Stay(begin, at, job, user, node, devices))

    def seen(self, inventory: Inventory, at: float) -> None:
        """Note which nodes have failed or are back."""
        for number, node in enumerate(inventory.nodes):
            if node.ready and not self._ready[number]:
                self.end(node.name, at)
            elif self._ready[number] and not node.ready:
                self._add(node.name, at, [(at, "", "", number, tuple(range(len(node.devices))))])
            self._ready[number] = node.ready

    def occupancy(self, now: float) -> Occupancy:
        """Return the stays until now."""
        still = [Stay(stay[0], max(now, stay[0]), *stay[1:]) for stays in self._begun.values() for stay in stays]
        known = inf if self._until is None else self._until
        return Occupancy(self._nodes, tuple(sorted(_cut([*self._stays, *still], known), key=_order)), self._until)

    def _add(self, key: str, at: float, stays: list[tuple[float, str, str, int, tuple[int, ...]]]) -> None:
        self._count += len(stays)
        if self._count > self._most:
            self._until = at if self._until is None else min(self._until, at)
        else:
            self._begun[key] = stays


def fragments(occupancy: Occupancy) -> list[Span]:
    """Return how many devices were free on nodes of which other devices were in use, over time; O(stays log stays)."""
    changes: list[tuple[float, int, int, int]] = []
    for stay in occupancy.stays:
        lost = not stay.job
        changes.append((stay.begin, stay.node, 0 if lost else len(stay.devices), 1 if lost else 0))
        changes.append((stay.end, stay.node, 0 if lost else -len(stay.devices), -1 if lost else 0))
    used, failed = [0] * len(occupancy.nodes), [0] * len(occupancy.nodes)
    spans: list[Span] = []
    total, since = 0, 0.0
    for at, node, devices, losses in sorted(changes):
        if at > since:
            if total:
                spans.append((since, at, float(total)))
            since = at
        size = occupancy.nodes[node][1]
        total -= _fragment(size, used[node], failed[node])
        used[node] += devices
        failed[node] += losses
        total += _fragment(size, used[node], failed[node])
    return spans


def _fragment(size: int, used: int, failed: int) -> int:
    """Return the free devices of a node that is partly in use."""
    return max(0, size - used) if used and not failed else 0


def _cut(stays: Sequence[Stay], until: float) -> list[Stay]:
    return [
        stay if stay.end <= until else msgspec.structs.replace(stay, end=until) for stay in stays if stay.begin <= until
    ]


def _order(stay: Stay) -> tuple[float, int, tuple[int, ...]]:
    return stay.begin, stay.node, stay.devices
