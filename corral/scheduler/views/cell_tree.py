"""Show the tree of cells with owners and users, in pages, so that no answer grows with the cluster."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from msgspec import structs

from corral.kernel.errors import NotFound
from corral.kernel.ids import JobId
from corral.model.queue_views import CellDevice, CellState, CellTree
from corral.model.records import rfc3339
from corral.scheduler.cells.ownership_registry import SEPARATOR
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.views.cell_lookup import EngineCells, Place, Sums
from corral.scheduler.views.cell_owners import OwnersOf, quota_owners
from corral.scheduler.views.occupancy import Occupancy

ROOT = "root"


class CellTreeView:
    """The cells of a cluster as it is now; build a new view after a change."""

    def __init__(self, cluster: Cluster, name_of: Callable[[JobId], str], owners_of: OwnersOf | None = None) -> None:
        """`owners_of` is the planner's; without it, cells are owned by the quotas of queues."""
        owners_of = owners_of or partial(quota_owners, cluster)
        self._cluster = cluster
        self._name_of = name_of
        self._occupancy = Occupancy(cluster)
        self._engines = {
            name: EngineCells(name, index, owners_of(name), self._occupancy) for name, index in cluster.engines.items()
        }

    def show(self, now: float, *, under: str = "", depth: int = 2, limit: int = 1000, after: int = 0) -> CellTree:
        """Return the cell with id `under` ("": the cluster) and `depth` levels of cells inside it.

        At most `limit` cells and devices are shown, wider cells first. `after` skips that many of its direct parts.

        Raises NotFound for an unknown cell.
        """
        engine, place = self._find(under)
        top = _Shown(engine, place, self._state(engine, place))
        left, total = limit, top.state.inside
        waiting = deque([(top, 0)])
        begin = after
        while waiting and left > 0:
            shown, level = waiting.popleft()
            if level >= depth:
                continue
            for kind, place_inside in islice(self._inside(shown), begin, begin + left):
                inner = _Shown(kind, place_inside, self._state(kind, place_inside))
                shown.cells.append(inner)
                waiting.append((inner, level + 1))
            left -= len(shown.cells)
            if not shown.cells and shown.engine is not None and shown.place is not None:
                shown.devices = list(islice(self._devices(shown.engine, shown.place), begin, begin + left))
                left -= len(shown.devices)
            begin = 0
        seen = after + len(top.cells) + len(top.devices)
        return CellTree(rfc3339(now), top.built(), str(seen) if depth and after < seen < total else None)

    def _find(self, under: str) -> tuple[EngineCells | None, Place | None]:
        if not under:
            return None, None
        name, _, rest = under.partition(SEPARATOR)
        engine = self._engines.get(name)
        place = engine.named(rest) if engine is not None else None
        if engine is None or place is None:
            raise NotFound("cell-not-found", f"There is no cell {under[:100]}; `corral cells` shows those there are.")
        return engine, place

    def _inside(self, shown: _Shown) -> Iterator[tuple[EngineCells, Place]]:
        if shown.engine is None or shown.place is None:
            yield from ((engine, engine.top) for engine in self._engines.values() if engine.nodes)
        else:
            yield from ((shown.engine, place) for place in shown.engine.inside(shown.place))

    def _state(self, engine: EngineCells | None, place: Place | None) -> CellState:
        if engine is not None and place is not None:
            return engine.state(place)
        parts = [each.state(each.top) for each in self._engines.values() if each.nodes]
        owners, queues = Counter[str](), Counter[str]()
        for part in parts:
            owners.update(part.owners)
            queues.update(part.queues)
        sums = Sums(*(sum(getattr(part, name) for part in parts) for name in Sums._fields))
        return CellState("", ROOT, "cluster", *sums, owners=dict(owners), queues=dict(queues), inside=len(parts))

    def _devices(self, engine: EngineCells, place: Place) -> Iterator[CellDevice]:
        for at, mask in engine.parts(place):
            for index in indexes(mask):
                yield engine.device(at, index, self._name_of)


class _Shown:
    """A cell while the answer is built."""

    def __init__(self, engine: EngineCells | None, place: Place | None, state: CellState) -> None:
        self.engine = engine
        self.place = place
        self.state = state
        self.cells: list[_Shown] = []
        self.devices: list[CellDevice] = []

    def built(self) -> CellState:
        if not self.cells and not self.devices:
            return self.state
        return structs.replace(self.state, cells=tuple(cell.built() for cell in self.cells), holds=tuple(self.devices))
