"""The owners of cells under HiveD, in the form that views show."""

from __future__ import annotations

from collections.abc import Iterator

from corral.kernel.ids import TaskKey
from corral.model.queue_views import CellShare
from corral.scheduler.cluster.cluster import Hold
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.planners.hived.algorithm.cells import PhysicalCell
from corral.scheduler.planners.hived.state_fold import Hived
from corral.scheduler.views.cell_allotment import Claim, Kind, Parts, Whole, allotted


class HivedOwners:
    """Owners by HiveD's bound virtual cells; a device belongs to its nearest bound cell."""

    def __init__(self, hived: Hived, index: EngineIndex) -> None:
        self._hived = hived
        self._forest = hived.algorithm.state.forest
        self.bound: dict[str, list[int]] = {name: [0] * len(index.free) for name in self._forest.tenants}
        self.pinned: dict[int, int] = {}
        for (node, device), leaf in self._forest.devices.items():
            at = index.tree.position.get(f"{hived.engine}/{node}")
            owner = _owner(leaf)
            if at is None or not owner:
                continue
            self.bound[owner][at] |= 1 << device
            if any(cell.pinned for cell in _upwards(leaf)):
                self.pinned[at] = self.pinned.get(at, 0) | 1 << device

    def guaranteed(self, gang: RunningGang, task: TaskKey, hold: Hold) -> bool:
        """Return whether all of its devices are bound."""
        node = hold.node.removeprefix(f"{self._hived.engine}/")
        leaves = (self._forest.devices.get((node, device)) for device in indexes(hold.devices))
        return all(leaf is not None and leaf.virtual is not None for leaf in leaves)

    def is_whole(self, depth: int, number: int, at: int) -> bool:
        """Return False, because HiveD's levels are not those of the tree."""
        return False

    def shares(self) -> Iterator[tuple[str, CellShare]]:
        """Yield owned cells by chain and level, widest first; pinned cells count among their level's."""
        return allotted(self._kinds())

    def _kinds(self) -> Iterator[Kind]:
        for name, chain in self._forest.chains.items():
            for kind in reversed(chain.levels[1:]):
                claims = []
                for owner, tenant in sorted(self._forest.tenants.items()):
                    roots = tenant.owned[name][kind.number] if name in tenant.owned else []
                    roots = roots + [root for root in tenant.pinned.values() if root.kind == kind]
                    if roots:
                        claims.append(Claim(owner, len(roots), sum(root.physical is None for root in roots)))
                whole = (
                    Whole(cell.busy, _parts(cell), 0 if cell.healthy else kind.leaves)
                    for cell in chain.cells[kind.number]
                    if not _owner(cell) and not _split(cell)
                )
                yield Kind(CellShare(self._hived.engine, kind.type, chain.leaf_type, kind.leaves, 0), claims, whole)


def _parts(cell: PhysicalCell) -> Parts:
    found: dict[int | str, int] = {}
    for leaf in cell.leaves():
        found[leaf.nodes[0]] = found.get(leaf.nodes[0], 0) | 1 << leaf.device
    return tuple(found.items())


def _upwards(cell: PhysicalCell) -> Iterator[PhysicalCell]:
    at: PhysicalCell | None = cell
    while at is not None:
        yield at
        at = at.parent


def _owner(cell: PhysicalCell) -> str:
    """Return the virtual cluster that a cell, or its nearest bound ancestor, is bound to; "" for none."""
    return next((each.virtual.vc for each in _upwards(cell) if each.virtual is not None), "")


def _split(cell: PhysicalCell) -> bool:
    """Return whether any part of a cell is bound."""
    return any(child.virtual is not None or _split(child) for child in cell.children)
