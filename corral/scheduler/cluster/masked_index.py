"""A view of an engine's index that shows only some of its devices, so that owners search only their cells."""

from __future__ import annotations

from collections.abc import Hashable

from corral.scheduler.cluster.allocation import Allocation
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.placement.engine_request import EngineRequest
from corral.scheduler.placement.shape import TaskShape


class MaskedIndex(EngineIndex):
    """An engine seen through device masks: `free` is its own, all other state is the engine's.

    An allocation on the view is an allocation on the engine.
    """

    def __init__(self, base: EngineIndex) -> None:
        self.base = base
        self.allowed = [0] * len(base.free)
        """By node position, the visible devices."""
        self.free = [0] * len(base.free)
        self.journal: list[int] = []
        self.changes = self.undone = 0
        self.trail: list[tuple[Allocation, bool]] = []  # changes are the engine's
        self.followers: dict[Slots, None] = {}
        self.views: list[MaskedIndex] = []
        self.seen_by: list[list[MaskedIndex]] = []
        self.engine_requests: dict[Hashable, EngineRequest] = {}
        self.placing = base.placing
        self._slots: dict[tuple[TaskShape, int, int], Slots] = {}
        self._ranked: dict[tuple[TaskShape, int, int], Slots] = {}
        self._ranked_by = base.placing
        self.states = None  # processors of a node of which nothing is visible change without a note
        self._recent: Slots | None = None
        self.share()

    def share(self) -> None:
        """Adopt the engine's columns; call it when the engine has replaced them."""
        base = self.base
        self.tree, self.unknown = base.tree, base.unknown
        self.usable, self.offered, self.held = base.usable, base.offered, base.held
        self.cpu, self.memory, self.shm, self.tasks = base.cpu, base.memory, base.shm, base.tasks
        self.more, self.shared, self.neighbours = base.more, base.shared, base.neighbours

    def allow(self, at: int, mask: int) -> None:
        """Show exactly these devices of a node from now on."""
        was = self.allowed[at]
        if was != mask:
            self.allowed[at] = mask
            if not was:
                self.base.seen_by[at].append(self)
            elif not mask:
                self.base.seen_by[at].remove(self)
            self.free[at] = self.base.free[at] & mask
            self.note(at)

    def shareable(self, at: int) -> int:
        """Return the visible devices of a node that may be given in parts."""
        return super().shareable(at) & self.allowed[at]

    def take(self, allocation: Allocation) -> None:
        """Hold an allocation on the engine."""
        self.base.take(allocation)

    def lift(self, allocation: Allocation) -> None:
        """Release an allocation on the engine."""
        self.base.lift(allocation)

    def taken(self, mark: int) -> list[Allocation]:
        """Return the allocations held on the engine since the mark."""
        return self.base.taken(mark)

    def mark(self) -> int:
        """Return a point of the engine to `undo` to."""
        return self.base.mark()

    def undo(self, mark: int) -> None:
        """Undo every `take` and `lift` on the engine since the mark."""
        self.base.undo(mark)
