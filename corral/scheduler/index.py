"""Why: what is free on one engine lives in flat columns, so that trying a gang is a few writes and undoing it is exact."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from corral.model.inventory import Inventory, Node
from corral.scheduler.asks import Ask
from corral.scheduler.shapes import TaskShape
from corral.scheduler.slots import Slots
from corral.scheduler.tree import Tree

_MOST_SLOTS = 512
"""So many shapes are followed at once; beyond it the one not used for longest is dropped."""


class Take(NamedTuple):
    """What some tasks hold on one node."""

    at: int
    devices: int
    tasks: int
    cpu: int
    memory: int
    shm: int


class EngineIndex:
    """The free resources of one engine by node position, with the room that every shape in use finds in them.

    `free` are masks of devices that can be given now; `held` those that are given, healthy or not.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        nodes = tree.nodes
        self.usable = bytearray(node.ready for node in nodes)
        self.offered = [_healthy(node) for node in nodes]
        self.free = [mask if node.ready else 0 for node, mask in zip(nodes, self.offered, strict=True)]
        self.held = [0] * len(nodes)
        self.cpu = [node.cpu_millis for node in nodes]
        self.memory = [node.memory_bytes for node in nodes]
        self.shm = [node.shm_bytes for node in nodes]
        self.tasks = [node.max_tasks for node in nodes]
        self.unknown = ""
        """Why the engine's cells are unknown; empty while it answers."""
        self.journal: list[int] = []
        """The positions that changed, for `Slots` to follow."""
        self.changes = 0
        """Counts all changes; the journal has the last ones."""
        self.asks: dict[Hashable, Ask] = {}
        """What requests mean here, by shape; a memory only."""
        self._trail: list[tuple[Take, bool]] = []
        self._slots: dict[tuple[TaskShape, int, int], Slots] = {}

    def slots(self, shape: TaskShape, size: int = 1, depth: int = 0) -> Slots:
        """The room for blocks of `size` tasks of a shape, up to date."""
        key = (shape, size, depth)
        found = self._slots.pop(key, None)
        if found is None:
            while len(self._slots) >= _MOST_SLOTS:
                del self._slots[next(iter(self._slots))]
            found = Slots(self, shape, size, depth)
        self._slots[key] = found
        return found.sync(self)

    def room_at(self, shape: TaskShape, at: int) -> int:
        """How many tasks of a shape fit on the node at a position, without bringing the other nodes up to date."""
        found = self._slots.get((shape, 1, 0))
        return (found or self.slots(shape)).measure(self, at)

    def take(self, take: Take) -> None:
        """Hold this, to be undone with `undo` or kept."""
        self._trail.append((take, True))
        self.add(take)

    def lift(self, take: Take) -> None:
        """Hold this no longer, to be undone with `undo`."""
        self._trail.append((take, False))
        self.remove(take)

    def taken(self, mark: int) -> list[Take]:
        """What was taken since the mark."""
        return [take for take, added in self._trail[mark:] if added]

    def mark(self) -> int:
        """A point to `undo` to."""
        return len(self._trail)

    def undo(self, mark: int) -> None:
        """Give back all that was taken since the mark."""
        while len(self._trail) > mark:
            take, added = self._trail.pop()
            if added:
                self.remove(take)
            else:
                self.add(take)

    def add(self, take: Take) -> None:
        """Hold this from now on."""
        at = take.at
        self.held[at] |= take.devices
        self.free[at] &= ~take.devices
        self.cpu[at] -= take.cpu
        self.memory[at] -= take.memory
        self.shm[at] -= take.shm
        self.tasks[at] -= take.tasks
        self._changed(at)

    def remove(self, take: Take) -> None:
        """Hold this no longer."""
        at = take.at
        self.held[at] &= ~take.devices
        if self.usable[at]:
            self.free[at] |= take.devices & self.offered[at]
        self.cpu[at] += take.cpu
        self.memory[at] += take.memory
        self.shm[at] += take.shm
        self.tasks[at] += take.tasks
        self._changed(at)

    def refresh(self, inventory: Inventory) -> bool:
        """Take over what is new about the health of the nodes; False when more than that changed."""
        tree = self.tree.refreshed(inventory)
        if tree is None:
            return False
        self.asks.clear()
        was_unknown, self.unknown, old, self.tree = self.unknown, "", self.tree, tree
        for at, node in enumerate(tree.nodes):
            if was_unknown or node != old.nodes[at]:
                self.usable[at] = node.ready
                self.offered[at] = _healthy(node)
                self.free[at] = self.offered[at] & ~self.held[at] if node.ready else 0
                self._changed(at)
        return True

    def set_unknown(self, reason: str) -> None:
        """Nothing here can be given until the engine's nodes are seen again."""
        self.unknown = reason
        self.usable = bytearray(len(self.usable))
        self.free = [0] * len(self.free)
        self.journal.clear()
        self.changes += 1

    def _changed(self, at: int) -> None:
        self.journal.append(at)
        self.changes += 1
        most = 4096 + 4 * len(self.free)
        if len(self.journal) > 2 * most:
            del self.journal[:most]

    def columns(self) -> tuple[object, ...]:
        """All that is true of the engine, for hashing and comparing."""
        return (
            bytes(self.usable), self.offered, self.free, self.held,
            self.cpu, self.memory, self.shm, self.tasks, self.unknown,
        )  # fmt: skip

    def consistent(self) -> bool:
        """Whether every kept room equals one counted anew."""
        return all(
            found.sync(self).same_as(Slots(self, shape, size, depth))
            for (shape, size, depth), found in self._slots.items()
        )

    def emptied(self, *, healed: bool) -> EngineIndex:
        """The same machines with nothing running on them; `healed`: and all of them healthy and known."""
        twin = EngineIndex(self.tree)
        if healed:
            twin.usable = bytearray(b"\1" * len(self.usable))
            twin.offered = [sum(1 << device.index for device in node.devices) for node in self.tree.nodes]
            twin.free = twin.offered[:]
        elif self.unknown:
            twin.set_unknown(self.unknown)
        return twin

    def copy(self) -> EngineIndex:
        """An independent copy; what never changes is shared."""
        twin = object.__new__(EngineIndex)
        twin.tree, twin.unknown, twin.changes = self.tree, self.unknown, self.changes
        twin.usable, twin.offered = self.usable[:], self.offered[:]
        twin.free, twin.held, twin.cpu = self.free[:], self.held[:], self.cpu[:]
        twin.memory, twin.shm, twin.tasks = self.memory[:], self.shm[:], self.tasks[:]
        twin.asks = dict(self.asks)
        twin.journal, twin._trail = self.journal[:], self._trail[:]
        twin._slots = {key: slots.copy() for key, slots in self._slots.items()}
        return twin


def _healthy(node: Node) -> int:
    return sum(1 << device.index for device in node.devices if device.healthy)
