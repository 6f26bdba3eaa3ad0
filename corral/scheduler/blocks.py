"""Why: a task that starts again belongs into the cell that the rest of its block runs in, not just near its gang.

Task i of a role belongs to block i // size (`TopologyAsk.group_size`), whatever became of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from corral.kernel.ids import TaskKey
from corral.kernel.units import counted
from corral.model.plan import Reason
from corral.model.requests import GangRequest, RoleAsk
from corral.scheduler.asks import Ask, Batch, Part
from corral.scheduler.fitting import WHOLE
from corral.scheduler.levels import spoken
from corral.scheduler.tree import Tree

if TYPE_CHECKING:
    from corral.scheduler.search import Search, Spot


class Cell(NamedTuple):
    """A cell that a block may be in: the nodes in [start, end), and the devices in `within` when it is inside a node."""

    start: int
    end: int
    within: int
    name: str


class Home(NamedTuple):
    """Where the placed rest of a block runs: by position the devices it holds there."""

    devices: tuple[tuple[int, int], ...]

    def cells(self, tree: Tree, depth: int) -> Iterator[Cell]:
        """The cell at a depth that it is in; several when it is in no single one."""
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
    """Which blocks the asked tasks of one role belong to, and where the rest of each runs that runs."""

    size: int
    asked: tuple[int, ...]
    homes: Mapping[int, Home]

    def members(self, count: int) -> dict[int, list[int]]:
        """By block its members among the first `count` tasks asked for."""
        found: dict[int, list[int]] = {}
        for index in islice(self.asked, count):
            found.setdefault(index // self.size, []).append(index)
        return found

    def batches(self, part: Part, count: int) -> tuple[Batch, ...]:
        """The first `count` tasks as blocks, largest first, without those that go to where their block is."""
        sizes = Counter(len(some) for block, some in self.members(count).items() if block not in self.homes)
        return tuple(
            Batch(part.role, part.shape, many, size, part.group_depth)
            for size, many in sorted(sizes.items(), reverse=True)
        )

    def numbers(self, count: int) -> tuple[dict[int, Iterator[int]], Iterator[int]]:
        """The first `count` tasks: by block those that go home, and the others, largest blocks first."""
        members = self.members(count)
        home = {block: iter(some) for block, some in members.items() if block in self.homes}
        new = sorted((-len(some), block) for block, some in members.items() if block not in self.homes)
        return home, iter([index for _, block in new for index in members[block]])


def blocks_of(
    request: GangRequest, holds: Mapping[TaskKey, tuple[int, int]], leaving: Collection[TaskKey]
) -> tuple[Blocks | None, ...]:
    """By role its blocks, or None where it has none; `holds` is the position and the devices of each task that runs."""
    found = tuple(_blocks(role, holds, leaving) for role in request.roles)
    return found if any(found) else ()


def _blocks(role: RoleAsk, holds: Mapping[TaskKey, tuple[int, int]], leaving: Collection[TaskKey]) -> Blocks | None:
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


def go_home(search: Search, ask: Ask, counts: Sequence[int]) -> bool:
    """Place the tasks whose block runs inside its cell; False when there is no room for all of them."""
    return all(
        search.put_home(part, len(tasks), block, home) for part, block, tasks, home in _returning(search, ask, counts)
    )


def _returning(search: Search, ask: Ask, counts: Sequence[int]) -> Iterator[tuple[Part, int, list[int], Home]]:
    for part in ask.parts:
        blocks = search.anchors.blocks[part.role]
        for block, tasks in blocks.members(counts[part.role]).items() if blocks else ():
            if blocks and block in blocks.homes:
                yield part, block, tasks, blocks.homes[block]


def no_room_at_home(search: Search, request: GangRequest) -> Reason | None:
    """Which block has no room for its tasks where the rest of it runs; None when all of them have."""
    if not search.anchors.blocks:
        return None
    tree, ask = search.index.tree, search.ask
    for part, block, tasks, home in _returning(search, ask, [role.minimum or 1 for role in request.roles]):
        room = next(few for few in range(len(tasks), -1, -1) if search.fits_home(part, few, home))
        if room == len(tasks):
            continue
        role, level = request.roles[part.role].role, spoken(tree.levels[part.group_depth])
        first, name = block * part.group_size, next(home.cells(tree, part.group_depth)).name
        where = f"the {level} {name}" if part.group_depth <= tree.node_depth else f"one {level} of {name}"
        message = (
            f"{role} {', '.join(map(str, tasks))} must be in {where} with the rest of the block "
            f"({first} to {first + part.group_size - 1}), and there is room for {room} of {counted(len(tasks), 'task')}."
        )
        return Reason("no-room-in-block", message, {"needed": len(tasks), "free": room, "block": block})
    return None


def numbered(spots: Sequence[Spot], blocks: Blocks) -> Iterator[tuple[Spot, int]]:
    """Each spot of one role, those of a block one after the other and larger blocks first, with the index of its task."""
    home, new = blocks.numbers(len(spots))
    for spot in spots:
        yield spot, next(home[home_of(spot.block)] if spot.block < 0 else new)


def home_of(block: int) -> int:
    """The block that a spot's number of a block at home stands for, and back."""
    return -1 - block
