"""Why: a cluster document is short for people; engines need every node and device spelt out with the cells it is in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corral.kernel import units
from corral.spec.errors import Path, did_you_mean
from corral.spec.quotas import queue_findings

if TYPE_CHECKING:
    from corral.spec.cluster import ClusterDocument, DescribedDevices, NodeShape

Cells = tuple[tuple[str, str], ...]
"""(level, name) pairs, outermost first."""


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """One described device; `cells` are those between its node and itself, named by number within the node."""

    index: int
    id: str
    kind: str
    model: str
    memory_bytes: int = 0
    cells: Cells = ()


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """One described node, without its engine's prefix; amounts of 0 are the machine's own."""

    name: str
    cells: Cells = ()
    devices: tuple[DeviceDescription, ...] = ()
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    labels: dict[str, str] = field(default_factory=dict)


def _placed(document: ClusterDocument) -> Iterator[tuple[Path, str, NodeShape, dict[str, str]]]:
    """Every node: where it is written, its name, what it says, and its cells by level."""
    for block_name, block in document.blocks.items():
        for rack_name, rack in block.racks.items():
            for name, shape in rack.nodes.items():
                path: Path = ("blocks", block_name, "racks", rack_name, "nodes", name)
                yield path, name, shape, {"block": block_name, "rack": rack_name}
    for rack_name, rack in document.racks.items():
        for name, shape in rack.nodes.items():
            yield ("racks", rack_name, "nodes", name), name, shape, {"rack": rack_name}
    for name, free in document.free_nodes.items():
        yield ("nodes", name), name, free, dict(free.cells)


def nodes_of(document: ClusterDocument) -> tuple[NodeDescription, ...]:
    """Every node of a consistent document, in its order."""
    return tuple(
        _node(document, name, _complete(document.node, shape), cells) for _, name, shape, cells in _placed(document)
    )


def _complete(common: NodeShape, own: NodeShape) -> NodeShape:
    """What a node has: its own words, else the common ones; its devices say anew only what differs."""
    said = {name: getattr(own, name) for name in own.model_fields_set if name in type(common).model_fields}
    if "devices" in said:
        devices = own.devices
        said["devices"] = common.devices.model_copy(
            update={name: getattr(devices, name) for name in devices.model_fields_set}
        )
    if "labels" in said:
        said["labels"] = common.labels | own.labels
    return common.model_copy(update=said)


def _node(document: ClusterDocument, name: str, shape: NodeShape, cells: dict[str, str]) -> NodeDescription:
    return NodeDescription(
        name=name,
        cells=tuple((level, cells[level]) for level in document.levels if level in cells),
        devices=tuple(_devices(name, shape.devices, document.levels)),
        cpu_millis=units.parse_cpu(shape.cpu),
        memory_bytes=units.parse_memory(shape.memory),
        shm_bytes=units.parse_memory(shape.shm),
        labels=dict(shape.labels),
    )


def _devices(node: str, devices: DescribedDevices, levels: list[str]) -> Iterator[DeviceDescription]:
    sizes = [(level, devices.cells[level]) for level in levels if level in devices.cells]
    for index in range(devices.count):
        yield DeviceDescription(
            index=index,
            id=f"{node}:{index}",
            kind=devices.kind,
            model=devices.model,
            memory_bytes=units.parse_memory(devices.memory),
            cells=tuple((level, str(index // size)) for level, size in sizes),
        )


def census_of(nodes: tuple[NodeDescription, ...]) -> dict[tuple[str, str], int]:
    """How many cells there are by level and model; a cell has a model when all its devices have, "" counts every cell."""
    models: dict[tuple[str, str], set[str]] = defaultdict(set)
    for node in nodes:
        for device in node.devices:
            inside = [(level, f"{node.name}/{name}") for level, name in device.cells]
            cells = (*node.cells, ("node", node.name), *inside, ("device", device.id))
            for cell in cells:
                models[cell].add(device.model)
    counts: Counter[tuple[str, str]] = Counter()
    for (level, _), found in models.items():
        counts[level, ""] += 1
        if len(found) == 1:
            counts[level, next(iter(found))] += 1
    return dict(counts)


def findings(document: ClusterDocument) -> list[tuple[Path, str]]:
    """What does not fit together in a document whose fields are right alone."""
    return [*_level_findings(document), *_node_findings(document), *queue_findings(document.queue_shapes)]


def _level_findings(document: ClusterDocument) -> Iterator[tuple[Path, str]]:
    levels = document.levels
    for index, level in enumerate(levels):
        if level in levels[:index]:
            yield ("levels", index), f'"{level}" is already there'
    if levels[-1] != "device" or "node" not in levels:
        yield ("levels",), "expected levels outermost first, with node among them and device last"


def _node_findings(document: ClusterDocument) -> Iterator[tuple[Path, str]]:
    levels = document.levels
    split = levels.index("node") if "node" in levels else 0
    above, below = levels[:split], levels[split + 1 : -1]
    seen: set[str] = set()
    homes: dict[tuple[str, str], Cells] = {}
    yield from _cell_findings(("node", "devices"), document.node.devices, below)
    for path, name, shape, cells in _placed(document):
        if name in seen:
            yield path, f'the node "{name}" is already there; nodes have unique names'
        seen.add(name)
        for level in cells.keys() - set(above):
            yield (*path, "cells", level), f"not a level above the node{did_you_mean(level, above)}"
        if "devices" in shape.model_fields_set:
            yield from _cell_findings((*path, "devices"), _complete(document.node, shape).devices, below)
        chain = tuple((level, cells[level]) for level in above if level in cells)
        for depth, cell in enumerate(chain):
            if homes.setdefault(cell, chain[:depth]) != chain[:depth]:
                yield path, f'the {cell[0]} "{cell[1]}" is in two places; cells have unique names'


def _cell_findings(path: Path, devices: DescribedDevices, below: list[str]) -> Iterator[tuple[Path, str]]:
    outer = devices.count
    for level in sorted(devices.cells, key=lambda name: below.index(name) if name in below else -1):
        size = devices.cells[level]
        if level not in below:
            yield (*path, "cells", level), f"not a level between node and device{did_you_mean(level, below)}"
        elif devices.count and (size > outer or outer % size):
            yield (*path, "cells", level), f"cells of {size} devices do not divide the {outer} around them evenly"
        else:
            outer = size
