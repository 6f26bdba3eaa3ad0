"""Why: a request names levels in words; one engine's search needs depths, shapes and blocks, worked out once a shape."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from corral.model.requests import Company, GangRequest, RoleAsk, TopologyAsk
from corral.scheduler.levels import resolve, spoken
from corral.scheduler.shapes import TaskShape, task_shape


class Batch(NamedTuple):
    """`blocks` blocks of `size` equal tasks, each block inside one cell at depth `depth` of the engine's tree."""

    role: int
    shape: TaskShape
    blocks: int
    size: int
    depth: int

    @property
    def devices(self) -> int:
        """How many devices all of it needs."""
        return self.blocks * self.size * self.shape.devices


class Part(NamedTuple):
    """One role: `required` and `preferred` are the depths of the cell that all of it should share."""

    role: int
    shape: TaskShape
    required: int
    preferred: int
    group_size: int
    group_depth: int
    spread: int = 0
    """The depth of the cells that its tasks are spread over; 0 is no spreading."""
    max_skew: int = 0
    same_model: bool = False

    def even(self, tasks: Collection[int]) -> bool:
        """Whether its tasks, so many in each cell that is open to it, are spread as evenly as it asks."""
        return not self.max_skew or max(tasks) - min(tasks) <= self.max_skew

    def batches(self, count: int, node_depth: int) -> tuple[Batch, ...]:
        """`count` tasks as full blocks and one of the rest."""
        if self.group_size <= 1 and self.group_depth <= node_depth:
            return (Batch(self.role, self.shape, count, 1, node_depth),) if count else ()
        full, rest = divmod(count, self.group_size)
        out = []
        if full:
            out.append(Batch(self.role, self.shape, full, self.group_size, self.group_depth))
        if rest:
            out.append(Batch(self.role, self.shape, 1, rest, self.group_depth))
        return tuple(out)


class Ask(NamedTuple):
    """A whole gang in the terms of one engine."""

    required: int
    preferred: int
    parts: tuple[Part, ...]
    """What is hardest to place is placed first."""
    notes: tuple[str, ...]
    unknown_level: str
    """A required level that nobody knows; then nothing fits."""
    company: Company = Company()
    averse_depth: int = 0
    """The depth of the cells that it shares with none of those it is averse to."""
    tags: tuple[str, ...] = ()
    same_model: bool = False
    plain: bool = True
    """Whether room for its tasks is all that it asks of the nodes together; its tags may matter to others."""

    @property
    def particular(self) -> bool:
        """Whether it matters who else is on a node, or how many of its own."""
        company = self.company
        return company.exclusive or company.one_per_node or bool(company.averse)


def understand(
    request: GangRequest, levels: Sequence[str], known: Sequence[Sequence[str]], *, rdma: bool, avoid: bool = False
) -> Ask:
    """What a request means on an engine with these levels; `known` are the levels of all engines.

    `rdma`: only on nodes with such a network; `avoid`: only on nodes that do not mind.
    """
    reader = _Reader(levels, known)
    required, preferred = reader.scope(request.topology)
    parts = [reader.part(at, role, task_shape(role, rdma=rdma, avoid=avoid)) for at, role in enumerate(request.roles)]
    parts = [_knowing(part, required, levels.index("node")) for part in parts]
    if not any(part.shape.devices for part in parts):
        node = levels.index("node")
        required, preferred = min(required, node), min(preferred, node)
    parts.sort(key=_hardness)
    company = request.company or Company()
    averse = min(reader.level(company.averse_level), levels.index("node")) if company.averse else 0
    model = request.topology.same_model
    notes = tuple(reader.notes)
    ask = Ask(required, preferred, tuple(parts), notes, reader.unknown, company, averse, request.tags, model)
    special = ask.particular or model or any(part.spread or part.same_model for part in parts)
    return ask._replace(plain=not special)


def _knowing(part: Part, required: int, node_depth: int) -> Part:
    """The part, with only devices of which it is known where they are, when that is what it requires."""
    inside = max(required, part.required, part.group_depth) > node_depth
    return part._replace(shape=part.shape._replace(known=True)) if inside and part.shape.devices else part


def _hardness(part: Part) -> tuple[object, ...]:
    """What is harder to place sorts first: what names devices, then what names models, then what needs most."""
    shape = part.shape
    named = (not shape.ids, not shape.model, not shape.kind, shape.share is not None)
    return (*named, -shape.devices, -shape.cpu, -shape.memory, part.role)


class _Reader:
    """Turns level names into depths and gathers the notes about levels that are not there."""

    def __init__(self, levels: Sequence[str], known: Sequence[Sequence[str]]) -> None:
        self.levels = levels
        self.known = known
        self.notes: list[str] = []
        self.unknown = ""

    def scope(self, topology: TopologyAsk) -> tuple[int, int]:
        """The required depth, and the preferred one if it is there (else 0)."""
        required = self.level(topology.required)
        preferred = 0
        if topology.preferred:
            if topology.preferred in self.levels:
                preferred = self.levels.index(topology.preferred)
            else:
                self._note(f"the preferred level {topology.preferred} does not exist here and was ignored")
        return required, preferred

    def part(self, at: int, role: RoleAsk, shape: TaskShape) -> Part:
        """One role in depths; tasks without devices are nowhere in particular inside their node."""
        node, topology = self.levels.index("node"), role.topology
        required, preferred = self.scope(topology)
        size, depth = topology.group_size, self.level(topology.group_required)
        if not size or not depth:
            size, depth = 1, node
        if not shape.devices:
            required, preferred, depth = min(required, node), min(preferred, node), min(depth, node)
        spread = min(self.level(topology.spread_level), node)
        return Part(at, shape, required, preferred, size, depth, spread, topology.max_skew, topology.same_model)

    def level(self, level: str) -> int:
        """The depth of a level that has to be; the next lower one's where there is none."""
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
