"""The machines of one engine, sorted so that every cell above the nodes is a range of positions.

A `Tree` never changes. It is rebuilt when machines appear, disappear or move, and forks share it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from corral.model.inventory import Inventory, Node
from corral.scheduler.cluster.device_count import Counted, counted
from corral.scheduler.cluster.device_layout import Layout
from corral.scheduler.cluster.topology_level import complete

AVOIDED = "PreferNoSchedule"
_DIGITS = re.compile(r"(\d+)")


class LevelCells(NamedTuple):
    """All cells of one level, ordered by position."""

    names: tuple[str, ...]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    of: tuple[int, ...]
    """For each node position, the number of the cell that contains it."""


class Tree:
    """The cells of one engine, from `engine` (depth 0) through `node` (`node_depth`) to `device`."""

    def __init__(self, inventory: Inventory) -> None:
        self.engine = inventory.engine
        self.levels = complete(inventory.levels)
        self.node_depth = self.levels.index("node")
        upper = self.levels[1 : self.node_depth]
        paths = {node.name: _path(node, upper) for node in inventory.nodes}
        homes = {path: [natural(name) for name in path] for path in set(paths.values())}
        self.nodes: tuple[Node, ...] = tuple(
            sorted(inventory.nodes, key=lambda node: (homes[paths[node.name]], natural(node.name)))
        )
        self.masks: dict[Hashable, list[int]] = {}
        """For a shape's device and label requirements, the fitting devices of each node; a cache."""
        self.rooms: dict[Hashable, Any] = {}
        """What is left of the devices of a node in a state, as `node_room` shows it to *place* parts; a cache."""
        self.position = {node.name: at for at, node in enumerate(self.nodes)}
        self.cells = self._cells([paths[node.name] for node in self.nodes])
        alike: dict[Hashable, int] = {}
        self.alike = tuple(
            alike.setdefault(
                (node.taints, *((d.index, d.kind, d.model, d.parent, d.counted) for d in node.devices)), len(alike)
            )
            for node in self.nodes
        )
        """By position; nodes with the same number have the same taints and devices, except for names and health."""
        first = dict(zip(reversed(self.alike), reversed(self.nodes), strict=True)).values()
        self.models = tuple(sorted({device.model for node in first for device in node.devices if device.parent < 0}))
        """The models of whole devices."""
        self.names_models = any(device.model for node in first for device in node.devices)
        """Whether any device, or slice of one, has a model."""
        self.avoided = any(taint.effect == AVOIDED for node in self.nodes for taint in node.taints)
        """Whether any node has a PreferNoSchedule taint."""
        self.slice_conflicts = {at: found for at, node in enumerate(self.nodes) if (found := _slice_conflicts(node))}
        """By position and device, the mask of its slices or of its parent device; empty where nothing is sliced."""
        wirings = [(node.links, tuple([(each.index, each.cells) for each in node.devices])) for node in self.nodes]
        layouts: dict[Any, Layout] = {}
        by_wiring = {key: self._layout(self.nodes[at], layouts) for key, at in _firsts(wirings).items()}
        self.layouts = tuple(by_wiring[key] for key in wirings)

    @cached_property
    def kinds(self) -> tuple[Counted, ...]:
        """Return one device of each kind, model and memory size, whole or sliced, with its thousandths."""
        found: dict[tuple[object, ...], Counted] = {}
        for node in self.nodes:
            for each in counted(node.devices):
                device = each.device
                key = (device.kind, device.model, device.memory_bytes, device.parent >= 0, each.thousandths)
                found.setdefault(key, each)
        return tuple(found.values())

    def _cells(self, paths: list[tuple[str, ...]]) -> tuple[LevelCells, ...]:
        count = len(self.nodes)
        out = [_ranges([(self.engine,)] * count)]
        out.extend(_ranges([path[:depth] for path in paths]) for depth in range(1, self.node_depth))
        out.append(_ranges([(node.name,) for node in self.nodes]))
        return tuple(out)

    def _layout(self, node: Node, known: dict[Any, Layout]) -> Layout:
        """Build the layout of a node; a level that it does not name becomes its next narrower one."""
        inner = self.levels[self.node_depth + 1 : -1]
        links = node.links if len(node.links) == len(node.devices) else ()
        singles = tuple(1 << device.index for device in node.devices)
        lower = {device.index: 1 << device.index for device in node.devices}
        depths = [singles]
        for level in reversed(inner):
            named: dict[str, int] = {}
            for device in node.devices:
                name = dict(device.cells).get(level)
                key = f"={name}" if name is not None else f"~{lower[device.index]}"
                named[key] = named.get(key, 0) | 1 << device.index
            depths.append(tuple(sorted(named.values(), key=lambda mask: mask & -mask)))
            lower = {
                device.index: mask for mask in named.values() for device in node.devices if mask >> device.index & 1
            }
        depths.append((sum(singles),))
        slices: dict[int, int] = {}
        for device in node.devices:
            if device.parent >= 0:
                slices[device.parent] = slices.get(device.parent, 0) | 1 << device.index
        known_as = (tuple(reversed(depths)), links, tuple(slices.values()))
        return known.setdefault(known_as, Layout(*known_as))

    def refreshed(self, inventory: Inventory) -> Tree | None:
        """Return this tree with the current nodes, or None if more than their health changed."""
        if len(inventory.nodes) != len(self.nodes) or complete(inventory.levels) != self.levels:
            return None
        nodes = list(self.nodes)
        for node in inventory.nodes:
            at = self.position.get(node.name)
            if at is None or (node != nodes[at] and _lasting(node) != _lasting(nodes[at])):
                return None
            nodes[at] = node
        twin = copy(self)
        twin.nodes, twin.masks = tuple(nodes), {}
        return twin


def _slice_conflicts(node: Node) -> dict[int, int]:
    found: dict[int, int] = {}
    for device in node.devices:
        if device.parent >= 0:
            found[device.index] = found.get(device.index, 0) | 1 << device.parent
            found[device.parent] = found.get(device.parent, 0) | 1 << device.index
    return found


def _lasting(node: Node) -> Node:
    devices = tuple(structs.replace(device, healthy=True, health_reason="") for device in node.devices)
    return structs.replace(node, devices=devices, ready=True, ready_reason="")


def _firsts(keys: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the first index of each key."""
    return dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts node9 before node10."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in _DIGITS.split(text) if part)


def _path(node: Node, upper: Sequence[str]) -> tuple[str, ...]:
    """Return the cells above a node, outermost first; a level that it does not name becomes its next narrower one."""
    named, lower, path = dict(node.cells), f"~{node.name}", []
    for level in reversed(upper):
        lower = named.get(level, f"~{lower.removeprefix('~')}")
        path.append(lower)
    return tuple(reversed(path))


def _ranges(keys: list[tuple[str, ...]]) -> LevelCells:
    names: list[str] = []
    starts: list[int] = []
    of: list[int] = []
    for at, key in enumerate(keys):
        if at == 0 or key != keys[at - 1]:
            names.append(key[-1].removeprefix("~"))
            starts.append(at)
        of.append(len(starts) - 1)
    ends = [*starts[1:], len(keys)] if starts else []
    return LevelCells(tuple(names), np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), tuple(of))
