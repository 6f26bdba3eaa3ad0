"""Why: small gangs may slip past a big one only where that cannot make the big one wait longer.

The first gang that does not fit (the head) gets a reservation, as in EASY backfill (Lifka, 1995), with the topology:

- Every running gang of bounded duration is taken to end at its bound, every other one never. If the head fits at some
  such time, the first is its *start*, and the place that it would get then is its *reserved place*.
- If it fits at no such time, its start is unknown, and the reserved place is where least is missing now: the
  cell of its required level with the most room for it, and there the nodes with the most room.

A later gang may start if it is over by the start; any other must leave alone what the head needs of its reserved place
beyond what ends there by the start. So when gangs run until their bounds, the head starts no later than if nothing had
been let past it; and when they do not, nothing that is still running after the start holds what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.asks import Ask, Part
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import FOREVER
from corral.scheduler.explaining import refused_by
from corral.scheduler.index import EngineIndex
from corral.scheduler.placing import Trial
from corral.scheduler.shapes import gang_shape
from corral.scheduler.takes import Take, nothing, take_of

_MOST_CELLS = 48
"""So many cells are looked at for an unbounded reservation before any place on the empty cluster is taken."""


class Need(NamedTuple):
    """What the head needs of one node, and how much of that is given back there before it starts."""

    engine: str
    wanted: Take
    returned: Take


class Reservation:
    """The head's place and start; `hold` keeps others off it for the rest of a trial."""

    def __init__(self, job: JobId, start: float, needs: tuple[Need, ...]) -> None:
        self.job = job
        self.start = start
        self.needs = needs
        self._held: list[tuple[EngineIndex, Take]] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reservation):
            return NotImplemented
        return (self.job, self.start, self.needs) == (other.job, other.start, other.needs)

    __hash__ = None  # type: ignore[assignment]

    def lets_pass(self, request: GangRequest, now: float) -> bool:
        """Whether the gang is over before the head starts, wherever it runs."""
        return 0 < request.max_duration_seconds <= self.start - now < FOREVER

    def hold(self, cluster: Cluster) -> None:
        """Take what the head needs and has to find free, unless it is held already."""
        if self._held is not None:
            return
        self._held = []
        for engine, wanted, returned in self.needs:
            index, at = cluster.engines[engine], wanted.at
            take = Take(
                at,
                wanted.devices & index.free[at],
                _short(wanted.tasks, returned.tasks, index.tasks[at]),
                _short(wanted.cpu, returned.cpu, index.cpu[at]),
                _short(wanted.memory, returned.memory, index.memory[at]),
                _short(wanted.shm, returned.shm, index.shm[at]),
                index.short(at, wanted.extra, returned.extra),
            )
            index.take(take)
            self._held.append((index, take))

    def lift(self) -> None:
        """Let go of it again, until the next `hold`."""
        for index, take in self._held or ():
            index.lift(take)
        self._held = None

    def suppose_lifted(self) -> None:
        """As `lift`, where the trial undoes it: the reservation goes on being held."""
        for index, take in self._held or ():
            index.lift(take)

    def occupy(self, cluster: Cluster) -> None:
        """Take all that it wants, not only what is free: for trials that suppose that room was made."""
        for engine, wanted, _ in self.needs:
            cluster.engines[engine].take(wanted)

    def forget(self) -> None:
        """The trial that held it is undone."""
        self._held = None


def reservation_of(job: JobId, start: float, takes: Sequence[tuple[EngineIndex, Take]]) -> Reservation:
    """The reservation of just what a gang would take."""
    wanted: dict[tuple[str, int], Take] = {}
    for index, take in takes:
        key = (index.tree.engine, take.at)
        wanted[key] = _sum(take, wanted.get(key))
    needs = tuple(Need(key[0], take, nothing(take.at)) for key, take in wanted.items())
    return Reservation(job, start, needs)


def reserve(trial: Trial, request: GangRequest, now: float) -> Reservation | None:
    """The reservation of a gang that does not fit now; None when it never could on the machines that work."""
    return _bounded(trial, request, now) or _unbounded(trial, request)


def _short(wanted: int, returned: int, free: int) -> int:
    return max(0, min(free, wanted - returned))


Ending = tuple[EngineIndex, Take]


def _bounded(trial: Trial, request: GangRequest, now: float) -> Reservation | None:
    """The first time at which the head fits, letting running gangs end in the order of their bounds."""
    return after_endings(trial, request, now, trial.endings())


def after_endings(
    trial: Trial, request: GangRequest, now: float, endings: Sequence[tuple[float, list[Ending]]]
) -> Reservation | None:
    """The place and the first time at which a gang fits, if this ends as told (soonest first); None when it never does."""
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


def _needs_after(
    trial: Trial, request: GangRequest, endings: Sequence[tuple[float, list[Ending]]]
) -> tuple[Need, ...] | None:
    """What the head would take once all of this has ended; None when it does not fit even then."""
    with trial.supposing():
        returned: dict[tuple[str, int], Take] = {}
        for index, take in chain.from_iterable(freed for _, freed in endings):
            index.lift(take)
            key = (index.tree.engine, take.at)
            returned[key] = _sum(take, returned.get(key))
        takes = trial.takes(request)
        if takes is None:
            return None
        wanted: dict[tuple[str, int], Take] = {}
        for index, take in takes:
            key = (index.tree.engine, take.at)
            wanted[key] = _sum(take, wanted.get(key))
        return tuple(Need(key[0], take, returned.get(key, nothing(take.at))) for key, take in wanted.items())


def _sum(take: Take, more: Take | None) -> Take:
    return take if more is None else take.plus(more)


def _unbounded(trial: Trial, request: GangRequest) -> Reservation | None:
    """The place where least is missing, or where the empty machines would hold the gang when its shape is intricate."""
    empty = Trial(trial.cluster.emptied(healed=False))
    if refused_by(empty.cluster, request, gang_shape(request)):
        return None
    plain = not request.beside and all(role.devices.share is None for role in request.roles)
    nearest = _nearest(trial, empty, request) if plain else None
    return Reservation(request.job, FOREVER, tuple(nearest or _anywhere(empty, request)))


def _anywhere(empty: Trial, request: GangRequest) -> list[Need]:
    """What the gang would take of the empty machines."""
    with empty.supposing():
        return [Need(index.tree.engine, take, nothing(take.at)) for index, take in empty.takes(request) or ()]


def _nearest(trial: Trial, empty: Trial, request: GangRequest) -> list[Need] | None:
    counts = [role.minimum for role in request.roles]
    shape = gang_shape(request)
    choices = []
    for name, index in trial.cluster.engines.items():
        ask = trial.ask(request, index, shape, rdma=request.network_rdma == "required")
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
        ask = trial.ask(request, now, shape, rdma=request.network_rdma == "required")
        needs = _gather(now, then, ask, counts, depth, cell)
        if needs:
            return needs
    return None


def _scope(ask: Ask) -> int:
    return max(ask.required, ask.parts[0].required) if len(ask.parts) == 1 else ask.required


def _missing(index: EngineIndex, ask: Ask, counts: Sequence[int], depth: int) -> NDArray[np.int64]:
    """By cell of the required level, how many tasks find no room now."""
    missing = np.zeros(len(index.tree.cells[depth].names), dtype=np.int64)
    for part in ask.parts:
        missing += np.maximum(0, counts[part.role] - index.slots(part.shape).totals[depth])
    return missing


def _gather(
    now: EngineIndex, then: EngineIndex, ask: Ask, counts: Sequence[int], depth: int, cell: int
) -> list[Need] | None:
    """Reserve in one cell the nodes with the most room now, as far as they would hold the gang when empty."""
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
                then.take(take_of(part.shape, at, _any_devices(then, part, at, tasks), tasks))
                needs.append(Need(now.tree.engine, take_of(part.shape, at, wanted, tasks), nothing(at)))
                left -= tasks
            if left:
                return None
        return needs
    finally:
        then.undo(mark)


def _roomiest(now: EngineIndex, part: Part, start: int, end: int) -> list[int]:
    """The nodes of a range, most room now first, then most devices free, then in their order."""
    shape = part.shape
    room = now.slots(shape).room[start:end]
    single = shape._replace(devices=min(1, shape.devices), ids=(), cpu=0, memory=0, shm=0, more=())
    free = now.slots(single).room[start:end]
    order = np.lexsort((-free, -room))
    found: list[int] = (start + order).tolist()
    return found


def _wanted(now: EngineIndex, part: Part, at: int, tasks: int, reserved: int, *, whole: bool) -> int:
    """The free devices of a node to keep: as many as are needed there, all while fewer are free or cells matter."""
    if not part.shape.devices:
        return 0
    free = now.free[at] & now.slots(part.shape).masks[at] & ~reserved
    count = tasks * part.shape.devices
    inner = part.group_depth > now.tree.node_depth
    if whole or inner or part.shape.ids or free.bit_count() <= count:
        return free
    return now.tree.layouts[at].choose(free, count)


def _any_devices(then: EngineIndex, part: Part, at: int, tasks: int) -> int:
    if not part.shape.devices:
        return 0
    free = then.free[at] & then.slots(part.shape).masks[at]
    return then.tree.layouts[at].choose(free, tasks * part.shape.devices)
