"""Ask the engines for their nodes, and store what they say for everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import msgspec
import structlog

from corral.control.core.machines import Machines, MachinesSeen, with_removed
from corral.control.core.store import CoreStore
from corral.control.core.world import Job
from corral.engines.base import Engine
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.inventory import Inventory, Node
from corral.scheduler import EngineUnknown

log = structlog.get_logger()


class Inventories:
    """The engines, as far as their machines are concerned."""

    def __init__(
        self,
        store: CoreStore,
        engines: Mapping[str, Engine],
        away: Mapping[str, Unavailable] | None = None,
        completed: Callable[[Inventory], Inventory] = lambda inventory: inventory,
    ) -> None:
        """`away` are the engines that are not open, with the reason; `completed` adds what documents say of nodes."""
        self._store = store
        self._engines = engines
        self._away: Mapping[str, Unavailable] = {} if away is None else away
        self._completed = completed
        self.stale = False
        """Whether an engine has told of a change that nobody has looked at."""
        self.overlaid: Callable[[Inventory], Inventory] = lambda inventory: inventory
        """Marks the nodes that the scheduler should take last; what is stored is without marks."""

    async def look(
        self, machines: Machines, held: Set[str], epoch: int, now: float
    ) -> list[MachinesSeen | EngineUnknown]:
        """Ask every engine for its nodes and store them.

        `held` are the nodes on which tasks hold something. Raises LeadershipLost, and Unavailable like the store.
        """
        self.stale = False
        learned: list[MachinesSeen | EngineUnknown] = []
        for engine in self._engines.values():
            if (reason := self._away.get(engine.name)) is not None:
                learned.append(EngineUnknown(engine.name, reason.message))
                continue
            try:
                inventory = self._completed(await engine.inventory())
            except Unavailable as error:
                log.warning("engine does not answer", engine=engine.name, message=error.message)
                learned.append(EngineUnknown(engine.name, error.message))
                continue
            seen = await self._with_removed(inventory, machines, held)
            await self._store.put_nodes(epoch, engine.name, list(seen.inventory.nodes), now)
            learned.append(msgspec.structs.replace(seen, inventory=self.overlaid(seen.inventory)))
        return learned

    async def _with_removed(self, inventory: Inventory, machines: Machines, held: Set[str]) -> MachinesSeen:
        """The inventory with those nodes that left its document while tasks of them run on, as they were last seen."""
        kept: list[Node] = []
        for name in machines.removed_from(inventory, held):
            node = machines.nodes.get(name)
            if node is None and (row := await self._store.node(name)) is not None:
                node = row.node
            if node is not None:
                kept.append(node)
        return with_removed(inventory, kept)

    def engine_of(self, attempt: AttemptId, jobs: Mapping[JobId, Job]) -> str:
        """The engine that has this attempt: that of its task's node, else the one that knows it.

        Raises CorralError if there is none, Unavailable while an engine is away that may have it.
        """
        if len(self._engines) == 1:
            return next(iter(self._engines))
        key = parse_attempt_id(attempt)
        job = jobs.get(key.job)
        task = job.tasks.get(key.task) if job is not None else None
        if job is not None and task is not None and task.placement and job.run.attempt_of(task) == attempt:
            name = task.placement.node.partition("/")[0]
            if name in self._engines:
                return name
        for name, engine in self._engines.items():
            if attempt in engine.attempts():
                return name
        for error in self._away.values():
            raise Unavailable(error.code, error.message)
        raise CorralError("unknown-engine", f"No engine is known to have {attempt}.")
