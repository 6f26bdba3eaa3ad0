"""Place restarted tasks of a block in the cell where the rest of the block runs.

Task i of a role always belongs to block i // size (`TopologyRequest.group_size`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from corral.kernel.ids import TaskKey
from corral.model.plan import Reason
from corral.model.requests import GangRequest, RoleRequest
from corral.scheduler.cluster.topology_tree import Tree
from corral.scheduler.placement.engine_request import Batch, EngineRequest, EngineRole
from corral.scheduler.placement.node_fit import WHOLE
from corral.spec.placement import topology
from corral.spec.placement.level_name import spoken

if TYPE_CHECKING:
    from corral.scheduler.placement.search import Search, Spot


class Cell(NamedTuple):
    """A cell that a block may use: the nodes in [start, end), and inside a node only the devices in `within`."""

    start: int
    end: int
    within: int
    name: str


class Home(NamedTuple):
    """Where the placed rest of a block runs: pairs of node position and held devices."""

    devices: tuple[tuple[int, int], ...]

    def cells(self, tree: Tree, depth: int) -> Iterator[Cell]:
        """Yield the cell at a depth that it is in, or each cell that it touches."""
        if depth <= tree.node_depth:
            level = tree.cells[depth]
            for cell in sorted({level.of[at] for at, _ in self.devices}):
                yield Cell(int(level.starts[cell]), int(level.ends[cell]), WHOLE, level.names[cell])
            return
        for at, held in self.devices:
            touched = [mask for mask in tree.layouts[at].depths[depth - tree.node_depth] if mask & held]
            for mask in sorted(touched, key=lambda mask: (held & ~mask).bit_count()):
                yield Cell(at, at + 1, mask, tree.nodes[at].name)


class Blocks(NamedTuple):
    """The blocks of one role's requested tasks, and where the running rest of each block is."""

    size: int
    asked: tuple[int, ...]
    homes: Mapping[int, Home]

    def members(self, count: int) -> dict[int, list[int]]:
        """Return the first `count` requested tasks grouped by block."""
        found: dict[int, list[int]] = {}
        for index in islice(self.asked, count):
            found.setdefault(index // self.size, []).append(index)
        return found

    def batches(self, part: EngineRole, count: int) -> tuple[Batch, ...]:
        """Return the first `count` tasks as blocks, largest first, without blocks that have a home."""
        sizes = Counter(len(some) for block, some in self.members(count).items() if block not in self.homes)
        return tuple(
            Batch(part.role, part.shape, many, size, part.group_depth)
            for size, many in sorted(sizes.items(), reverse=True)
        )

    def numbers(self, count: int) -> tuple[dict[int, Iterator[int]], Iterator[int]]:
        """Return the first `count` task numbers: by block those with a home, and the rest, largest block first."""
        members = self.members(count)
        home = {block: iter(some) for block, some in members.items() if block in self.homes}
        new = sorted((-len(some), block) for block, some in members.items() if block not in self.homes)
        return home, iter([index for _, block in new for index in members[block]])


def blocks_of(
    request: GangRequest, holds: Mapping[TaskKey, tuple[int, int]], leaving: Collection[TaskKey]
) -> tuple[Blocks | None, ...]:
    """Return the blocks of each role, or None for a role without blocks; empty if no role has any.

    `holds` gives the node position and the devices of each running task.
    """
    found = tuple(_blocks(role, holds, leaving) for role in request.roles)
    return found if any(found) else ()


def _blocks(role: RoleRequest, holds: Mapping[TaskKey, tuple[int, int]], leaving: Collection[TaskKey]) -> Blocks | None:
    size = role.topology.group_size
    if size < 2 or not role.topology.group_required:
        return None
    asked = {index // size for index in role.indexes}
    rest: dict[int, dict[int, int]] = {}
    for task, (at, devices) in holds.items():
        if task.role == role.role and task.index // size in asked and task not in leaving:
            there = rest.setdefault(task.index // size, {})
            there[at] = there.get(at, 0) | devices
    return Blocks(size, role.indexes, {block: Home(tuple(sorted(there.items()))) for block, there in rest.items()})


def place_in_block_cell(search: Search, ask: EngineRequest, counts: Sequence[int]) -> bool:
    """Place the tasks whose block already runs somewhere; return False if any of them finds no room."""
    return all(
        search.put_in_block_cell(part, len(tasks), block, home)
        for part, block, tasks, home in _returning(search, ask, counts)
    )


def _returning(
    search: Search, ask: EngineRequest, counts: Sequence[int]
) -> Iterator[tuple[EngineRole, int, list[int], Home]]:
    for part in ask.parts:
        blocks = search.anchors.blocks[part.role]
        for block, tasks in blocks.members(counts[part.role]).items() if blocks else ():
            if blocks and block in blocks.homes:
                yield part, block, tasks, blocks.homes[block]


def no_room_in_block_cell(search: Search, request: GangRequest) -> Reason | None:
    """Return a reason naming the first block whose home cell is full, or None if every block has room."""
    if not search.anchors.blocks:
        return None
    tree, ask = search.index.tree, search.ask
    for part, _, tasks, home in _returning(search, ask, [role.minimum or 1 for role in request.roles]):
        room = next(few for few in range(len(tasks), -1, -1) if search.fits_block_cell(part, few, home))
        if room == len(tasks):
            continue
        role, level = request.roles[part.role].role, spoken(tree.levels[part.group_depth])
        name = next(home.cells(tree, part.group_depth)).name
        where = f"the {level} {name}" if part.group_depth <= tree.node_depth else f"one {level} of {name}"
        return Reason(*topology.unmet_group(role, tasks, part.group_size, where, room))
    return None


def numbered(spots: Sequence[Spot], blocks: Blocks) -> Iterator[tuple[Spot, int]]:
    """Pair each spot of one role with its task index, block by block, larger blocks first."""
    home, new = blocks.numbers(len(spots))
    for spot in spots:
        yield spot, next(home[home_of(spot.block)] if spot.block < 0 else new)


def home_of(block: int) -> int:
    """Encode the number of a block with a home as a negative spot number, or decode it."""
    return -1 - block
