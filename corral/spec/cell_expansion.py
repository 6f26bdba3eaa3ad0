"""Expand cell types and cells into nodes and devices; errors come with their path.

The model and the rules are HiveD's (OSDI 2020, section 3). Compact cells (`nodes: node[0001-8192]`) share one template
of devices per type, so that a large cluster costs little more than its names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain as chained
from typing import NamedTuple

from corral.spec import hostlists
from corral.spec.cell_type_resolution import Rule, level_name
from corral.spec.cell_types import NODE_NAME, Cell
from corral.spec.errors import Path, did_you_mean
from corral.spec.expanded_machines import Cells, DeviceDescription, NodeDescription, PinnedCell

Findings = list[tuple[Path, str]]
_MOST_NODES = 200_000


class Part(NamedTuple):
    """The part of a node that one cell describes."""

    path: Path
    rule: Rule
    chain: str
    upper: Cells
    devices: tuple[DeviceDescription, ...]


@dataclass
class Forest:
    """All cells, expanded: the parts of each node, the pinned cells, and the errors found."""

    rules: Mapping[str, Rule]
    describe: Callable[[str], tuple[str, int]]
    """Maps a device model to its kind and its memory in bytes."""
    parts: dict[str, list[Part]] = field(default_factory=dict)
    pinned: dict[str, PinnedCell] = field(default_factory=dict)
    findings: Findings = field(default_factory=list)
    shared: frozenset[str] = frozenset()
    """The node types whose nodes are described by several cells; set by `nodes`."""
    _names: set[tuple[str, str]] = field(default_factory=set)
    _templates: dict[tuple[str, str], tuple[DeviceDescription, ...]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, cell: Cell, path: Path) -> None:
        """Add a top-level cell, or the several equal ones that its name expands to."""
        rule = self.rules.get(cell.type)
        if rule is None:
            self.findings.append(((*path, "type"), self._unknown(cell.type)))
            return
        try:
            names = hostlists.expand(cell.name) if hostlists.is_range(cell.name) else [cell.name]
            nodes = hostlists.expand_all(cell.nodes)
        except ValueError as error:
            self.findings.append((path, str(error)))
            return
        if len(names) > 1 and (cell.children or cell.pinned):
            what = "children" if cell.children else "pinned"
            self.findings.append(((*path, what), f"{len(names)} cells at once cannot have it; write that cell alone"))
            return
        if not nodes and rule.above_node and not cell.children:
            self.findings.append(
                (path, f"missing the names of its nodes; write nodes with {rule.nodes * len(names)} names")
            )
            return
        if nodes and len(nodes) != rule.nodes * len(names):
            each = f"{len(names)} cells of {rule.nodes} nodes" if len(names) > 1 else f"{cell.type} has {rule.nodes}"
            self.findings.append(((*path, "nodes"), f"{len(nodes)} nodes are named, and {each}"))
            return
        for at, name in enumerate(names):
            inside = nodes[at * rule.nodes : (at + 1) * rule.nodes]
            self._cell(cell, path, rule, rule.name, name or self._numbered(rule), (), inside)

    def _unknown(self, name: str) -> str:
        return f'no cell type is called "{name}"{did_you_mean(name, self.rules)}' if name else "missing"

    def _numbered(self, rule: Rule) -> str:
        if not rule.above_node:
            return ""
        self._counts[rule.name] = number = self._counts.get(rule.name, 0) + 1
        return f"{rule.level}-{number}"

    def _cell(
        self, cell: Cell | None, path: Path, rule: Rule, chain: str, name: str, upper: Cells, nodes: Sequence[str]
    ) -> list[tuple[str, tuple[int, ...]]]:
        """Add a cell at or above a node; returns its device numbers by node."""
        if rule.is_node:
            held = self._on_node(cell, path, rule, chain, name or (nodes[0] if nodes else ""), upper)
        else:
            held = self._above(cell, path, rule, chain, name, upper, nodes)
        if cell is not None and cell.pinned:
            self._pin(cell.pinned, path, rule.name, held[0][0] if rule.is_node and held else name, held)
        return held

    def _above(
        self, cell: Cell | None, path: Path, rule: Rule, chain: str, name: str, upper: Cells, nodes: Sequence[str]
    ) -> list[tuple[str, tuple[int, ...]]]:
        if cell is not None and cell.devices:
            self.findings.append(((*path, "devices"), "devices are numbered in a node or below it"))
        if (rule.level, name) in self._names:
            self.findings.append((path, f'the {rule.level} "{name}" is already there; cells have unique names'))
        self._names.add((rule.level, name))
        upper = (*upper, (rule.level, name))
        child = self.rules[rule.child]
        children = self._children(cell, path, rule)
        per = child.nodes
        held = []
        for at, (inner, inner_path) in enumerate(children):
            own = nodes[at * per : (at + 1) * per]
            if inner is not None and inner.nodes:
                own = self._own_nodes(inner, inner_path, child)
            label = (inner.name if inner is not None else "") or ("" if child.is_node else f"{name}/{at}")
            held.append(self._cell(inner, inner_path, child, chain, label, upper, own))
        return list(chained.from_iterable(held))

    def _own_nodes(self, cell: Cell, path: Path, rule: Rule) -> list[str]:
        try:
            names = hostlists.expand_all(cell.nodes)
        except ValueError as error:
            self.findings.append(((*path, "nodes"), str(error)))
            return []
        if len(names) != rule.nodes:
            self.findings.append(((*path, "nodes"), f"{len(names)} nodes are named, and {rule.name} has {rule.nodes}"))
        return names

    def _children(self, cell: Cell | None, path: Path, rule: Rule) -> list[tuple[Cell | None, Path]]:
        """The children that a cell lists, or None for each child of its type when it lists none."""
        if cell is None or not cell.children:
            return [(None, path)] * rule.count
        if len(cell.children) != rule.count:
            said = f"{len(cell.children)} children are written, and each {rule.name} has {rule.count}"
            self.findings.append(((*path, "children"), said))
        found: list[tuple[Cell | None, Path]] = []
        for at, child in enumerate(cell.children[: rule.count]):
            where = (*path, "children", at)
            if child.type and child.type != rule.child:
                said = f'the children of {rule.name} are of type "{rule.child}", not "{child.type}"'
                self.findings.append(((*where, "type"), said))
                child = child.model_copy(update={"children": []})
            if hostlists.is_range(child.name):
                self.findings.append(((*where, "name"), "only cells at the top can be written many at once"))
            found.append((child, where))
        return found

    def _on_node(
        self, cell: Cell | None, path: Path, rule: Rule, chain: str, name: str, upper: Cells
    ) -> list[tuple[str, tuple[int, ...]]]:
        if not NODE_NAME.fullmatch(name):
            said = f'"{name}" is no name of a node' if name else "missing; a node needs its name"
            self.findings.append(((*path, "name"), said))
            return []
        if len(self.parts) == _MOST_NODES:
            self.findings.append((path, f"more than {_MOST_NODES} nodes"))
        if cell is None or not (cell.devices or cell.children):
            key = (rule.name, chain)
            devices = self._templates.get(key) or self._templates.setdefault(
                key, self._write(None, path, rule, chain, name)
            )
            indexes = rule.indexes
        else:
            devices = self._write(cell, path, rule, chain, name)
            indexes = tuple(device.index for device in devices)
        self.parts.setdefault(name, []).append(Part(path, rule, chain, upper, devices))
        return [(name, indexes)]

    def _write(self, cell: Cell | None, path: Path, rule: Rule, chain: str, node: str) -> tuple[DeviceDescription, ...]:
        """Describe the devices of a node, numbered by its cell and the cells inside it."""
        kind, memory = self.describe(rule.leaf)
        counts: dict[str, int] = {}
        out: list[DeviceDescription] = []

        def inside(cell: Cell | None, path: Path, name: str, numbers: Sequence[int], cells: Cells) -> None:
            numbers = self._numbers(cell, path, numbers, leaf=name not in self.rules)
            first = len(out)
            if name not in self.rules:
                out.append(DeviceDescription(numbers[0], kind, rule.leaf, memory, cells, chain))
            else:
                inner = self.rules[name]
                if not inner.is_node:
                    number = counts[inner.level] = counts.get(inner.level, -1) + 1
                    cells = (*cells, (inner.level, str(number)))
                per = len(numbers) // inner.count
                for at, (child, where) in enumerate(self._children(cell, path, inner)):
                    inside(child, where, inner.child, numbers[at * per : (at + 1) * per], cells)
            if cell is not None and cell.pinned and name != rule.name:
                self._pin(cell.pinned, path, name, "", [(node, tuple(device.index for device in out[first:]))])

        inside(cell, path, rule.name, range(rule.leaves), ())
        return tuple(out)

    def _numbers(self, cell: Cell | None, path: Path, usual: Sequence[int], *, leaf: bool) -> Sequence[int]:
        """The device numbers inside a cell; a single device may give its number as its name."""
        if cell is None:
            return usual
        if cell.nodes:
            self.findings.append(((*path, "nodes"), "there are no nodes inside a node"))
        if leaf and not cell.devices and cell.name.isdigit() and int(cell.name) < hostlists.MOST_DEVICES:
            return [int(cell.name)]
        if cell.devices and len(cell.devices) != len(usual):
            said = f"{len(cell.devices)} devices are numbered, and the cell has {len(usual)}"
            self.findings.append(((*path, "devices"), said))
            return usual
        return cell.devices or usual

    def _pin(self, pin: str, path: Path, type_name: str, name: str, held: list[tuple[str, tuple[int, ...]]]) -> None:
        if pin in self.pinned:
            self.findings.append(((*path, "pinned"), f'"{pin}" is already the name of a pinned cell'))
        rule = self.rules.get(type_name)
        self.pinned[pin] = PinnedCell(rule.level if rule else "device", type_name, name, tuple(held))

    # ---- expanded nodes

    def nodes(self, common: Callable[[Rule], NodeDescription]) -> list[NodeDescription]:
        """Every node with all its parts; `common` returns the fields that all nodes of a type share."""
        shared = {part.rule.name for parts in self.parts.values() if len(parts) > 1 for part in parts}
        bases = {rule.name: common(rule) for rule in self.rules.values() if rule.is_node}
        wrapped: dict[int, tuple[DeviceDescription, ...]] = {}
        out = []
        for name, parts in self.parts.items():
            first = parts[0]
            devices = first.devices
            if first.rule.name in shared:
                devices = self._together(parts, wrapped)
            base = bases[first.rule.name]
            upper = first.upper if len(parts) == 1 else self._upper(parts)
            out.append(replace(base, name=name, cells=upper, devices=devices))
        self.shared = frozenset(shared)
        for pin, cell in self.pinned.items():
            if cell.type in shared:
                self.pinned[pin] = replace(cell, level=level_name(cell.type), name="")
        return out

    def _together(
        self, parts: list[Part], known: dict[int, tuple[DeviceDescription, ...]]
    ) -> tuple[DeviceDescription, ...]:
        """The devices of all parts of a node; each part becomes a cell below the node."""
        out: dict[int, DeviceDescription] = {}
        for part in parts:
            level = level_name(part.rule.name)
            own = known.get(id(part.devices))
            if own is None:
                own = known[id(part.devices)] = tuple(_inside(level, device) for device in part.devices)
            for device in own:
                if device.index in out:
                    self.findings.append((part.path, f"device {device.index} of the node is already in another cell"))
                out[device.index] = device
        return tuple(out[index] for index in sorted(out))

    def _upper(self, parts: list[Part]) -> Cells:
        """The cells above a node that several cells describe."""
        cells: dict[str, str] = {}
        for part in parts:
            for level, name in part.upper:
                if cells.setdefault(level, name) != name:
                    said = f'its node is in the {level} "{cells[level]}" too; a node stands in one {level}'
                    self.findings.append((part.path, said))
        return tuple(cells.items())


def _inside(level: str, device: DeviceDescription) -> DeviceDescription:
    """Put the device into a cell of its node type; the type prefixes the names of the cells below."""
    return replace(device, cells=((level, "0"), *((inner, f"{level}/{name}") for inner, name in device.cells)))
