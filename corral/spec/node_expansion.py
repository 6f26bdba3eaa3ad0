"""Expand a cluster document into nodes and devices, each with its cells, as engines need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from corral.kernel import units
from corral.spec import hostlists
from corral.spec.amount_fields import counted_amounts
from corral.spec.cell_expansion import Forest
from corral.spec.cell_type_resolution import Rule, level_name, ordered_levels, rules_of
from corral.spec.errors import Path, did_you_mean
from corral.spec.expanded_machines import Cells, DeviceDescription, Machines, NodeDescription, TypeLevel

if TYPE_CHECKING:
    from corral.spec.cluster import ClusterDocument, DescribedDevices, NodeShape, Rack

Findings = list[tuple[Path, str]]
_MOST_NODES = 200_000


class _Placed(NamedTuple):
    """One node of the rack form: its path in the document, its name, its shape, and the cells above it."""

    path: Path
    name: str
    shape: NodeShape
    cells: Cells


def machines_of(document: ClusterDocument) -> tuple[Machines, Findings]:
    """All machines of a document, in its order, and all inconsistencies among them."""
    findings = [*_level_findings(document.levels)]
    rules, wrong = rules_of(document.cell_types, document.models)
    findings += wrong
    if findings:
        return Machines(tuple(document.levels)), findings
    racked = _Racked(document)
    nodes = racked.nodes()
    forest = Forest(rules, lambda model: _described(document, model))
    for at, cell in enumerate(document.cells):
        forest.add(cell, ("cells", at))
    planted = forest.nodes(lambda rule: _base(document, rule))
    findings = [*racked.findings, *forest.findings]
    seen = {node.name for node in nodes}
    for node in planted:
        if node.name in seen:
            findings.append(
                (forest.parts[node.name][0].path, f'the node "{node.name}" is among the racks or nodes too')
            )
    wider = [level for level in document.level_labels if level not in document.levels]
    levels, circle = ordered_levels(_chains(document, forest, racked), (*wider, *document.levels))
    if circle:
        findings.append((("cellTypes",), f"the types put the levels {', '.join(circle)} in no one order"))
    everything = tuple(_labelled(document, levels, [*nodes, *planted]))
    return Machines(tuple(levels), everything, forest.pinned, _type_levels(forest)), findings


def _chains(document: ClusterDocument, forest: Forest, racked: _Racked) -> Iterator[tuple[str, ...]]:
    """Orders of levels that must hold: the document's own list where it is used, and each chain of types."""
    if racked.count or not forest.parts or "levels" in document.model_fields_set:
        yield tuple(document.levels)
    else:
        yield ("node", "device")
    yield from ((level, "node") for level in document.level_labels)
    for top in dict.fromkeys(part.chain for parts in forest.parts.values() for part in parts):
        chain, name = [], top
        while name in forest.rules:
            rule = forest.rules[name]
            chain.append(rule.level)
            if rule.is_node and name in forest.shared:
                chain.append(level_name(name))
            name = rule.child
        yield (*chain, "device")


def _type_levels(forest: Forest) -> dict[str, TypeLevel]:
    return {
        name: TypeLevel(level_name(name) if name in forest.shared else rule.level, rule.leaf)
        for name, rule in forest.rules.items()
    }


def _described(document: ClusterDocument, model: str) -> tuple[str, int]:
    """The kind and memory of a device model."""
    said = document.models.get(model)
    return (said.kind, units.parse_memory(said.memory)) if said else ("gpu", 0)


def _base(document: ClusterDocument, rule: Rule) -> NodeDescription:
    common, own = document.node, rule.amounts
    said = own.model_fields_set
    return NodeDescription(
        name="",
        cpu_millis=units.parse_cpu(own.cpu if "cpu" in said else common.cpu),
        memory_bytes=units.parse_memory(own.memory if "memory" in said else common.memory),
        shm_bytes=units.parse_memory(own.shm if "shm" in said else common.shm),
        labels=common.labels | own.labels,
        resources=_resources(common),
        taints=_taints(common),
    )


def _labelled(
    document: ClusterDocument, levels: Sequence[str], nodes: list[NodeDescription]
) -> Iterator[NodeDescription]:
    """The nodes with the cells that their labels name, outermost first."""
    if not document.level_labels:
        yield from nodes
        return
    for node in nodes:
        named = {level: node.labels[label] for level, label in document.level_labels.items() if label in node.labels}
        cells = named | dict(node.cells)
        yield replace(node, cells=tuple((level, cells[level]) for level in levels if level in cells))


@dataclass
class _Racked:
    """Expands `blocks`, `racks` and `nodes`; equal nodes share one description."""

    document: ClusterDocument
    findings: Findings = field(default_factory=list)
    count: int = 0
    _bases: dict[int, NodeDescription] = field(default_factory=dict)

    def nodes(self) -> list[NodeDescription]:
        """Every node, complete."""
        levels = self.document.levels
        split = levels.index("node")
        above, below = levels[:split], levels[split + 1 : -1]
        self.findings += _cell_findings(("node", "devices"), self.document.node.devices, below)
        seen: set[str] = set()
        homes: dict[tuple[str, str], Cells] = {}
        checked: Cells | None = None
        out = []
        for path, name, shape, cells in self._placed():
            if name in seen:
                self.findings.append((path, f'the node "{name}" is already there; nodes have unique names'))
            seen.add(name)
            if cells is not checked:
                self._check(path, cells, above, homes)
                checked = cells
            base = self._bases.get(id(shape)) or self._base(path, shape, below)
            out.append(NodeDescription(
                name, cells, base.devices, base.cpu_millis, base.memory_bytes, base.shm_bytes, base.labels,
                base.resources, base.taints, base.links, base.found,
            ))  # fmt: skip
        self.count = len(out)
        found = [node.name for node in out if node.found]
        if len(found) > 1 and self.document.engine == "local":
            said = f"the devices of this machine are one node's, and {len(found)} nodes ask for those that are found"
            self.findings.append((("node", "devices", "source"), said))
        return out

    def _check(self, path: Path, cells: Cells, above: list[str], homes: dict[tuple[str, str], Cells]) -> None:
        unknown = [level for level, _ in cells if level not in above]
        for level in unknown:
            self.findings.append(((*path, "cells", level), f"not a level above the node{did_you_mean(level, above)}"))
        for depth, cell in enumerate(() if unknown else cells):
            if homes.setdefault(cell, cells[:depth]) != cells[:depth]:
                self.findings.append((path, f'the {cell[0]} "{cell[1]}" is in two places; cells have unique names'))

    def _base(self, path: Path, shape: NodeShape, below: list[str]) -> NodeDescription:
        """The description of nodes of one shape; a shape without fields of its own uses the common one."""
        common = self.document.node
        own = shape.model_fields_set - {"cells"}
        complete = _complete(common, shape) if own else common
        key = id(shape if own else common)
        if key not in self._bases:
            if "devices" in own:
                self.findings += _cell_findings((*path, "devices"), complete.devices, below)
            self._bases[key] = NodeDescription(
                name="",
                devices=tuple(_devices(complete.devices, self.document.levels)),
                links=complete.devices.wiring.links,
                found=complete.devices.source == "found",
                cpu_millis=units.parse_cpu(complete.cpu),
                memory_bytes=units.parse_memory(complete.memory),
                shm_bytes=units.parse_memory(complete.shm),
                labels=dict(complete.labels),
                resources=_resources(complete),
                taints=_taints(complete),
            )
        return self._bases.setdefault(id(shape), self._bases[key])

    def _placed(self) -> Iterator[_Placed]:
        document = self.document
        for block_key, block in document.blocks.items():
            path: Path = ("blocks", block_key)
            blocks = [(("block", name),) for name in self._expand(path, block_key)]
            for rack_key, rack in block.racks.items():
                yield from self._racks((*path, "racks", rack_key), rack_key, rack, blocks)
        for rack_key, rack in document.racks.items():
            yield from self._racks(("racks", rack_key), rack_key, rack, [()])
        for key, free in document.free_nodes.items():
            cells = tuple((level, free.cells[level]) for level in _in_order(document.levels, free.cells))
            for name in self._expand(("nodes", key), key):
                yield _Placed(("nodes", key), name, free, cells)

    def _racks(self, path: Path, key: str, rack: Rack, outer: Sequence[Cells]) -> Iterator[_Placed]:
        """Divide the racks of one entry evenly among the cells around them, and its nodes among the racks."""
        names = self._expand(path, key)
        nodes = [
            ((*path, "nodes", node_key), name, shape)
            for node_key, shape in rack.nodes.items()
            for name in self._expand((*path, "nodes", node_key), node_key)
        ]
        for many, few, what in ((names, outer, "racks in blocks"), (nodes, names, "nodes in racks")):
            if len(many) % len(few):
                self.findings.append(
                    (path, f"{len(many)} {what} of which there are {len(few)}: they do not divide evenly")
                )
                return
        per_outer, per_rack = len(names) // len(outer), len(nodes) // len(names)
        for at, name in enumerate(names):
            cells = (*outer[at // per_outer], ("rack", name)) if per_outer else ()
            for node_path, node, shape in nodes[at * per_rack : (at + 1) * per_rack]:
                yield _Placed(node_path, node, shape, cells)

    def _expand(self, path: Path, text: str) -> list[str]:
        if not hostlists.is_range(text):
            return [text]
        try:
            return hostlists.expand(text)
        except ValueError as error:
            self.findings.append((path, str(error)))
            return [text]


def _in_order(levels: Sequence[str], cells: Mapping[str, str]) -> list[str]:
    return sorted(cells, key=lambda level: levels.index(level) if level in levels else -1)


def _complete(common: NodeShape, own: NodeShape) -> NodeShape:
    """The common shape overridden by the node's own fields; devices are overridden field by field."""
    said = {name: getattr(own, name) for name in own.model_fields_set if name in type(common).model_fields}
    if "devices" in said:
        devices = own.devices
        changed = {name: getattr(devices, name) for name in devices.model_fields_set}
        said["devices"] = copied = common.devices.model_copy(update=changed)
        copied.__dict__.pop("wiring", None)  # a copy takes over the cached wiring of the common devices
    if "labels" in said:
        said["labels"] = common.labels | own.labels
    return common.model_copy(update=said)


def _devices(devices: DescribedDevices, levels: list[str]) -> Iterator[DeviceDescription]:
    sizes = [(level, devices.cells[level]) for level in levels if level in devices.cells]
    memory = units.parse_memory(devices.memory)
    wired = devices.wiring.cells()
    unsaid = devices.source == "found" and "model" not in devices.model_fields_set
    model = "" if unsaid else devices.model
    for index in range(devices.count):
        numbered = tuple((level, str(index // size)) for level, size in sizes)
        cells = tuple(cell for cell in wired[index] if cell[0] in levels) if wired else numbered
        yield DeviceDescription(index, devices.kind, model, memory, cells)
    slices = devices.slices
    if slices is None:
        return
    memory = units.parse_memory(slices.memory)
    for number in range(devices.count * slices.count):
        parent = number // slices.count
        cells = tuple((level, str(parent // size)) for level, size in sizes)
        yield DeviceDescription(devices.count + number, devices.kind, slices.model, memory, cells, parent=parent)


def _resources(shape: NodeShape) -> dict[str, int]:
    """Resources of a node besides processors, memory, shared memory and devices."""
    found = dict(shape.other)
    if shape.ports:
        found["ports"] = shape.ports
    return found | counted_amounts(shape)


def _taints(shape: NodeShape) -> tuple[tuple[str, str, str], ...]:
    return tuple((taint.key, taint.value, taint.effect) for taint in shape.taints)


def _level_findings(levels: list[str]) -> Iterator[tuple[Path, str]]:
    for index, level in enumerate(levels):
        if level in levels[:index]:
            yield ("levels", index), f'"{level}" is already there'
    if levels[-1] != "device" or "node" not in levels:
        yield ("levels",), "expected levels outermost first, with node among them and device last"


def _cell_findings(path: Path, devices: DescribedDevices, below: list[str]) -> Iterator[tuple[Path, str]]:
    if devices.slices and devices.slices.model == devices.model:
        yield (*path, "slices", "model"), f'"{devices.model}" is the model of the whole devices; name the slices apart'
    outer = devices.count
    for level in sorted(devices.cells, key=lambda name: below.index(name) if name in below else -1):
        size = devices.cells[level]
        if level not in below:
            yield (*path, "cells", level), f"not a level between node and device{did_you_mean(level, below)}"
        elif devices.count and (size > outer or outer % size):
            yield (*path, "cells", level), f"cells of {size} devices do not divide the {outer} around them evenly"
        else:
            outer = size
