"""The free resources of one engine in flat columns, so that trying a gang and undoing it are a few exact writes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from corral.model.inventory import Inventory, Node
from corral.scheduler.cluster.allocation import Allocation, ExtraAllocation, Neighbours, named_columns
from corral.scheduler.cluster.device_fraction import Shared
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.node_room import NodeStates
from corral.scheduler.cluster.ranked_slots import Placing, slots_for
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.cluster.topology_tree import Tree
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.shape import TaskShape

if TYPE_CHECKING:
    from corral.scheduler.cluster.masked_index import MaskedIndex

_MOST_SLOTS = 512
"""The most shapes followed at once; beyond it the least recently used one is dropped."""


class EngineIndex:
    """The free resources of one engine by node position, and the room that each shape in use finds in them.

    `free` are masks of devices that can be given whole now. `held` are masks of devices in use, healthy or not, also
    those used only in part.
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
        """The remaining tasks that each node takes; far below 0 where a job has the node to itself."""
        self.more = named_columns(nodes)
        """The remaining amount of every other resource, by name."""
        self.shared = Shared()
        """The devices that are given in parts."""
        self.neighbours = Neighbours()
        """The jobs that have anti-affinity rules or tags."""
        self.unknown = ""
        """Why the engine's cells are unknown; empty while it answers."""
        self.journal: list[int] = []
        """The node positions that changed, for `Slots` to follow."""
        self.changes = 0
        """Counts all changes but those that were undone; the journal holds the most recent ones.

        `undo` takes it back: who keeps a count from within a trial must `look_again`.
        """
        self.undone = 0
        """Counts what was undone without a trace in the journal; with `changes` it tells states apart."""
        self.engine_requests: dict[Hashable, EngineRequest] = {}
        """Requests translated for this engine, by shape; a cache."""
        self.views: list[MaskedIndex] = []
        """The views that owners of cells search."""
        self.seen_by: list[list[MaskedIndex]] = [[] for _ in nodes]
        """For each node position, the views that see any of its devices; they follow every change there."""
        self.trail: list[tuple[Allocation, bool]] = []
        """What trials hold (True) and have released (False), in order."""
        self.followers: dict[Slots, None] = {}
        """The slots that have followed a change of the trail."""
        self._interrupted = False
        """Whether the journal has other entries between those of the trail."""
        self.placing: Placing | None = None
        """Which node with room comes first, if not the tightest."""
        self._slots: dict[tuple[TaskShape, int, int], Slots] = {}
        self._ranked: dict[tuple[TaskShape, int, int], Slots] = {}
        """The slots in the order of the *place* part that was last in force."""
        self._ranked_by: Placing | None = None
        self.states: NodeStates | None = NodeStates()
        """The states of nodes by which ranks are kept; a view of the engine has none."""
        self._recent: Slots | None = None
        """The last answer of `slots`; the same shape is mostly asked for again."""

    @property
    def state(self) -> tuple[int, int]:
        """Return what is another one after each change, and after changes that were undone."""
        return self.changes, self.undone

    def slots(self, shape: TaskShape, size: int = 1, depth: int = 0) -> Slots:
        """Return the up-to-date room for blocks of `size` tasks of a shape."""
        recent = self._recent
        if recent is not None and recent.shape is shape and recent.size == size and recent.depth == depth:
            return recent.sync(self)
        key, known = (shape, size, depth), self._slots if self.placing is None else self._ranked
        found = known.pop(key, None)
        if found is None:
            while len(known) >= _MOST_SLOTS:
                del known[next(iter(known))]
            found = slots_for(self, shape, size, depth, self.placing)
            if self.trail:
                self.followers[found] = None
        found = found.sync(self) if self.placing is None else found.ranked_by(self, self.placing)
        known[key] = self._recent = found
        return found

    def place_by(self, placing: Placing | None) -> None:
        """Let nodes with room be chosen by a policy's part from now on, or the tightest first with None.

        The slots of the part stay until another one comes. When it has prepared something else, each ranks its nodes
        again when it is next asked.
        """
        if placing is not None:
            before = self._ranked_by
            if before is None or placing.part != before.part:
                self._ranked = {}
            if placing != before:
                self._ranked_by = placing
            placing = self._ranked_by
        self.placing, self._recent = placing, None
        for view in self.views:
            view.place_by(placing)

    def room_at(self, shape: TaskShape, at: int) -> int:
        """Return how many tasks of a shape fit on one node, without updating the other nodes."""
        found = self._slots.get((shape, 1, 0))
        return (found or self.slots(shape)).measure(self, at)

    def take(self, allocation: Allocation) -> None:
        """Hold an allocation; it can be undone with `undo`."""
        self.trail.append((allocation, True))
        self._hold(allocation)
        self._changed(allocation.at)

    def lift(self, allocation: Allocation) -> None:
        """Release an allocation; it can be undone with `undo`."""
        self.trail.append((allocation, False))
        self._release(allocation)
        self._changed(allocation.at)

    def taken(self, mark: int) -> list[Allocation]:
        """Return the allocations held since the mark."""
        return [allocation for allocation, added in self.trail[mark:] if added]

    def mark(self) -> int:
        """Return a point to `undo` to."""
        return len(self.trail)

    def undo(self, mark: int) -> None:
        """Undo every `take` and `lift` since the mark.

        The journal forgets them, too: of all slots only those that followed one of them look at its node again.
        """
        trail = self.trail
        count = len(trail) - mark
        if count <= 0:
            return
        nodes = list[int]()
        while len(trail) > mark:
            allocation, added = trail.pop()
            nodes.append(allocation.at)
            if added:
                self._release(allocation)
            else:
                self._hold(allocation)
        if self._interrupted or self.views or self.placing is not None or count > len(self.journal):
            for at in nodes:
                self._changed(at)
            self._interrupted = bool(trail)
        else:
            self.changes, self.undone = self.changes - count, self.undone + 1
            del self.journal[-count:]
            for slots in self.followers:
                slots.look_again(nodes, self.changes)
            if self.states is not None:
                self.states.look_again(nodes, self.changes)
        if not trail:
            self.followers.clear()

    def add(self, allocation: Allocation) -> None:
        """Hold an allocation, without a record for `undo`."""
        self._interrupted = bool(self.trail)
        self._hold(allocation)
        self._changed(allocation.at)

    def remove(self, allocation: Allocation) -> None:
        """Release an allocation, without a record for `undo`."""
        self._interrupted = bool(self.trail)
        self._release(allocation)
        self._changed(allocation.at)

    def _hold(self, allocation: Allocation) -> None:
        at = allocation.at
        self.held[at] |= allocation.devices
        self.free[at] &= ~allocation.devices
        self.cpu[at] -= allocation.cpu
        self.memory[at] -= allocation.memory
        self.shm[at] -= allocation.shm
        self.tasks[at] -= allocation.tasks
        if allocation.extra is not None:
            self._add_extra(at, allocation.extra)
        if at in self.tree.slice_conflicts:
            self.free[at] = self._free(at)

    def _release(self, allocation: Allocation) -> None:
        at = allocation.at
        self.held[at] &= ~allocation.devices
        if self.usable[at]:
            self.free[at] |= allocation.devices & self.offered[at]
        self.cpu[at] += allocation.cpu
        self.memory[at] += allocation.memory
        self.shm[at] += allocation.shm
        self.tasks[at] += allocation.tasks
        if allocation.extra is not None:
            self._remove_extra(at, allocation.extra)
        if at in self.tree.slice_conflicts:
            self.free[at] = self._free(at)

    def may_add(self, allocation: Allocation) -> bool:
        """Return whether the allocation's whole devices are unused and its device parts have room."""
        at = allocation.at
        if self.held[at] & allocation.devices:
            return False
        shared = self.shared.at.get(at, {})
        return allocation.extra is None or all(
            self.shared.room(at, part) and (part.device in shared or not self.held[at] >> part.device & 1)
            for part in allocation.extra.shares
        )

    def short(
        self, at: int, wanted: ExtraAllocation | None, returned: ExtraAllocation | None
    ) -> ExtraAllocation | None:
        """Return the free part of the extra resources wanted on a node, less those returned there."""
        if wanted is None:
            return None
        back = dict(returned.amounts) if returned else {}
        amounts = tuple(
            (name, max(0, min(self.more[name][at], amount - back.get(name, 0))))
            for name, amount in wanted.amounts
            if name in self.more
        )
        mark, parts = self.mark(), []
        for part in wanted.shares:
            allocation = Allocation(at, 0, 0, 0, 0, 0, ExtraAllocation(shares=(part,)))
            if self.usable[at] and self.shareable(at) >> part.device & 1 and self.may_add(allocation):
                self.take(allocation)
                parts.append(part)
        self.undo(mark)
        return ExtraAllocation(amounts, tuple(parts))

    def _add_extra(self, at: int, extra: ExtraAllocation) -> None:
        for name, amount in extra.amounts:
            if name in self.more:
                self.more[name][at] -= amount
        for near in extra.near:
            self.neighbours.add(at, near)
        for part in extra.shares:
            self.shared.add(at, part)
            self.held[at] |= 1 << part.device
            self.free[at] &= ~(1 << part.device)

    def _remove_extra(self, at: int, extra: ExtraAllocation) -> None:
        for name, amount in extra.amounts:
            if name in self.more:
                self.more[name][at] += amount
        for near in extra.near:
            self.neighbours.remove(at, near)
        for part in extra.shares:
            if self.shared.remove(at, part):
                self.held[at] &= ~(1 << part.device)
        self.free[at] = self._free(at)

    def _free(self, at: int) -> int:
        """Return the healthy devices of a node that are unused, as are their slices and their parent device."""
        if not self.usable[at]:
            return 0
        free = self.offered[at] & ~self.held[at]
        conflicts = self.tree.slice_conflicts.get(at)
        if conflicts:
            for device in indexes(self.held[at]):
                free &= ~conflicts.get(device, 0)
        return free

    def shareable(self, at: int) -> int:
        """Return the devices of a node that may be given in parts, as far as they have room."""
        return self.free[at] | (self.offered[at] & self.held[at])

    def refresh(self, inventory: Inventory) -> bool:
        """Apply health changes of the nodes; False if more than their health changed."""
        tree = self.tree.refreshed(inventory)
        if tree is None:
            return False
        self.engine_requests.clear()
        was_unknown, self.unknown, old, self.tree = self.unknown, "", self.tree, tree
        for view in self.views:
            view.share()
        for at, node in enumerate(tree.nodes):
            if was_unknown or node != old.nodes[at]:
                self.usable[at] = node.ready
                self.offered[at] = _healthy(node)
                self.free[at] = self._free(at)
                self._changed(at)
        return True

    def forget_views(self) -> None:
        """Detach all views."""
        self.views = []
        self.seen_by = [[] for _ in self.free]

    def set_unknown(self, reason: str) -> None:
        """Give out nothing until the engine's nodes are seen again."""
        self.unknown = reason
        self.usable = bytearray(len(self.usable))
        self.free = [0] * len(self.free)
        self.journal.clear()
        self.changes += 1
        for view in self.views:
            view.set_unknown(reason)
            view.share()

    def _changed(self, at: int) -> None:
        free = self.free[at]
        for view in self.seen_by[at]:
            view.free[at] = free & view.allowed[at]
            view.note(at)
        self.note(at)

    def note(self, at: int) -> None:
        """Record a changed node for `Slots` to update."""
        journal = self.journal
        journal.append(at)
        self.changes += 1
        if len(journal) > 8192 and len(journal) > 2 * (most := 4096 + 4 * len(self.free)):
            del journal[:most]

    def columns(self) -> tuple[object, ...]:
        """Return the whole state of the engine, for hashing and comparing."""
        return (
            bytes(self.usable), self.offered, self.free, self.held,
            self.cpu, self.memory, self.shm, self.tasks, self.unknown,
            sorted(self.more.items()), self.shared.listed(), self.neighbours.listed(),
        )  # fmt: skip

    def consistent(self) -> bool:
        """Return whether every cached room, and state of a node, equals a recount."""
        return (self.states is None or self.states.agrees(self)) and all(
            (found.ranked_by(self, placing) if placing else found.sync(self)).same_as(
                slots_for(self, shape, size, depth, placing)
            )
            for placing, known in ((None, self._slots), (self._ranked_by, self._ranked))
            for (shape, size, depth), found in known.items()
        )

    def emptied(self, *, healed: bool) -> EngineIndex:
        """Return the same machines with nothing running; with `healed`, all of them are healthy and known."""
        twin = EngineIndex(self.tree)
        if healed:
            twin.usable = bytearray(b"\1" * len(self.usable))
            twin.offered = [sum(1 << device.index for device in node.devices) for node in self.tree.nodes]
            twin.free = twin.offered[:]
        elif self.unknown:
            twin.set_unknown(self.unknown)
        return twin

    def copy(self) -> EngineIndex:
        """Return an independent copy that shares immutable parts."""
        twin = object.__new__(EngineIndex)
        twin.tree, twin.unknown, twin.changes = self.tree, self.unknown, self.changes
        twin.usable, twin.offered = self.usable[:], self.offered[:]
        twin.free, twin.held, twin.cpu = self.free[:], self.held[:], self.cpu[:]
        twin.memory, twin.shm, twin.tasks = self.memory[:], self.shm[:], self.tasks[:]
        twin.more = {name: column[:] for name, column in self.more.items()}
        twin.shared, twin.neighbours = self.shared.copy(), self.neighbours.copy()
        twin.views, twin.seen_by = [], [[] for _ in self.free]
        twin.engine_requests = dict(self.engine_requests)
        twin.journal, twin.trail, twin.undone = self.journal[:], self.trail[:], self.undone
        twin.followers, twin._interrupted = {}, bool(self.trail)
        twin._slots, twin._recent = {key: slots.copy() for key, slots in self._slots.items()}, None
        twin._ranked = {key: slots.copy() for key, slots in self._ranked.items()}
        twin.placing, twin._ranked_by = self.placing, self._ranked_by
        twin.states = None if self.states is None else self.states.copy()
        return twin


def _healthy(node: Node) -> int:
    """Return the devices that may be given; slices of an unhealthy device may not."""
    sick = {device.index for device in node.devices if not device.healthy}
    if not sick:
        return sum(1 << device.index for device in node.devices)
    return sum(1 << device.index for device in node.devices if device.index not in sick and device.parent not in sick)
