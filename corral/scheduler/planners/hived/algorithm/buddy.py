"""Map a virtual placement to physical devices, allocating physical cells for unbound owned cells.

Buddy allocation takes a cell from the lowest level that has a free one and splits it down, so that large cells stay
whole for their owners. It backtracks when a candidate is bad or not suggested. If only that stands in the way, it also
splits higher cells, as many as no owner needs (*safe relaxed* splitting). Source: HiveD. Unlike HiveD, this counts the
splittable cells at every level in between, so that one split cannot take a cell of a middle level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from corral.scheduler.planners.hived.algorithm.cell_ledger import Ledger
from corral.scheduler.planners.hived.algorithm.cells import OPPORTUNISTIC, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.free_list import FreeList

Placement = dict[VirtualCell, PhysicalCell]
"""The physical device for each virtual one."""


@dataclass(slots=True)
class _Branch:
    """An unbound virtual cell, and its children that must be mapped with it."""

    cell: VirtualCell
    below: list[_Branch] = field(default_factory=list)


def to_physical(leaves: Iterable[VirtualCell], ledger: Ledger, suggested: Set[str] | None) -> Placement | None:
    """Return a physical device for each virtual one; None if that would need a bad or non-suggested node."""
    placement: Placement = {}
    owned, inside = _branches(leaves, placement)
    search = _Search(ledger, suggested, placement)
    for branch in owned:
        if not search.allocate(branch):
            return None
    for branches in inside.values():
        parent = branches[0].cell.parent
        assert parent is not None and parent.physical is not None
        if search.map_all(branches, parent.physical.children) is None:
            return None
    return placement


def _branches(
    leaves: Iterable[VirtualCell], placement: Placement
) -> tuple[list[_Branch], dict[VirtualCell, list[_Branch]]]:
    """Return the trees of unbound cells: those of owned cells, and the others by the bound cell that contains them."""
    owned: list[_Branch] = []
    inside: dict[VirtualCell, list[_Branch]] = {}
    known: dict[VirtualCell, _Branch] = {}
    for leaf in leaves:
        if leaf.physical is not None:
            placement[leaf] = leaf.physical
            continue
        below: _Branch | None = None
        at: VirtualCell | None = leaf
        while at is not None and at.physical is None:
            branch = known.get(at)
            fresh = branch is None
            if branch is None:
                branch = known[at] = _Branch(at)
            if below is not None:
                branch.below.append(below)
            below = branch
            if not fresh:
                break
            if at.parent is None:
                owned.append(branch)
            elif at.parent.physical is not None:
                inside.setdefault(at.parent, []).append(branch)
            at = at.parent
    return owned, inside


@dataclass(slots=True)
class _Search:
    """One mapping attempt; it changes only `placement`, and copies a free list before taking the first cell from it."""

    ledger: Ledger
    suggested: Set[str] | None
    placement: Placement
    free: list[FreeList] = field(init=False)
    needed: list[int] = field(init=False)
    copied: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.free = list(self.ledger.free)
        self.needed = list(self.ledger.needed)

    def allocate(self, branch: _Branch) -> bool:
        """Find a physical cell for an owned cell and take it off the free lists."""
        level, top = branch.cell.level, self.ledger.chain.top
        start = next((at for at in range(level, top + 1) if self.free[at]), 0)
        if start == level:
            cell = self._among(branch, self.free[level])
        else:
            cell = self._below(branch, self.free[start], start) if start else None
        cell = cell or self._relaxed(branch)
        if cell is None:
            return False
        self.needed[level] -= 1
        self._take(cell)
        return True

    def _among(self, branch: _Branch, candidates: Iterable[PhysicalCell]) -> PhysicalCell | None:
        picked = self.map_all([branch], candidates)
        return picked[0] if picked else None

    def _below(self, branch: _Branch, cells: Iterable[PhysicalCell], level: int) -> PhysicalCell | None:
        """Search depth first for the first usable cell that contains a fitting cell of the wanted level."""
        for cell in self._usable(cells):
            if level - 1 == branch.cell.level:
                found = self._among(branch, cell.children)
            else:
                found = self._below(branch, cell.children, level - 1)
            if found is not None:
                return found
        return None

    def _relaxed(self, branch: _Branch) -> PhysicalCell | None:
        """Split cells of higher levels, as many as each level down to the wanted one can spare."""
        level = branch.cell.level
        spare = self.ledger.spare([len(cells) for cells in self.free], self.needed)
        for upto in range(level + 1, self.ledger.chain.top + 1):
            splittable = min(spare[level + 1 : upto + 1])
            pieces = self.free[upto].first(splittable)
            for _ in range(upto - level):
                pieces = [child for piece in pieces for child in piece.children]
            found = self._among(branch, pieces)
            if found is not None:
                return found
        return None

    def _take(self, cell: PhysicalCell) -> None:
        at = cell
        self._own(at.level)
        while at not in self.free[at.level]:
            assert at.parent is not None
            self._own(at.level + 1)
            for buddy in at.parent.children:
                self.free[at.level].add(buddy)
            self.free[at.level].remove(at)
            at = at.parent
        self.free[at.level].remove(at)

    def _own(self, level: int) -> None:
        if level not in self.copied:
            self.copied.add(level)
            self.free[level] = self.free[level].copy()

    def _usable(self, cells: Iterable[PhysicalCell]) -> Iterator[PhysicalCell]:
        """Yield the cells that may be bound, fewest opportunistic devices first.

        A cell is left out if it is bound, is a bad cell on one node, or has no suggested node. Cells without
        opportunistic devices come lazily: there can be thousands, and the first usually fits.
        """
        shared = []
        for cell in cells:
            if cell.virtual is not None or (not cell.healthy and len(cell.nodes) == 1):
                continue
            if self.suggested is not None and self.suggested.isdisjoint(cell.nodes):
                continue
            if OPPORTUNISTIC in cell.used:
                shared.append(cell)
            else:
                yield cell
        yield from sorted(shared, key=lambda cell: cell.used[OPPORTUNISTIC])

    def map_all(self, branches: list[_Branch], cells: Iterable[PhysicalCell]) -> list[PhysicalCell] | None:
        """Find a distinct cell for every branch, recursively.

        Returns the first choice in order, or None if there is none.
        """
        if len(branches) == 1:
            fitting = next((cell for cell in self._usable(cells) if self._fits(branches[0], cell)), None)
            return None if fitting is None else [fitting]
        candidates = list(self._usable(cells))
        if len(candidates) < len(branches):
            return None
        picked: list[PhysicalCell] = []
        for branch in branches:
            cell = next((each for each in candidates if each not in picked and self._fits(branch, each)), None)
            if cell is None:
                return self._first_matching(branches, candidates)
            picked.append(cell)
        return picked

    def _fits(self, branch: _Branch, cell: PhysicalCell) -> bool:
        """Return whether `branch` can be mapped to `cell`; if so, its devices are placed there."""
        if not branch.below:
            self.placement[branch.cell] = cell
            return True
        return self.map_all(branch.below, cell.children) is not None

    def _first_matching(self, branches: list[_Branch], candidates: list[PhysicalCell]) -> list[PhysicalCell] | None:
        """Return the first choice in order that fits all branches; augmenting paths keep it polynomial."""
        fits = [[at for at, cell in enumerate(candidates) if self._fits(branch, cell)] for branch in branches]
        fixed: list[int] = []
        if not _matchable(fits):
            return None
        for index in range(len(branches)):
            for at in fits[index]:
                if at not in fixed and _matchable([[each] for each in [*fixed, at]] + fits[index + 1 :]):
                    fixed.append(at)
                    break
        for branch, at in zip(branches, fixed, strict=True):
            self._fits(branch, candidates[at])
        return [candidates[at] for at in fixed]


def _matchable(fits: list[list[int]]) -> bool:
    """Return whether each row can get a distinct number out of those it lists (Kuhn's algorithm)."""
    taken: dict[int, int] = {}

    def augment(row: int, tried: set[int]) -> bool:
        for each in fits[row]:
            if each not in tried:
                tried.add(each)
                if each not in taken or augment(taken[each], tried):
                    taken[each] = row
                    return True
        return False

    return all(augment(row, set()) for row in range(len(fits)))
