"""Read the engines' nodes, store them, and tell the cluster index about changes.

A cordon is laid over an engine's report: the scheduler sees a node that is not ready, and `Machines` knows the reason.
A node that was removed from its Cluster document is kept, closed, until its last task has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from corral.engines.base import Engine
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.cordons import Cordon
from corral.model.inventory import Device, Inventory, Node, Taint
from corral.scheduler import EngineUnknown, NodesSeen
from corral.store import Store

log = structlog.get_logger()

REMOVED = "no Cluster document describes it any more; its tasks run on"


class Machines:
    """The engines, their nodes as last seen, and the cordons."""

    def __init__(self, store: Store, engines: Mapping[str, Engine], *, not_ready_seconds: float = 60.0) -> None:
        """`not_ready_seconds`: seconds after which a node that is not ready counts as lost."""
        self._store = store
        self._engines = engines
        self._patience = not_ready_seconds
        self._seen: dict[str, Inventory] = {}
        self._not_ready_since: dict[str, float] = {}
        self.stale = False
        self.nodes: dict[str, Node] = {}
        self.cordons: dict[str, Cordon] = {}
        self.unhealthy: dict[str, dict[int, str]] = {}
        """By node, its unhealthy devices with the reason."""
        self.tainted: dict[str, dict[Taint, float]] = {}
        """By node, its `NoExecute` taints with the time when each was first seen."""
        self.following: frozenset[str] = frozenset()
        """Engines whose nodes are described by documents; a missing node of theirs was removed, not lost."""
        self.removed: frozenset[str] = frozenset()
        """Nodes that no document describes any more and that still run tasks."""
        self.held: Callable[[], set[str]] = set
        """Returns the nodes on which tasks hold devices or other resources."""

    async def look(self, epoch: int, now: float) -> list[NodesSeen | EngineUnknown]:
        """Ask every engine for its nodes, store them, and return the events for the cluster index."""
        self.stale = False
        learned: list[NodesSeen | EngineUnknown] = []
        for engine in self._engines.values():
            try:
                inventory = await engine.inventory()
            except Unavailable as error:
                log.warning("engine does not answer", engine=engine.name, message=error.message)
                learned.append(EngineUnknown(engine.name, error.message))
                continue
            inventory = await self._with_removed(inventory)
            await self._store.put_nodes(epoch, engine.name, list(inventory.nodes), now)
            self._remember(inventory, now)
            learned.append(self._overlaid(inventory))
        return learned

    async def _with_removed(self, inventory: Inventory) -> Inventory:
        """Add to an engine's inventory the nodes that were removed from its document and still run tasks."""
        if inventory.engine not in self.following:
            return inventory
        prefix, there = f"{inventory.engine}/", {node.name for node in inventory.nodes}
        gone = sorted(name for name in self.held() if name.startswith(prefix) and name not in there)
        others = {name for name in self.removed if not name.startswith(prefix)}
        kept = [node for node in [await self._last_seen(name) for name in gone] if node is not None]
        self.removed = frozenset(others | {node.name for node in kept})
        if not kept:
            return inventory
        closed = (msgspec.structs.replace(node, ready=False, ready_reason=REMOVED) for node in kept)
        return msgspec.structs.replace(inventory, nodes=(*inventory.nodes, *closed))

    async def _last_seen(self, name: str) -> Node | None:
        """A node as last seen, by this control or an earlier one."""
        if name in self.nodes:
            return self.nodes[name]
        row = await self._store.node(name)
        return None if row is None else row.node

    def forget_removed(self) -> None:
        """Request another look when the last task of a removed node has ended."""
        if self.removed and not self.removed <= self.held():
            self.stale = True

    async def read_cordons(self) -> list[NodesSeen]:
        """Read the cordons and return the events for the cluster index."""
        self.cordons = await self._store.cordons()
        return [self._overlaid(inventory) for inventory in self._seen.values()]

    @property
    def trouble(self) -> bool:
        """Whether any node is not ready or tainted, or any device is unhealthy."""
        return bool(self.unhealthy or self._not_ready_since or self.tainted)

    def lost(self, node: str, now: float) -> str:
        """Why a node counts as lost (not ready for too long); "" when it does not."""
        since = self._not_ready_since.get(node)
        if since is None or now - since < self._patience:
            return ""
        known = self.nodes.get(node)
        return f"{node} is gone" if known is None else f"{node} is not ready: {known.ready_reason or 'no reason given'}"

    def next_loss(self, now: float) -> float | None:
        """The time when the next node that is not ready will count as lost; None when there is none."""
        return min(
            (at for at in (s + self._patience for s in self._not_ready_since.values()) if at > now), default=None
        )

    def node(self, name: str) -> Node | None:
        """A node by its name, as last seen."""
        return self.nodes.get(name)

    def engine_of(self, attempt: AttemptId) -> str:
        """The engine that runs this attempt.

        Raises CorralError when it is not known.
        """
        if len(self._engines) == 1:
            return next(iter(self._engines))
        raise CorralError("unknown-engine", f"No engine is known to have {attempt}.")

    def _remember(self, inventory: Inventory, now: float) -> None:
        before = self._seen.get(inventory.engine)
        self._seen[inventory.engine] = inventory
        prefix = f"{inventory.engine}/"
        self.nodes = {name: node for name, node in self.nodes.items() if not name.startswith(prefix)}
        self.nodes |= {node.name: node for node in inventory.nodes}
        self.unhealthy = {name: bad for name, bad in self.unhealthy.items() if not name.startswith(prefix)}
        self.unhealthy |= {node.name: bad for node in inventory.nodes if (bad := _unhealthy(node.devices))}
        known = {name: taints for name, taints in self.tainted.items() if name.startswith(prefix)}
        self.tainted = {name: taints for name, taints in self.tainted.items() if name not in known}
        for node in inventory.nodes:
            if fresh := {taint: known.get(node.name, {}).get(taint, now) for taint in node.taints if _evicts(taint)}:
                self.tainted[node.name] = fresh
        names = {node.name for node in before.nodes} if before else set()
        absent = {
            name for name in {*names, *self._not_ready_since} if name.startswith(prefix) and name not in self.nodes
        }
        lacking = {node.name for node in inventory.nodes if not node.ready} - self.removed
        if inventory.engine not in self.following:
            lacking |= absent
        others = {name: at for name, at in self._not_ready_since.items() if not name.startswith(prefix)}
        self._not_ready_since = others | {name: self._not_ready_since.get(name, now) for name in lacking}

    def _overlaid(self, inventory: Inventory) -> NodesSeen:
        """The inventory with cordoned nodes marked as not ready."""
        if not any(node.name in self.cordons for node in inventory.nodes):
            return NodesSeen(inventory)
        return NodesSeen(msgspec.structs.replace(inventory, nodes=tuple(self._closed(inventory.nodes))))

    def _closed(self, nodes: Iterable[Node]) -> Iterable[Node]:
        for node in nodes:
            cordon = self.cordons.get(node.name)
            closed = cordon is not None and node.ready
            reason = cordon.reason if cordon else ""
            yield msgspec.structs.replace(node, ready=False, ready_reason=reason, cordoned=True) if closed else node


def _evicts(taint: Taint) -> bool:
    return taint.effect == "NoExecute"


def _unhealthy(devices: Iterable[Device]) -> dict[int, str]:
    return {device.index: device.health_reason or "no reason given" for device in devices if not device.healthy}
