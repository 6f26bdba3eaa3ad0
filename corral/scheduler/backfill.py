"""Reserve a place for the head of the queue, and let later gangs pass it only where they cannot delay it.

The head is the first gang that does not fit. It gets a reservation as in EASY backfill (Lifka, 1995), extended to the
topology:

- Every running gang with a bounded duration is assumed to end at its bound, every other one never. If the head fits at
  one of these times, the first is its *start*, and the place found for that time is its *reserved place*.
- If it fits at none of them, its start is unknown. The reserved place is then the cell of its required level that lacks
  the fewest tasks now, and in it the nodes with the most room.

A later gang may start if it ends before the head's start. Any other gang must leave free the resources that the head
needs of its reserved place, less those that are released there by the start. If gangs run until their bounds, the head
therefore starts no later than without backfill. If they end earlier, no gang that still runs after the start holds
resources that the head needs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.cluster.allocation import Allocation, allocation_of, nothing
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.future_record import Place
from corral.scheduler.events import FOREVER
from corral.scheduler.explain.shortage import refused_by
from corral.scheduler.placement.engine_request import EngineRequest, EngineRole
from corral.scheduler.placement.room_check import RoomCheck, room_check
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Trial

_AT_ONCE = 8
"""The endings that are released between two looks at the room."""
_MOST_CELLS = 48
"""The most cells examined for an unbounded reservation; then any place on the empty cluster is taken."""


class Need(NamedTuple):
    """The resources that the head needs of one node, and the part of them returned there before it starts."""

    engine: str
    wanted: Allocation
    returned: Allocation


class Reservation:
    """The head's place and start; `hold` keeps other gangs off it for the rest of a trial."""

    def __init__(
        self, job: JobId, start: float, needs: tuple[Need, ...], roomy: frozenset[Place] | None = None
    ) -> None:  # fmt: skip
        self.job = job
        self.start = start
        self.needs = needs
        self.roomy = roomy
        """The nodes with room for a task of the head at its start, where only these decide on its place; None: unknown."""
        self._held: list[tuple[EngineIndex, Allocation]] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reservation):
            return NotImplemented
        return (self.job, self.start, self.needs) == (other.job, other.start, other.needs)

    __hash__ = None  # type: ignore[assignment]

    def lets_pass(self, duration: int, now: float) -> bool:
        """Return whether a gang of this duration (0: unbounded) ends before the head starts, wherever it runs."""
        return 0 < duration <= self.longest_passing(now)

    def longest_passing(self, now: float) -> float:
        """Return the most seconds that a gang may take to end before the head starts; 0 if the start is unknown."""
        left = self.start - now
        return left if left < FOREVER else 0.0

    def hold(self, cluster: Cluster) -> None:
        """Take the part of the head's needs that must be free now, unless it is already held."""
        if self._held is not None:
            return
        self._held = []
        for engine, wanted, returned in self.needs:
            index, at = cluster.engines[engine], wanted.at
            allocation = Allocation(
                at,
                wanted.devices & index.free[at],
                _short(wanted.tasks, returned.tasks, index.tasks[at]),
                _short(wanted.cpu, returned.cpu, index.cpu[at]),
                _short(wanted.memory, returned.memory, index.memory[at]),
                _short(wanted.shm, returned.shm, index.shm[at]),
                index.short(at, wanted.extra, returned.extra),
            )
            index.take(allocation)
            self._held.append((index, allocation))

    def hold_unless_passed(self, request: GangRequest, cluster: Cluster, now: float) -> None:
        """Hold it against a gang, or release it for a gang that it lets pass."""
        if self.lets_pass(request.max_duration_seconds, now):
            self.lift()
        else:
            self.hold(cluster)

    def lift(self) -> None:
        """Release the reservation until the next `hold`."""
        for index, allocation in self._held or ():
            index.lift(allocation)
        self._held = None

    def lift_tentatively(self) -> None:
        """Release as `lift` does, but leave it marked as held: the trial restores it with `undo`."""
        for index, allocation in self._held or ():
            index.lift(allocation)

    def occupy(self, cluster: Cluster) -> None:
        """Take all wanted resources, free or not, in trials that assume evictions."""
        for engine, wanted, _ in self.needs:
            cluster.engines[engine].take(wanted)

    def forget(self) -> None:
        """Mark it as not held, after the trial that held it was undone."""
        self._held = None


def reservation_of(job: JobId, start: float, allocations: Sequence[tuple[EngineIndex, Allocation]]) -> Reservation:
    """Build the reservation of exactly the resources in `allocations`."""
    wanted: dict[tuple[str, int], Allocation] = {}
    for index, allocation in allocations:
        key = (index.tree.engine, allocation.at)
        wanted[key] = _sum(allocation, wanted.get(key))
    needs = tuple(Need(key[0], allocation, nothing(allocation.at)) for key, allocation in wanted.items())
    return Reservation(job, start, needs)


def reserve(trial: Trial, request: GangRequest, now: float, *, not_before: float = -inf) -> Reservation | None:
    """Return the reservation of a gang that does not fit now, or None if the working machines could never hold it.

    The caller knows that it starts `not_before` a time, which saves looks at earlier times.
    """
    return _bounded(trial, request, now, not_before) or _unbounded(trial, request)


def reserve_as_foreseen(trial: Trial, job: JobId, last: Reservation) -> Reservation:
    """Return a job's reservation of the same place and start, with what is returned there by then from now on."""
    nodes = {(engine, wanted.at) for engine, wanted, _ in last.needs}
    returned = _returned(trial.endings().until(last.start), nodes)
    needs = tuple(
        Need(engine, wanted, returned.get((engine, wanted.at), nothing(wanted.at))) for engine, wanted, _ in last.needs
    )
    return Reservation(job, last.start, needs, last.roomy)


def _short(wanted: int, returned: int, free: int) -> int:
    return max(0, min(free, wanted - returned))


Ending = tuple[EngineIndex, Allocation]


def _bounded(trial: Trial, request: GangRequest, now: float, not_before: float) -> Reservation | None:
    """Find the first time at which the head fits when running gangs end at their bounds."""
    endings = trial.endings()
    return after_endings(trial, request, now, endings, too_few=endings.count_before(not_before))


def after_endings(
    trial: Trial, request: GangRequest, now: float, endings: Sequence[tuple[float, list[Ending]]], *, too_few: int = 0
) -> Reservation | None:
    """Return the place and first time at which a gang fits after these endings, soonest first; None if never.

    The caller knows that the first `too_few` endings do not suffice.
    """
    check = room_check(trial, request, gang_shape(request))
    if check is not None:
        return _after_first_with_room(trial, request, now, endings, check, too_few)
    low, high, step = 0, 0, 1
    while high < len(endings):
        high, step = min(len(endings), high + step), step * 2
        if _needs_after(trial, request, endings[:high]) is not None:
            break
        low = high
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _needs_after(trial, request, endings[:middle]) is None:
            low = middle
        else:
            high = middle
    start = endings[high - 1][0]
    while high < len(endings) and endings[high][0] == start:
        high += 1
    needs = _needs_after(trial, request, endings[:high])
    return Reservation(request.job, max(now, start), needs) if needs else None


def _after_first_with_room(
    trial: Trial,
    request: GangRequest,
    now: float,
    endings: Sequence[tuple[float, list[Ending]]],
    has_room: RoomCheck,
    too_few: int,
) -> Reservation | None:
    """Return the same where totals tell the room, by one pass over the endings."""
    with trial.tentative():
        count = _lift_until_room(trial, endings, has_room, too_few)
        if count is None:
            return None
        start = endings[count - 1][0]
        while count < len(endings) and endings[count][0] == start:
            _lift(endings[count][1])
            count += 1
        roomy = has_room.places()
        needs = _needs(trial, request, endings[:count])
    return Reservation(request.job, max(now, start), needs, roomy) if needs else None


def _lift_until_room(
    trial: Trial, endings: Sequence[tuple[float, list[Ending]]], has_room: Callable[[], bool], too_few: int
) -> int | None:
    """Release what ends until there is room; return after how many endings that is, None if never.

    Room only grows, so after the first endings several are released between two looks, and the last of them once more
    one by one.
    """
    for _, freed in endings[:too_few]:
        _lift(freed)
    count = _lift_one_by_one(endings[too_few : too_few + _AT_ONCE], has_room)
    if count is not None:
        return too_few + count
    for first in range(too_few + _AT_ONCE, len(endings), _AT_ONCE):
        marks, group = trial.marks(), endings[first : first + _AT_ONCE]
        for _, freed in group:
            _lift(freed)
        if not has_room():
            continue
        for name, mark in marks.items():
            trial.cluster.engines[name].undo(mark)
        count = _lift_one_by_one(group, has_room)
        return None if count is None else first + count
    return None


def _lift_one_by_one(endings: Sequence[tuple[float, list[Ending]]], has_room: Callable[[], bool]) -> int | None:
    """Release what ends until there is room; return after how many endings that is, None if never."""
    for count, (_, freed) in enumerate(endings, 1):
        _lift(freed)
        if has_room():
            return count
    return None


def _needs_after(
    trial: Trial, request: GangRequest, endings: Sequence[tuple[float, list[Ending]]]
) -> tuple[Need, ...] | None:
    """Return the needs of the head after all these endings; None if it still does not fit."""
    with trial.tentative():
        for _, freed in endings:
            _lift(freed)
        return _needs(trial, request, endings)


def _lift(freed: Sequence[Ending]) -> None:
    for index, allocation in freed:
        index.lift(allocation)


def _returned(
    endings: Iterable[tuple[float, list[Ending]]], nodes: Container[tuple[str, int]]
) -> dict[tuple[str, int], Allocation]:
    """Return what is returned on each of some nodes, by engine and position."""
    returned: dict[tuple[str, int], Allocation] = {}
    for _, freed in endings:
        for index, allocation in freed:
            key = (index.tree.engine, allocation.at)
            if key in nodes:
                returned[key] = _sum(allocation, returned.get(key))
    return returned


def _needs(
    trial: Trial, request: GangRequest, endings: Iterable[tuple[float, list[Ending]]]
) -> tuple[Need, ...] | None:
    """Return the needs of the head in the state of the trial, after these endings; None if it does not fit."""
    allocations = trial.allocations(request)
    if allocations is None:
        return None
    wanted: dict[tuple[str, int], Allocation] = {}
    for index, allocation in allocations:
        key = (index.tree.engine, allocation.at)
        wanted[key] = _sum(allocation, wanted.get(key))
    returned = _returned(endings, wanted)
    return tuple(
        Need(key[0], allocation, returned.get(key, nothing(allocation.at))) for key, allocation in wanted.items()
    )


def _sum(allocation: Allocation, more: Allocation | None) -> Allocation:
    return allocation if more is None else allocation.plus(more)


def _unbounded(trial: Trial, request: GangRequest) -> Reservation | None:
    """Reserve the nearest place, or any place on the empty machines for shapes that `_nearest` cannot handle."""
    empty = Trial(trial.cluster.emptied(healed=False))
    if refused_by(empty.cluster, request, gang_shape(request)):
        return None
    plain = not request.beside and all(role.devices.share is None for role in request.roles)
    nearest = _nearest(trial, empty, request) if plain else None
    return Reservation(request.job, FOREVER, tuple(nearest or _anywhere(empty, request)))


def _anywhere(empty: Trial, request: GangRequest) -> list[Need]:
    """Return the needs of the gang on the empty machines."""
    with empty.tentative():
        return [
            Need(index.tree.engine, allocation, nothing(allocation.at))
            for index, allocation in empty.allocations(request) or ()
        ]


def _nearest(trial: Trial, empty: Trial, request: GangRequest) -> list[Need] | None:
    counts = [role.minimum for role in request.roles]
    shape = gang_shape(request)
    choices = []
    for name, index in trial.cluster.engines.items():
        ask = trial.engine_request(request, index, shape, rdma=request.needs_rdma)
        depth = min(index.tree.node_depth, _scope(ask))
        if (
            index.unknown
            or not ask.plain
            or any((part.required and len(ask.parts) > 1) or part.group_depth < depth for part in ask.parts)
        ):
            continue
        missing = _missing(index, ask, counts, depth)
        for cell in np.argsort(missing, kind="stable")[:_MOST_CELLS].tolist():
            choices.append((int(missing[cell]), name, depth, cell))
    for _, name, depth, cell in sorted(choices)[:_MOST_CELLS]:
        now, then = trial.cluster.engines[name], empty.cluster.engines[name]
        ask = trial.engine_request(request, now, shape, rdma=request.needs_rdma)
        needs = _gather(now, then, ask, counts, depth, cell)
        if needs:
            return needs
    return None


def _scope(ask: EngineRequest) -> int:
    return max(ask.required, ask.parts[0].required) if len(ask.parts) == 1 else ask.required


def _missing(index: EngineIndex, ask: EngineRequest, counts: Sequence[int], depth: int) -> NDArray[np.int64]:
    """Return for each cell at `depth` how many tasks find no room now."""
    missing = np.zeros(len(index.tree.cells[depth].names), dtype=np.int64)
    for part in ask.parts:
        missing += np.maximum(0, counts[part.role] - index.slots(part.shape).totals[depth])
    return missing


def _gather(
    now: EngineIndex, then: EngineIndex, ask: EngineRequest, counts: Sequence[int], depth: int, cell: int
) -> list[Need] | None:
    """Reserve the nodes of one cell that have the most room now, as far as they would hold the gang when empty."""
    cells = now.tree.cells[depth]
    mark = then.mark()
    needs: list[Need] = []
    reserved: dict[int, int] = {}
    try:
        for part in ask.parts:
            left = counts[part.role]
            empty = then.slots(part.shape)
            for at in _roomiest(now, part, int(cells.starts[cell]), int(cells.ends[cell])):
                if not left:
                    break
                tasks = min(left, empty.measure(then, at))
                if not tasks:
                    continue
                wanted = _wanted(now, part, at, tasks, reserved.get(at, 0), whole=_scope(ask) > now.tree.node_depth)
                reserved[at] = reserved.get(at, 0) | wanted
                then.take(allocation_of(part.shape, at, _any_devices(then, part, at, tasks), tasks))
                needs.append(Need(now.tree.engine, allocation_of(part.shape, at, wanted, tasks), nothing(at)))
                left -= tasks
            if left:
                return None
        return needs
    finally:
        then.undo(mark)


def _roomiest(now: EngineIndex, part: EngineRole, start: int, end: int) -> list[int]:
    """Return the nodes of a range ordered by most room, then most free devices, then position."""
    shape = part.shape
    room = now.slots(shape).room[start:end]
    single = shape._replace(devices=min(1, shape.devices), ids=(), cpu=0, memory=0, shm=0, more=())
    free = now.slots(single).room[start:end]
    order = np.lexsort((-free, -room))
    found: list[int] = (start + order).tolist()
    return found


def _wanted(now: EngineIndex, part: EngineRole, at: int, tasks: int, reserved: int, *, whole: bool) -> int:
    """Choose the free devices to keep on a node: only as many as needed, or all if cells inside it matter."""
    if not part.shape.devices:
        return 0
    free = now.free[at] & now.slots(part.shape).masks[at] & ~reserved
    count = tasks * part.shape.devices
    inner = part.group_depth > now.tree.node_depth
    if whole or inner or part.shape.ids or free.bit_count() <= count:
        return free
    return now.tree.layouts[at].choose(free, count)


def _any_devices(then: EngineIndex, part: EngineRole, at: int, tasks: int) -> int:
    if not part.shape.devices:
        return 0
    free = then.free[at] & then.slots(part.shape).masks[at]
    return then.tree.layouts[at].choose(free, tasks * part.shape.devices)
