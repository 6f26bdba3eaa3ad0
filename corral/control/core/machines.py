"""The nodes of all engines as they were last seen, and which of them people closed.

A cordon is laid over what an engine reports: the scheduler sees a node that is not ready, `Machines` knows the reason. A
node that its Cluster document describes no more is kept, closed, for as long as tasks of it run on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import msgspec

from corral.model.cordons import VALIDATING, Cordon
from corral.model.inventory import Device, Inventory, Node, Taint
from corral.scheduler import NodesSeen

_VALIDATING = Taint(VALIDATING)
REMOVED = "no Cluster document describes it any more; its tasks run on"


class MachinesSeen(msgspec.Struct, frozen=True, tag=True):
    """What an engine says of its nodes, with those that left its document while tasks of them run on."""

    inventory: Inventory
    removed: frozenset[str] = frozenset()
    """The nodes of the inventory that no document describes any more."""


class Remembered(msgspec.Struct, frozen=True):
    """What `Machines` know beside the documents: enough to make equal ones."""

    not_ready_seconds: float = 60.0
    seen: tuple[Inventory, ...] = ()
    """Of each engine, without cordons."""
    not_ready_since: dict[str, float] = {}
    tainted: dict[str, tuple[tuple[Taint, float], ...]] = {}
    following: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    cordons: dict[str, Cordon] = {}


class Machines:
    """The nodes of all engines, the broken ones among them, and the cordons."""

    def __init__(self, not_ready_seconds: float = 60.0) -> None:
        """`not_ready_seconds`: seconds after which a node that is not ready counts as lost."""
        self._patience = not_ready_seconds
        self._seen: dict[str, Inventory] = {}
        self._not_ready_since: dict[str, float] = {}
        self.nodes: dict[str, Node] = {}
        self.cordons: Mapping[str, Cordon] = {}
        self.unhealthy: dict[str, dict[int, str]] = {}
        """By node, its unhealthy devices with the reason."""
        self.tainted: dict[str, dict[Taint, float]] = {}
        """By node, its `NoExecute` taints with the time when each was first seen."""
        self.following: frozenset[str] = frozenset()
        """Engines whose nodes are described by documents; a missing node of theirs was removed, not lost."""
        self.removed: frozenset[str] = frozenset()
        """Nodes that no document describes any more and that still run tasks."""

    def fork(self) -> Machines:
        """An independent copy."""
        twin = Machines(self._patience)
        twin._seen, twin._not_ready_since = dict(self._seen), dict(self._not_ready_since)
        twin.nodes, twin.cordons, twin.unhealthy = dict(self.nodes), dict(self.cordons), dict(self.unhealthy)
        twin.tainted, twin.following, twin.removed = dict(self.tainted), self.following, self.removed
        return twin

    def remembered(self) -> Remembered:
        """What `Machines.recalled` makes equal ones from."""
        return Remembered(
            self._patience,
            tuple(self._seen.values()),
            dict(self._not_ready_since),
            {name: tuple(taints.items()) for name, taints in self.tainted.items()},
            self.following,
            self.removed,
            dict(self.cordons),
        )

    @classmethod
    def recalled(cls, known: Remembered) -> Machines:
        """The machines that `remembered` told of."""
        made = cls(known.not_ready_seconds)
        made.following, made.removed, made.cordons = known.following, known.removed, dict(known.cordons)
        for inventory in known.seen:
            made._remember(inventory, 0.0)
        made._not_ready_since = dict(known.not_ready_since)
        made.tainted = {name: dict(taints) for name, taints in known.tainted.items()}
        return made

    def removed_from(self, inventory: Inventory, held: Set[str]) -> list[str]:
        """The nodes that an engine's document describes no more; `held` are those on which tasks hold something."""
        if inventory.engine not in self.following:
            return []
        prefix, there = f"{inventory.engine}/", {node.name for node in inventory.nodes}
        return sorted(name for name in held if name.startswith(prefix) and name not in there)

    def see(self, seen: MachinesSeen, now: float) -> NodesSeen:
        """Take over what an engine says of its nodes, and say what the cluster index has to learn."""
        prefix = f"{seen.inventory.engine}/"
        others = frozenset(name for name in self.removed if not name.startswith(prefix))
        self.removed = others | seen.removed
        self._remember(seen.inventory, now)
        return self._overlaid(seen.inventory)

    def close(self, cordons: Mapping[str, Cordon]) -> list[NodesSeen]:
        """Take over which nodes are closed to new tasks, and say what the cluster index has to learn of it."""
        self.cordons = cordons
        return [self._overlaid(inventory) for inventory in self._seen.values()]

    @property
    def trouble(self) -> bool:
        """Whether any node is not ready or tainted, or any device is unhealthy."""
        return bool(self.unhealthy or self._not_ready_since or self.tainted)

    def lost(self, node: str, now: float) -> str:
        """Why a node counts as lost (not ready for too long, or given up by its engine); "" when it does not."""
        since = self._not_ready_since.get(node)
        known = self.nodes.get(node)
        if since is None or (now - since < self._patience and not (known is not None and known.lost)):
            return ""
        return f"{node} is gone" if known is None else f"{node} is not ready: {known.ready_reason or 'no reason given'}"

    def next_loss(self, now: float) -> float | None:
        """The time when the next node that is not ready will count as lost; None when there is none."""
        return min(
            (at for at in (s + self._patience for s in self._not_ready_since.values()) if at > now), default=None
        )

    def inventory(self, engine: str) -> Inventory | None:
        """An engine's nodes as last seen, without cordons; None for an engine that was never seen."""
        return self._seen.get(engine)

    def node(self, name: str) -> Node | None:
        """A node by its name, as last seen."""
        return self.nodes.get(name)

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
            if cordon is None or not node.ready:
                yield node
            elif cordon.validating:
                yield msgspec.structs.replace(node, taints=(*node.taints, _VALIDATING))
            else:
                yield msgspec.structs.replace(node, ready=False, ready_reason=cordon.reason, cordoned=True)


def _evicts(taint: Taint) -> bool:
    return taint.effect == "NoExecute"


def _unhealthy(devices: Iterable[Device]) -> dict[int, str]:
    return {device.index: device.health_reason or "no reason given" for device in devices if not device.healthy}


def with_removed(inventory: Inventory, kept: Iterable[Node]) -> MachinesSeen:
    """An inventory with those nodes, closed, that its document describes no more."""
    closed = tuple(msgspec.structs.replace(node, ready=False, ready_reason=REMOVED) for node in kept)
    if not closed:
        return MachinesSeen(inventory)
    whole = msgspec.structs.replace(inventory, nodes=(*inventory.nodes, *closed))
    return MachinesSeen(whole, frozenset(node.name for node in closed))
