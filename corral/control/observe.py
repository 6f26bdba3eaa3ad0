"""Why: the cluster index changes only when the machines were seen to change, and what was seen is stored for everybody."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from corral.engines.base import Engine
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory, Node
from corral.scheduler import EngineUnknown, NodesSeen
from corral.store import Store

log = structlog.get_logger()


class Machines:
    """All engines and what was last seen of their nodes."""

    def __init__(self, store: Store, engines: Mapping[str, Engine]) -> None:
        self._store = store
        self._engines = engines
        self.stale = False
        self.nodes: dict[str, Node] = {}

    async def look(self, epoch: int, now: float) -> list[NodesSeen | EngineUnknown]:
        """Ask every engine for its nodes, store them, and say what the cluster index has to learn."""
        self.stale = False
        learned: list[NodesSeen | EngineUnknown] = []
        for engine in self._engines.values():
            try:
                inventory = await engine.inventory()
            except Unavailable as error:
                log.warning("engine does not answer", engine=engine.name, message=error.message)
                learned.append(EngineUnknown(engine.name, error.message))
                continue
            await self._store.put_nodes(epoch, engine.name, list(inventory.nodes), now)
            self._remember(inventory)
            learned.append(NodesSeen(inventory))
        return learned

    def node(self, name: str) -> Node | None:
        """A node by its name, as last seen."""
        return self.nodes.get(name)

    def engine_of(self, attempt: AttemptId) -> str:
        """The engine that has this attempt.

        Raises CorralError when there is none.
        """
        if len(self._engines) == 1:
            return next(iter(self._engines))
        raise CorralError("unknown-engine", f"No engine is known to have {attempt}.")

    def _remember(self, inventory: Inventory) -> None:
        prefix = f"{inventory.engine}/"
        self.nodes = {name: node for name, node in self.nodes.items() if not name.startswith(prefix)}
        self.nodes |= {node.name: node for node in inventory.nodes}
