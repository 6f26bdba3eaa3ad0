"""Try gangs on a cluster: the one answer to whether and where a gang fits.

Planning, explanation, what-if questions and refusal at submit all use it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import overload

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import DeviceShare, Placement, TaskPlacement
from corral.model.requests import GangRequest
from corral.scheduler.cluster.allocation import Allocation
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_fraction import unenforced
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.future_record import Place
from corral.scheduler.placement.engine_request import EngineRequest, translate
from corral.scheduler.placement.node_sharing import limited
from corral.scheduler.placement.search import Anchors, Search, Spot
from corral.scheduler.placement.shape import gang_shape, scattered
from corral.scheduler.placement.task_block import Blocks, blocks_of, numbered
from corral.spec.placement import network
from corral.spec.placement.level_name import spoken

_MOST_REQUESTS = 4096

Placer = Callable[["Trial", GangRequest], Placement | None]
"""Places a gang in a trial; returns None if it does not fit."""


_End = tuple[float, JobId] | tuple[float, EngineIndex, list[Allocation]]


def _time(ending: _End) -> float:
    return ending[0]


class Endings(Sequence[tuple[float, list[tuple[EngineIndex, Allocation]]]]):
    """The known ends and the resources that each frees, soonest first, looked up lazily."""

    def __init__(self, cluster: Cluster, placed: Sequence[tuple[float, EngineIndex, list[Allocation]]]) -> None:
        self._cluster = cluster
        self._ends: Sequence[_End] = cluster.ends
        if placed:
            ends: list[_End] = [*cluster.ends]
            for ending in reversed(placed):  # of equal times the first one placed comes first
                ends.insert(bisect_left(ends, ending[0], key=_time), ending)
            self._ends = ends
        self._freed: dict[int, list[tuple[EngineIndex, Allocation]]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def until(self, time: float) -> list[tuple[float, list[tuple[EngineIndex, Allocation]]]]:
        """Return the ends up to a time."""
        return self[: bisect_right(self._ends, time, key=_time)]

    def count_before(self, time: float) -> int:
        """Return how many ends are before a time."""
        return bisect_left(self._ends, time, key=_time)

    @overload
    def __getitem__(self, at: int) -> tuple[float, list[tuple[EngineIndex, Allocation]]]: ...

    @overload
    def __getitem__(self, at: slice) -> list[tuple[float, list[tuple[EngineIndex, Allocation]]]]: ...

    def __getitem__(
        self, at: int | slice
    ) -> tuple[float, list[tuple[EngineIndex, Allocation]]] | list[tuple[float, list[tuple[EngineIndex, Allocation]]]]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        ending, found = self._ends[at], self._freed.get(at)
        if found is None:
            found = self._freed[at] = (
                self._cluster.allocations(ending[1])
                if len(ending) == 2
                else [(ending[1], allocation) for allocation in ending[2]]
            )
        return ending[0], found


class Trial:
    """Tries gangs on a cluster; `undo` restores the cluster bit for bit."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._marks = self.marks()
        self._bound = self._bindings()
        self._placed: list[tuple[float, EngineIndex, list[Allocation]]] = []
        self._levels = tuple(index.tree.levels for index in cluster.engines.values())

    def undo(self) -> None:
        """Undo every gang placed since the trial began."""
        for name, mark in self._marks.items():
            self.cluster.engines[name].undo(mark)
        self._unbind(self._bound)

    @property
    def untouched(self) -> bool:
        """Return whether the cluster is as it was when the trial began."""
        return self._marks == self.marks() and self._bound == self._bindings()

    @property
    def touched(self) -> set[Place]:
        """Return the nodes on which something is held or released otherwise than when the trial began."""
        engines = self.cluster.engines
        return {(name, each.at) for name, mark in self._marks.items() for each, _ in engines[name].trail[mark:]}

    def _bindings(self) -> dict[str, int]:
        return {name: cells.mark() for name, cells in self.cluster.ownership.cells.items()}

    def _unbind(self, marks: Mapping[str, int]) -> None:
        for name, mark in marks.items():
            self.cluster.ownership.cells[name].undo(mark)

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Undo everything tried inside the block when it ends."""
        marks, bound = self.marks(), self._bindings()
        placed = len(self._placed)
        try:
            yield
        finally:
            for name, mark in marks.items():
                self.cluster.engines[name].undo(mark)
            self._unbind(bound)
            del self._placed[placed:]

    def lift(self, tasks: Mapping[JobId, Collection[TaskKey]]) -> None:
        """Assume that these tasks have ended, except those already terminating."""
        for index, allocation in self.holds(tasks):
            index.lift(allocation)

    def holds(self, tasks: Mapping[JobId, Collection[TaskKey]]) -> list[tuple[EngineIndex, Allocation]]:
        """Return the allocations of these tasks, except those already terminating."""
        found = []
        for job, keys in tasks.items():
            gang = self.cluster.gangs.by_job[job]
            found += self.cluster.allocations(job, without=(gang.charges.keys() - keys) | gang.leaving)
        return found

    def lift_leaving(self) -> None:
        """Assume that all terminating tasks have ended."""
        for job in sorted(self.cluster.gangs.leaving):
            gang = self.cluster.gangs.by_job[job]
            for index, allocation in self.cluster.allocations(job, without=gang.charges.keys() - gang.leaving):
                index.lift(allocation)

    def allocations(
        self, request: GangRequest, place: Placer | None = None
    ) -> list[tuple[EngineIndex, Allocation]] | None:
        """Return the allocations of the gang, placed by `place` or by this trial; they are held until undone."""
        marks = self.marks()
        if (place(self, request) if place else self.place(request)) is None:
            return None
        return [
            (index, allocation)
            for name, index in self.cluster.engines.items()
            for allocation in index.taken(marks[name])
        ]

    def reaches(self, request: GangRequest, shape: Hashable, places: Iterable[tuple[str, int]]) -> bool:
        """Return whether any task of the gang may fit at one of these places (engine and node position).

        If none does, a gang that did not fit before resources were released there still does not fit.
        """
        for engine, at in places:
            index = self.cluster.engines[engine]
            ask = self.engine_request(request, index, shape, rdma=request.needs_rdma)
            if not ask.plain or limited(index, ask) or any(index.room_at(part.shape, at) for part in ask.parts):
                return True
        return False

    def started(self, request: GangRequest, marks: dict[str, int], now: float) -> None:
        """Record when a gang placed in this trial ends, if its duration is bounded."""
        if request.max_duration_seconds:
            for name, mark in marks.items():
                index = self.cluster.engines[name]
                allocations = index.taken(mark)
                if allocations:
                    self._placed.append((now + request.max_duration_seconds, index, allocations))

    def endings(self) -> Endings:
        """Return the known ends of running gangs and gangs of this trial, soonest first."""
        return Endings(self.cluster, self._placed)

    def placed_endings(self) -> list[tuple[float, list[tuple[EngineIndex, Allocation]]]]:
        """Return the known ends of the gangs of this trial."""
        return [(end, [(index, allocation) for allocation in allocations]) for end, index, allocations in self._placed]

    def marks(self) -> dict[str, int]:
        """Return the trail position of every engine, to undo to."""
        return {name: index.mark() for name, index in self.cluster.engines.items()}

    def place(self, request: GangRequest, shape: Hashable | None = None) -> Placement | None:
        """Place the gang and hold it until `undo`; elastic roles get as many tasks as fit. None if it does not fit.

        `shape` is the request's `gang_shape`, if the caller has it.
        """
        shape = shape or gang_shape(request)
        full = [len(role.indexes) for role in request.roles]
        for index, search in self._searches(request, shape):
            spots = search.place(full)
            if spots:
                return self.placement(request, index, search.ask, spots)
        if all(role.minimum == len(role.indexes) for role in request.roles):
            return None
        return self._elastic(request, shape)

    def _elastic(self, request: GangRequest, shape: Hashable) -> Placement | None:
        """Place the most tasks that fit on one engine: minimums first, then role by role."""
        best: tuple[int, EngineIndex, Search, list[int]] | None = None
        for index, search in self._searches(request, shape):
            counts = self._most(request, index, search)
            if sum(counts) > (best[0] if best else 0):
                best = sum(counts), index, search, counts
        if best is None:
            return None
        _, index, search, counts = best
        spots = search.place(counts)
        return self.placement(request, index, search.ask, spots) if spots else None

    def _most(self, request: GangRequest, index: EngineIndex, search: Search) -> list[int]:
        counts = [role.minimum for role in request.roles]
        if not _fits(index, search, counts):
            return []
        for at, role in enumerate(request.roles):
            low, high = role.minimum, len(role.indexes)
            while low < high:
                counts[at] = (low + high + 1) // 2
                low, high = (counts[at], high) if _fits(index, search, counts) else (low, counts[at] - 1)
            counts[at] = low
        return counts

    def _searches(self, request: GangRequest, shape: Hashable) -> Iterator[tuple[EngineIndex, Search]]:
        """Yield a search for every engine that may hold the gang: first with its preferred network, then without."""
        for rdma in network.tries(request.network_rdma) if not request.in_several_cells else ():
            for index in self.cluster.engines.values():
                if index.unknown:
                    continue
                anchors = self.anchors(request, index)
                seen = self._pinned(request, index) if request.pinned_cell else index
                if anchors is not None and seen is not None:
                    for avoid in (True, False) if index.tree.avoided else (False,):
                        ask = self.engine_request(request, index, shape, rdma=rdma, avoid=avoid)
                        yield seen, Search(seen, ask, anchors, request.job, request.inputs)

    def _pinned(self, request: GangRequest, index: EngineIndex) -> EngineIndex | None:
        """Return the view of an engine's pinned cell that the gang must use; None if the cell is not on that engine."""
        found = self.cluster.ownership.pinned(request.queue, request.pinned_cell)
        return found[1] if found is not None and found[0] == index.tree.engine else None

    def anchors(self, request: GangRequest, index: EngineIndex) -> Anchors | None:
        """Return where the running rest of the gang is; None if it runs on another engine."""
        if not request.beside:
            return Anchors(blocks=blocks_of(request, {}, ())) if scattered(request) else Anchors()
        position = index.tree.position
        job = sorted({position[node] for node in request.beside if node in position})
        if not job:
            others = self.cluster.engines.values()
            known = any(node in other.tree.position for other in others for node in request.beside)
            return None if known else Anchors()
        roles: dict[str, list[int]] = {role.role: [] for role in request.roles}
        for task, hold in self.cluster.holds(request.job).items():
            if task.role in roles and hold.node in position:
                roles[task.role].append(position[hold.node])
        running = tuple(tuple(sorted(found)) for found in roles.values())
        blocks = self._blocks(request, index) if any(role.topology.group_size > 1 for role in request.roles) else ()
        return Anchors(tuple(job), tuple(tuple(sorted(set(found))) for found in running), running, blocks)

    def _blocks(self, request: GangRequest, index: EngineIndex) -> tuple[Blocks | None, ...]:
        """Return the blocks of the tasks that join a running gang."""
        position, gang = index.tree.position, self.cluster.gangs.by_job.get(request.job)
        holds = self.cluster.holds(request.job).items()
        there = {task: (position[hold.node], hold.devices) for task, hold in holds if hold.node in position}
        return blocks_of(request, there, gang.leaving if gang else ())

    def engine_request(
        self, request: GangRequest, index: EngineIndex, shape: Hashable, *, rdma: bool = False, avoid: bool = False
    ) -> EngineRequest:
        """Translate the request for an engine, cached per shape."""
        key = (shape, rdma, avoid, self._levels)
        found = index.engine_requests.get(key)
        if found is None:
            if len(index.engine_requests) >= _MOST_REQUESTS:
                index.engine_requests.clear()
            found = index.engine_requests[key] = translate(
                request, index.tree.levels, self._levels, rdma=rdma, avoid=avoid
            )
        return found

    def placement(self, request: GangRequest, index: EngineIndex, ask: EngineRequest, spots: list[Spot]) -> Placement:
        """Build the placement from spots, ordered along the topology."""
        nodes = index.tree.nodes
        if len(spots) == 1:
            spot, role = spots[0], request.roles[spots[0].role]
            order = [(spot, role.indexes[0])]
        else:
            joins = self.anchors(request, index) if request.beside or scattered(request) else None
            order = _number(request, spots, joins.blocks if joins else ())
        tasks = tuple(
            TaskPlacement(
                request.roles[spot.role].role,
                number,
                nodes[spot.at].name,
                indexes(spot.devices),
                rank,
                DeviceShare(spot.part.compute, spot.part.memory) if spot.part else None,
            )
            for rank, (spot, number) in enumerate(order)
        )
        notes = ask.notes + _missed(request, ask, index, spots) if _has_preferences(ask) else ask.notes
        if request.network_rdma == "preferred" and not any(part.shape.selector for part in ask.parts):
            notes = (*notes, network.NOT_PREFERRED)
        if any(part.shape.share for part in ask.parts):
            notes = (*notes, *unenforced(index.tree, spots))
        return Placement(tasks, notes)


def _fits(index: EngineIndex, search: Search, counts: Sequence[int]) -> bool:
    mark = index.mark()
    found = search.place(counts)
    index.undo(mark)
    return found is not None


def _order(spot: Spot) -> tuple[int, int]:
    return (spot.at, spot.devices & -spot.devices)


def _number(request: GangRequest, spots: list[Spot], of_role: Sequence[Blocks | None] = ()) -> list[tuple[Spot, int]]:
    """Assign each role's task indexes to its spots along the topology, block by block."""
    ordered = sorted(spots, key=_order)
    blocks: dict[tuple[int, int], list[Spot]] = {}
    for spot in ordered:
        blocks.setdefault((spot.role, spot.block), []).append(spot)
    if len(blocks) < len(ordered):
        whole_first = sorted(blocks.values(), key=lambda block: (-len(block), _order(block[0])))
        ordered = [spot for block in whole_first for spot in block]
    found: list[tuple[Spot, int]] = []
    for at, role in enumerate(request.roles):
        mine, known = [spot for spot in ordered if spot.role == at], of_role[at] if of_role else None
        found += numbered(mine, known) if known else zip(mine, role.indexes, strict=False)
    return sorted(found, key=lambda entry: (*_order(entry[0]), entry[0].role, entry[1]))


def _has_preferences(ask: EngineRequest) -> bool:
    return bool(ask.preferred or any(part.preferred for part in ask.parts))


def _missed(request: GangRequest, ask: EngineRequest, index: EngineIndex, spots: list[Spot]) -> tuple[str, ...]:
    """Return a note for each preferred level that the placement does not keep inside one cell."""
    scopes = [("the job", ask.preferred, spots)]
    scopes += [
        (f"role {request.roles[part.role].role}", part.preferred, [spot for spot in spots if spot.role == part.role])
        for part in ask.parts
    ]
    notes = []
    for who, preferred, members in scopes:
        if preferred and members and not share_cell(index, members, preferred):
            wanted, got = spoken(index.tree.levels[preferred]), spoken(index.tree.levels[common_depth(index, members)])
            notes.append(f"{who} preferred one {wanted}; it shares one {got}")
    return tuple(notes)


def share_cell(index: EngineIndex, spots: Sequence[Spot], depth: int) -> bool:
    """Return whether all spots are in one cell at a depth."""
    inner = depth - index.tree.node_depth
    if inner <= 0 or any(spot.at != spots[0].at for spot in spots):
        return common_depth(index, spots) >= depth
    union = 0
    for spot in spots:
        union |= spot.devices
    return any(union & ~cell == 0 for cell in index.tree.layouts[spots[0].at].depths[inner])


def common_depth(index: EngineIndex, spots: Sequence[Spot]) -> int:
    """Return the depth of the lowest cell that contains all spots."""
    tree = index.tree
    first = spots[0].at
    if all(spot.at == first for spot in spots):
        union = 0
        for spot in spots:
            union |= spot.devices
        return tree.node_depth + tree.layouts[first].narrowest(union) if union else len(tree.levels) - 1
    for depth in range(tree.node_depth - 1, 0, -1):
        of = tree.cells[depth].of
        if all(of[spot.at] == of[first] for spot in spots):
            return depth
    return 0
