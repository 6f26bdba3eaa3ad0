"""Track the owned cells of all engines: the owner of each cell, and the gangs guaranteed in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from corral.kernel.ids import JobId, TaskKey
from corral.model.queues import CellQuota, QueueSpec
from corral.scheduler.cells.cell_ownership import Cell, CellOwnership
from corral.scheduler.cells.cell_type import Structure
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.masked_index import MaskedIndex
from corral.scheduler.cluster.running_gang import RunningGang, RunningGangs

_PIN = TaskKey("pinned", 0)
SEPARATOR = "|"
"""Separates the engine and the cell in the name of a claimed cell."""


class Shortfall(NamedTuple):
    """Owners are owed more cells of a level than are left."""

    engine: str
    level: str
    owed: int
    left: int


class Ownership:
    """The owned cells of every engine; without quotas there are none, and no gang is a guest."""

    def __init__(self, specs: Mapping[str, QueueSpec], engines: Mapping[str, EngineIndex], gangs: RunningGangs) -> None:
        self._specs = specs
        self._found: dict[str, tuple[CellOwnership, Cell]] = {}
        self.cells: dict[str, CellOwnership] = {}
        """By engine; only engines with owned cells."""
        owners = [spec for spec in specs.values() if spec.cells or spec.pinned_cells]
        if not owners:
            return
        quotas = self._divided(owners, engines)
        for name, index in engines.items():
            if quotas.get(name):
                cells = self.cells[name] = CellOwnership(index, quotas[name])
                index.views = list(cells.views)
                self._pin(name, cells, owners)
        for gang in sorted(gangs.by_job.values(), key=lambda gang: (-gang.priority, gang.placed_at, gang.job)):
            for task, names in sorted(gang.cells.items()):
                if not self.hold(gang, task, names):
                    del gang.cells[task]

    def _divided(
        self, owners: Iterable[QueueSpec], engines: Mapping[str, EngineIndex]
    ) -> dict[str, dict[str, list[CellQuota]]]:
        """Return the quotas by engine and owner; each quota goes to the engine with the most cells of its type."""
        out: dict[str, dict[str, list[CellQuota]]] = {}
        structures = {name: Structure(index.tree) for name, index in engines.items()}
        for spec in owners:
            for quota in spec.cells:
                counts = {}
                for name, structure in structures.items():
                    kind = structure.find(quota.level, quota.model, quota.chain)
                    if kind is not None:
                        counts[name] = len(structure.cells(kind))
                if counts:
                    engine = max(sorted(counts), key=counts.__getitem__)
                    out.setdefault(engine, {}).setdefault(spec.name, []).append(quota)
            for pinned in spec.pinned_cells:
                engine, _, cell = pinned.partition(SEPARATOR)
                if engine in structures and (found := structures[engine].named(cell)) is not None:
                    level = engines[engine].tree.levels[found[0]]
                    models = set(structures[engine].models(*found))
                    model = next(iter(models)) if len(models) == 1 else ""
                    out.setdefault(engine, {}).setdefault(spec.name, []).append(CellQuota(level, 1, model))
        return out

    def _pin(self, engine: str, cells: CellOwnership, owners: Iterable[QueueSpec]) -> None:
        for spec in owners:
            for pinned in spec.pinned_cells:
                of_engine, _, name = pinned.partition(SEPARATOR)
                found = cells.structure.named(name) if of_engine == engine else None
                if found is not None:
                    cells.hold(Cell(*found), spec.name, JobId(f"pinned {pinned}"), _PIN)

    def owner(self, queue: str) -> str:
        """Return the virtual cluster that a queue is or belongs to; "" for none."""
        spec = self._specs.get(queue)
        for _ in range(len(self._specs)):
            if spec is None:
                return ""
            if spec.cells or spec.pinned_cells:
                return spec.name
            spec = self._specs.get(spec.parent)
        return ""

    def pinned(self, queue: str, name: str) -> tuple[str, MaskedIndex] | None:
        """Return the engine and view of the pinned cell that a queue calls `name`; None if there is no such cell."""
        spec = self._specs.get(self.owner(queue))
        if spec is None:
            return None
        named = dict(zip(spec.pinned_names, spec.pinned_cells, strict=False))
        found = self._find(named.get(name, name if name in spec.pinned_cells else ""))
        return (found[0].index.tree.engine, found[0].inside(found[1])) if found is not None else None

    def pinned_names(self, queue: str) -> tuple[str, ...]:
        """Return the names of the pinned cells that a job of a queue may use."""
        spec = self._specs.get(self.owner(queue))
        return (spec.pinned_names or spec.pinned_cells) if spec is not None else ()

    def hold(self, gang: RunningGang, task: TaskKey, names: Iterable[str]) -> bool:
        """Record a task in these cells; False, without recording any, if one cannot be bound to its owner."""
        owner, held = self.owner(gang.queue), list[tuple[CellOwnership, Cell]]()
        for name in names:
            found = self._find(name)
            if found is None or not owner or not found[0].hold(found[1], owner, gang.job, task):
                for cells, cell in held:
                    cells.release(cell, gang.job, task)
                return False
            held.append(found)
        return True

    def release(self, gang: RunningGang, task: TaskKey) -> None:
        """Release the cells of a task that ended."""
        for name in gang.cells.pop(task, ()):
            found = self._find(name)
            if found is not None:
                found[0].release(found[1], gang.job, task)

    def _find(self, name: str) -> tuple[CellOwnership, Cell] | None:
        known = self._found.get(name)
        if known is None:
            engine, _, rest = name.partition(SEPARATOR)
            cells = self.cells.get(engine)
            found = cells.structure.named(rest) if cells is not None else None
            if cells is None or found is None:
                return None
            known = self._found[name] = (cells, Cell(*found))
        return known

    def shortfalls(self) -> list[Shortfall]:
        """Return where owners are owed more cells than are left; empty while the guarantee holds."""
        return [
            Shortfall(engine, cells.index.tree.levels[kind.depth], owed, left)
            for engine, cells in self.cells.items()
            for kind, owed, left in cells.shortfalls()
        ]

    def columns(self) -> list[tuple[object, ...]]:
        """Return everything bound and owed, for hashing and comparing."""
        return [(engine, *cells.columns()) for engine, cells in sorted(self.cells.items())]
