"""Read the cells above the nodes from Slurm's topology.conf.

`SwitchName=s0 Nodes=node[1-16]` is a rack, `SwitchName=top Switches=s[0-3]` a block around racks, a switch of such
switches a level `tier-3`, and so on. `BlockName=b0 Nodes=node[1-18]` (Slurm's topology/block) is a block. Other
settings (LinkSpeed, BlockSizes) are ignored. Source: Slurm's topology.conf(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from corral.spec import hostlists
from corral.spec.errors import Problem, SpecError, did_you_mean
from corral.spec.expanded_machines import Cells

MOST_BYTES = 4 * 1024 * 1024
_TIERS = ("rack", "block")
_WORD = re.compile(r"(\w+)=(\S+)")


@dataclass
class _Switch:
    line: int
    name: str
    nodes: str = ""
    below: list[str] = field(default_factory=list)
    above: _Switch | None = None
    tier: int = 0


@dataclass(frozen=True)
class Switches:
    """The nodes of each leaf switch, as the file writes them, with the cells above them, outermost first."""

    nodes: dict[str, Cells]
    levels: tuple[str, ...]
    """The levels above the node, outermost first."""

    def to_document(self) -> dict[str, object]:
        """An equivalent Cluster document; the nodes' resources are left for the administrator to add."""
        return {
            "kind": "Cluster",
            "levels": [*self.levels, "node", "numa", "nvlink", "pcie-switch", "device"],
            "nodes": {names: {"cells": dict(cells)} for names, cells in self.nodes.items()},
        }


def is_switches(text: str) -> bool:
    """Whether the text is a topology.conf."""
    return re.search(r"^\s*(SwitchName|BlockName)=", text, re.IGNORECASE | re.MULTILINE) is not None


def read_switches(text: str, filename: str = "topology.conf") -> Switches:
    """The cells above the nodes in a topology.conf.

    Raises SpecError with the line for an unknown or repeated switch, a cycle, or a node below two switches.
    """
    if len(text) > MOST_BYTES:
        raise SpecError([Problem(f"longer than {MOST_BYTES} bytes", filename=filename)])
    problems: list[Problem] = []
    blocks, switches = _parsed(text, filename, problems)
    if not problems:
        problems += _joined(switches, filename)
    if not problems:
        problems += _overlaps([*blocks.values(), *switches.values()], filename)
    if problems:
        raise SpecError(problems)
    leaves = [switch for switch in switches.values() if switch.nodes]
    nodes: dict[str, Cells] = {block.nodes: (("block", block.name),) for block in blocks.values()}
    nodes |= {leaf.nodes: _cells(leaf) for leaf in leaves}
    tiers = max((switch.tier for switch in switches.values()), default=2)
    return Switches(nodes, tuple(_level(tier) for tier in range(tiers, 0, -1)))


def _parsed(text: str, filename: str, problems: list[Problem]) -> tuple[dict[str, _Switch], dict[str, _Switch]]:
    blocks: dict[str, _Switch] = {}
    switches: dict[str, _Switch] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = {key.lower(): value for key, value in _WORD.findall(line.partition("#")[0])}
        kind = next((each for each in ("switchname", "blockname") if each in words), "")
        if not kind:
            continue
        known = switches if kind == "switchname" else blocks
        try:
            below = hostlists.expand_all(hostlists.parts(words["switches"])) if "switches" in words else []
            names = hostlists.expand_all(hostlists.parts(words["nodes"])) if "nodes" in words else []
        except ValueError as error:
            problems.append(Problem(str(error), (), number, 1, filename))
            continue
        made = _Switch(number, words[kind], words.get("nodes", ""), below)
        if made.name in known:
            problems.append(Problem(f'"{made.name}" is already there', (), number, 1, filename))
        if bool(names) == bool(below):
            said = f'"{made.name}" has either Nodes or Switches below it'
            problems.append(Problem(said, (), number, 1, filename))
        known[made.name] = made
    if not blocks and not switches:
        problems.append(Problem("no line says SwitchName= or BlockName=", filename=filename))
    return blocks, switches


def _joined(switches: dict[str, _Switch], filename: str) -> list[Problem]:
    """Link every switch to those below it and set their tiers; returns the problems."""
    problems = []
    for switch in switches.values():
        for name in switch.below:
            below = switches.get(name)
            if below is None:
                said = f'no switch is called "{name}"{did_you_mean(name, switches)}'
            elif below.above is not None:
                said = f'"{name}" is below "{below.above.name}" already'
            else:
                below.above = switch
                continue
            problems.append(Problem(said, (), switch.line, 1, filename))
    reached = {switch.name for switch in switches.values() if switch.nodes}
    for leaf in [switch for switch in switches.values() if switch.nodes]:
        here: _Switch | None = leaf
        tier = 1
        while here is not None and tier <= len(switches):
            here.tier = max(here.tier, tier)
            reached.add(here.name)
            here, tier = here.above, tier + 1
    lost = [switch for switch in switches.values() if switch.name not in reached]
    problems += [Problem(f'"{each.name}" goes round in a circle', (), each.line, 1, filename) for each in lost]
    return problems


def _overlaps(leaves: list[_Switch], filename: str) -> list[Problem]:
    home: dict[str, _Switch] = {}
    problems = []
    for leaf in leaves:
        for name in hostlists.expand(leaf.nodes) if leaf.nodes else ():
            other = home.setdefault(name, leaf)
            if other is not leaf:
                said = f'the node "{name}" is below "{other.name}" already'
                problems.append(Problem(said, (), leaf.line, 1, filename))
                break
    return problems


def _cells(leaf: _Switch) -> Cells:
    cells = []
    here: _Switch | None = leaf
    while here is not None:
        cells.append((_level(here.tier), here.name))
        here = here.above
    return tuple(reversed(cells))


def _level(tier: int) -> str:
    return _TIERS[tier - 1] if tier <= len(_TIERS) else f"tier-{tier}"
