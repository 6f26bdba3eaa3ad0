"""Translate a gang request into the terms of one engine: depths, shapes and blocks.

A request names topology levels; the search needs depths in the engine's tree. The result is cached per gang shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from corral.model.requests import GangRequest, NodeSharing, RoleRequest, TopologyRequest
from corral.scheduler.cluster.topology_level import resolve
from corral.scheduler.placement.shape import TaskShape, task_shape
from corral.spec.placement.level_name import spoken


class Batch(NamedTuple):
    """`blocks` blocks of `size` equal tasks, each block inside one cell at depth `depth` of the engine's tree."""

    role: int
    shape: TaskShape
    blocks: int
    size: int
    depth: int

    @property
    def devices(self) -> int:
        """The number of devices that all blocks need."""
        return self.blocks * self.size * self.shape.devices


class EngineRole(NamedTuple):
    """One role; `required` and `preferred` are depths of the cell that all its tasks should share."""

    role: int
    shape: TaskShape
    required: int
    preferred: int
    group_size: int
    group_depth: int
    spread: int = 0
    """The depth of the cells that its tasks are spread over; 0 means no spreading."""
    topology: TopologyRequest = TopologyRequest()
    """The rules as requested, for those that have no depth."""

    def batches(self, count: int, node_depth: int) -> tuple[Batch, ...]:
        """Split `count` tasks into full blocks and one block for the rest."""
        if self.group_size <= 1 and self.group_depth <= node_depth:
            return (Batch(self.role, self.shape, count, 1, node_depth),) if count else ()
        full, rest = divmod(count, self.group_size)
        out = []
        if full:
            out.append(Batch(self.role, self.shape, full, self.group_size, self.group_depth))
        if rest:
            out.append(Batch(self.role, self.shape, 1, rest, self.group_depth))
        return tuple(out)


class EngineRequest(NamedTuple):
    """A whole gang in the terms of one engine."""

    required: int
    preferred: int
    parts: tuple[EngineRole, ...]
    """In placement order: the roles that are hardest to place come first."""
    notes: tuple[str, ...]
    unknown_level: str
    """A required level that no engine knows; the gang fits nowhere then."""
    sharing: NodeSharing = NodeSharing()
    anti_affinity_depth: int = 0
    """The depth of the cells that it shares with no job matching its anti-affinity tags."""
    tags: tuple[str, ...] = ()
    topology: TopologyRequest = TopologyRequest()
    """The rules for all roles together, as requested."""
    plain: bool = True
    """Whether it has no rule that spans several nodes or tasks; other gangs may still avoid its tags."""

    @property
    def particular(self) -> bool:
        """Whether it has a rule on sharing nodes."""
        return self.sharing.asked


def translate(
    request: GangRequest, levels: Sequence[str], known: Sequence[Sequence[str]], *, rdma: bool, avoid: bool = False
) -> EngineRequest:
    """Translate a request for an engine with these levels; `known` are the levels of all engines.

    `rdma` restricts it to nodes with an RDMA network, `avoid` to nodes without a PreferNoSchedule taint that it does
    not tolerate.
    """
    reader = _Reader(levels, known)
    required, preferred = reader.scope(request.topology)
    parts = [reader.part(at, role, task_shape(role, rdma=rdma, avoid=avoid)) for at, role in enumerate(request.roles)]
    parts = [_knowing(part, required, levels.index("node")) for part in parts]
    if not any(part.shape.devices for part in parts):
        node = levels.index("node")
        required, preferred = min(required, node), min(preferred, node)
    parts.sort(key=_hardness)
    sharing = request.company or NodeSharing()
    depth = min(reader.level(sharing.averse_level), levels.index("node")) if sharing.averse else 0
    topology = request.topology
    notes = tuple(reader.notes)
    ask = EngineRequest(
        required, preferred, tuple(parts), notes, reader.unknown, sharing, depth, request.tags, topology
    )
    special = ask.particular or topology.same_model or any(part.spread or part.topology.same_model for part in parts)
    return ask._replace(plain=not special)


def _knowing(part: EngineRole, required: int, node_depth: int) -> EngineRole:
    """Restrict the part to devices with a known position, if it requires a level below the node."""
    inside = max(required, part.required, part.group_depth) > node_depth
    return part._replace(shape=part.shape._replace(known=True)) if inside and part.shape.devices else part


def _hardness(part: EngineRole) -> tuple[object, ...]:
    """Sort key, hardest to place first: named devices, then named models and kinds, then the largest requests."""
    shape = part.shape
    named = (not shape.ids, not shape.model, not shape.kind, shape.share is not None)
    return (*named, -shape.devices, -shape.cpu, -shape.memory, part.role)


class _Reader:
    """Turns level names into depths and collects notes about levels that do not exist."""

    def __init__(self, levels: Sequence[str], known: Sequence[Sequence[str]]) -> None:
        self.levels = levels
        self.known = known
        self.notes: list[str] = []
        self.unknown = ""

    def scope(self, topology: TopologyRequest) -> tuple[int, int]:
        """Return the required depth, and the preferred depth or 0 where that level does not exist."""
        required = self.level(topology.required)
        preferred = 0
        if topology.preferred:
            if topology.preferred in self.levels:
                preferred = self.levels.index(topology.preferred)
            else:
                self._note(f"the preferred level {topology.preferred} does not exist here and was ignored")
        return required, preferred

    def part(self, at: int, role: RoleRequest, shape: TaskShape) -> EngineRole:
        """Translate one role; tasks without devices are not constrained below the node."""
        node, topology = self.levels.index("node"), role.topology
        required, preferred = self.scope(topology)
        size, depth = topology.group_size, self.level(topology.group_required)
        if not size or not depth:
            size, depth = 1, node
        if not shape.devices:
            required, preferred, depth = min(required, node), min(preferred, node), min(depth, node)
        spread = min(self.level(topology.spread_level), node)
        return EngineRole(at, shape, required, preferred, size, depth, spread, topology)

    def level(self, level: str) -> int:
        """Return the depth of a required level, or of the next narrower level where the engine lacks it."""
        depth = resolve(level, self.levels, self.known)
        if depth is None:
            self.unknown = level
            return len(self.levels) - 1
        if level and self.levels[depth] != level:
            self._note(f"there is no level {level} here: {spoken(self.levels[depth])} was required instead")
        return depth

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
