"""Why: who owns cells searches only among them: a view is an engine's index that sees some of its devices."""

from __future__ import annotations

from collections.abc import Hashable

from corral.scheduler.asks import Ask
from corral.scheduler.index import EngineIndex
from corral.scheduler.shapes import TaskShape
from corral.scheduler.slots import Slots
from corral.scheduler.takes import Take


class View(EngineIndex):
    """An engine seen through masks: `free` is its own, everything else is the engine's; what is taken is taken there."""

    def __init__(self, base: EngineIndex) -> None:
        self.base = base
        self.allowed = [0] * len(base.free)
        """By position the devices that are seen."""
        self.free = [0] * len(base.free)
        self.journal: list[int] = []
        self.changes = 0
        self.views: list[View] = []
        self.seen_by: list[list[View]] = []
        self.asks: dict[Hashable, Ask] = {}
        self._slots: dict[tuple[TaskShape, int, int], Slots] = {}
        self.share()

    def share(self) -> None:
        """Take over the columns of the engine; to be called when it has others."""
        base = self.base
        self.tree, self.unknown = base.tree, base.unknown
        self.usable, self.offered, self.held = base.usable, base.offered, base.held
        self.cpu, self.memory, self.shm, self.tasks = base.cpu, base.memory, base.shm, base.tasks
        self.more, self.shared, self.neighbours = base.more, base.shared, base.neighbours

    def allow(self, at: int, mask: int) -> None:
        """See just these devices of a node from now on."""
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
        """As of the engine, of the devices that are seen."""
        return super().shareable(at) & self.allowed[at]

    def take(self, take: Take) -> None:
        """Hold this on the engine."""
        self.base.take(take)

    def lift(self, take: Take) -> None:
        """Hold this no longer on the engine."""
        self.base.lift(take)

    def taken(self, mark: int) -> list[Take]:
        """What was taken on the engine since the mark."""
        return self.base.taken(mark)

    def mark(self) -> int:
        """A point of the engine to `undo` to."""
        return self.base.mark()

    def undo(self, mark: int) -> None:
        """Give back all that was taken on the engine since the mark."""
        self.base.undo(mark)
