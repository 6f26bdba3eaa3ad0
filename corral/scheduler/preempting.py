"""Why: a gang that is owed room that others hold gets it by ending the fewest and the least of them, under named rules.

Candidates are sorted by rule, priority and damage; the shortest run of them with which the gang fits is found by
doubling and halving on the real search, and whoever turns out not to be in the way is let off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.queues import Reclaim, WithinQueue
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation, reservation_of
from corral.scheduler.cells import Cell
from corral.scheduler.gangs import Running
from corral.scheduler.guarantees import owner_of, place_best, place_owned
from corral.scheduler.placing import Placer, Trial
from corral.scheduler.queues import QueueNode, QueueTree, divide

_RULES = (Rule.GUARANTEE, Rule.OPPORTUNISTIC, Rule.SHRINK, Rule.RECLAIM, Rule.PRIORITY, Rule.CONSOLIDATION, Rule.GROW)
_SLACK = 1e-6
_MOST_LET_OFF = 24
"""Among so many victims each is tried whether it is needed; among more only those elsewhere are let off."""


@dataclass(frozen=True)
class Victim:
    """A running gang that a waiting one may have ended, and why; or some tasks of an elastic one."""

    gang: Running
    rule: Rule
    cost: float
    """Device-seconds of work lost; of a task that an elastic gang gives up: less the more it has to spare."""
    tasks: tuple[TaskKey, ...]

    def key(self) -> tuple[int, int, float, float]:
        """Who yields first: by rule, then lowest priority, least damage, latest start; then who was submitted last."""
        gang = self.gang
        return (_RULES.index(self.rule), gang.priority, self.cost, -gang.placed_at)


class Preemption:
    """Finds victims in one cycle; what it learns of the queues holds for that cycle."""

    def __init__(self, trial: Trial, hungry: frozenset[str], now: float) -> None:
        self.trial = trial
        self.now = now
        self.again = inf
        """When a gang that is still protected by its minimum run time may be looked at again."""
        self.places: list[Reservation] = []
        """The places that gangs get when those have ended that were told to; nobody else may count on them."""
        self.kept: set[JobId] = set()
        """The gangs that these places are for."""
        self._bound: list[tuple[str, Cell]] = []
        """The cells that were bound for the place found last."""
        self._queues: QueueTree = trial.cluster.queues
        self._hungry = hungry
        self._chosen: dict[JobId, set[TaskKey]] = {}
        """The tasks that were told to yield in this cycle."""
        self._moved: dict[str, list[int]] = {}
        """By queue, what it will hold more or less when those have ended and the places are taken."""
        for job in trial.cluster.gangs.leaving:
            gang = trial.cluster.gangs.by_job[job]
            for task in gang.leaving:
                self._move(gang.queue, gang.charges[task], -1)

    def look_again(self, at: float) -> None:
        """Something may be otherwise at this time though nothing happens until then."""
        self.again = min(self.again, at)

    def _move(self, queue: str, amounts: Sequence[int], sign: int) -> None:
        for node in self._queues.find(queue).chain():
            moved = self._moved.setdefault(node.name, [0] * len(self._queues.names))
            for at, amount in enumerate(amounts):
                moved[at] += sign * amount

    def _held(self, node: QueueNode, at: int) -> int:
        moved = self._moved.get(node.name)
        return node.used[at] + (moved[at] if moved else 0)

    def leaving_place(self, request: GangRequest, ask: Sequence[int], place: Placer = place_best) -> Reservation | None:
        """The place of a gang that fits as soon as those have ended that were told to; it is kept for it from now on."""
        if not self.trial.cluster.gangs.leaving and not self._chosen:
            return None
        return self._keep(request, ask, self._place(request, (), place))

    def could_leave(self, request: GangRequest, place: Placer) -> bool:
        """Whether there would be such a place."""
        if not self.trial.cluster.gangs.leaving and not self._chosen:
            return False
        return self._place(request, (), place) is not None

    def find(self, request: GangRequest, ask: Sequence[int]) -> tuple[Victim, ...]:
        """Victims with whom gone the gang fits, as few and as cheap as can be; none when nobody may be ended for it.

        The place that it gets is kept for it for the rest of the cycle.
        """
        owner = owner_of(self.trial, request)
        if owner:
            chosen = self.choose(request, list(self.guests(request, owner)), place_owned)
            if chosen:
                self.settle(request, ask, chosen, place_owned)
                return chosen
        chosen = self.choose(request, list(self.candidates(request, ask)))
        if chosen:
            self.settle(request, ask, chosen)
        return chosen

    def choose(
        self, request: GangRequest, candidates: Sequence[Victim], place: Placer = place_best
    ) -> tuple[Victim, ...]:
        """Of these as few and as cheap as can be with whom gone the gang fits; none when it does not without all."""
        latest_first = sorted(candidates, key=lambda victim: victim.gang.job, reverse=True)
        victims = sorted(latest_first, key=Victim.key)
        count = self._shortest(request, victims, place)
        return () if count is None else tuple(self._needed(request, victims[:count], place))

    def settle(
        self, request: GangRequest, ask: Sequence[int], chosen: Sequence[Victim], place: Placer = place_best
    ) -> None:
        """These yield, and the place that the gang gets then is kept for it for the rest of the cycle."""
        self._keep(request, ask, self._place(request, chosen, place))
        for victim in chosen:
            told = self._chosen.setdefault(victim.gang.job, set())
            for task in set(victim.tasks) - told:
                self._move(victim.gang.queue, victim.gang.charges[task], -1)
            told.update(victim.tasks)

    def finds_room_again(self, request: GangRequest, chosen: Sequence[Victim]) -> bool:
        """Whether all of these fit somewhere else once the gang has its place."""
        with self.trial.supposing():
            self._suppose_gone(chosen)
            wanted = [request, *(victim.gang.request for victim in chosen if victim.gang.request is not None)]
            return len(wanted) == len(chosen) + 1 and all(place_best(self.trial, each) for each in wanted)

    def tasks_without(self, request: GangRequest, chosen: Sequence[Victim]) -> int:
        """How many tasks of a gang would have a place with these gone."""
        with self.trial.supposing():
            self._suppose_gone(chosen)
            placement = place_best(self.trial, request)
            return len(placement.tasks) if placement else 0

    def whole(self, gang: Running, rule: Rule) -> Victim | None:
        """All of a gang that is not told to yield yet; None when it may not be asked to, or only a part is left."""
        left = self._left(gang)
        if not gang.preemptible or len(left) < len(gang.charges):
            return None
        return Victim(gang, rule, gang.cost(self.now), tuple(sorted(left)))

    def _keep(self, request: GangRequest, ask: Sequence[int], place: Reservation | None) -> Reservation | None:
        if place is not None:
            self._move(request.queue, ask, 1)
            place.hold(self.trial.cluster)
            for engine, cell in self._bound:
                self.trial.cluster.ownership.cells[engine].bind(cell, owner_of(self.trial, request))
            self.places.append(place)
            self.kept.add(request.job)
        return place

    # -- who may be asked to yield ------------------------------------------------------------------------------------

    def might(self, request: GangRequest, ask: Sequence[int]) -> bool:
        """Whether any gang may be asked to yield to this one, or was."""
        if request.job in self.kept:
            return True
        owner = owner_of(self.trial, request)
        if owner and next(self.guests(request, owner), None) is not None:
            return True
        return next(self.candidates(request, ask), None) is not None

    def guests(self, request: GangRequest, owner: str) -> Iterator[Victim]:
        """Who yields to an owner in its cells: whoever is not guaranteed there, and its own gangs of lower priority."""
        ownership = self.trial.cluster.ownership
        for gang in self.trial.cluster.gangs.by_job.values():
            if gang.job == request.job or not (left := self._left(gang)):
                continue
            if not gang.guaranteed:
                yield Victim(gang, Rule.GUARANTEE, gang.cost(self.now), tuple(sorted(left)))
            elif gang.priority < request.priority and gang.preemptible and ownership.owner(gang.queue) == owner:
                yield Victim(gang, Rule.PRIORITY, gang.cost(self.now), tuple(sorted(left)))

    def candidates(self, request: GangRequest, ask: Sequence[int]) -> Iterator[Victim]:
        """The running gangs that the rules let this one have ended."""
        gangs = self.trial.cluster.gangs
        own = self._queues.find(request.queue)
        if request.priority >= 0:
            for levels in gangs.by_queue.values():
                for priority, members in levels.items():
                    if priority < 0:
                        yield from self._victims(members.values(), request, Rule.OPPORTUNISTIC)
        if own.spec.within_queue is WithinQueue.LOWER_PRIORITY:
            below = (gang for gang in gangs.below(own.name, request.priority) if gang.priority >= 0)
            yield from self._victims(below, request, Rule.PRIORITY)
        for priority, members in gangs.by_queue.get(own.name, {}).items():
            if priority <= request.priority:
                yield from self._spare(members.values(), request)
        if own.spec.reclaim is not Reclaim.NEVER and request.priority >= 0:
            yield from self._borrowers(request, own, ask)

    def _victims(self, gangs: Iterable[Running], request: GangRequest, rule: Rule) -> Iterator[Victim]:
        """Those of the gangs that may yield, each with what is left of it."""
        for gang in gangs:
            if gang.guaranteed and rule is not Rule.PRIORITY:
                continue
            if gang.preemptible and gang.job != request.job and (left := self._left(gang)):
                yield Victim(gang, rule, gang.cost(self.now), tuple(sorted(left)))

    def _left(self, gang: Running) -> set[TaskKey]:
        left = gang.charges.keys() - gang.leaving
        return left - self._chosen[gang.job] if gang.job in self._chosen else left

    def _spare(self, gangs: Iterable[Running], request: GangRequest) -> Iterator[Victim]:
        """Single tasks of elastic gangs that have more than they need; who has most to spare gives first."""
        for gang in gangs:
            if gang.job == request.job or (gang.guaranteed and gang.queue != request.queue):
                continue
            told = self._chosen.get(gang.job, ())
            spare = list(gang.spare())
            for rank, task in enumerate(spare):
                if task not in told:
                    yield Victim(gang, Rule.SHRINK, float(rank - len(spare)), (task,))

    def _borrowers(self, request: GangRequest, own: QueueNode, ask: Sequence[int]) -> Iterator[Victim]:
        """Gangs of the queues that hold more than their fair part, while this one's has less than its own."""
        for name, levels in self.trial.cluster.gangs.by_queue.items():
            sides = self._queues.apart(own.name, name)
            if sides is None:
                continue
            mine, theirs = sides
            fair = self.fair_parts(mine.parent)
            if not self._entitled(own, mine, ask, fair):
                continue
            beyond = [self._held(theirs, at) - part for at, part in enumerate(fair[theirs.name])]
            wanted = [at for at, amount in enumerate(ask) if amount and beyond[at] > 0]
            if not wanted:
                continue
            lowest_first = sorted(levels.items())
            gangs = [
                gang for _, members in lowest_first for gang in sorted(members.values(), key=_newest, reverse=True)
            ]
            for victim in self._spare(gangs, request):
                if any(beyond[at] > 0 for at in wanted):
                    charge = victim.gang.charges[victim.tasks[0]]
                    beyond = [left - held for left, held in zip(beyond, charge, strict=True)]
                    yield victim
            for victim in self._victims(gangs, request, Rule.RECLAIM):
                gang = victim.gang
                if gang.priority < 0 or not any(beyond[at] > 0 and gang.amounts[at] for at in wanted):
                    continue
                if own.spec.reclaim is Reclaim.LOWER_PRIORITY and gang.priority >= request.priority:
                    continue
                protected_until = gang.placed_at + self._queues.find(name).spec.min_runtime_seconds
                if self.now < protected_until:
                    self.look_again(protected_until)
                    continue
                beyond = [left - held for left, held in zip(beyond, gang.amounts, strict=True)]
                yield victim

    def _entitled(self, own: QueueNode, top: QueueNode, ask: Sequence[int], fair: dict[str, list[float]]) -> bool:
        """Whether the queue, and each above it up to `top`, stays within its fair part with the gang."""
        for node in own.chain():
            part = fair[node.name] if node is top else self.fair_parts(node.parent)[node.name]
            if any(amount and self._held(node, at) + amount > part[at] + _SLACK for at, amount in enumerate(ask)):
                return False
            if node is top:
                return True
        return True

    def fair_parts(self, parent: QueueNode | None) -> dict[str, list[float]]:
        """By child what it should hold now: what it deserves, and by weight its part of the rest, as far as it wants."""
        if parent is None:
            return {}
        children = parent.children
        if parent.parent is None:
            whole: Sequence[float] = self._queues.total
        else:
            whole = self.fair_parts(parent.parent)[parent.name]
        parts: dict[str, list[float]] = {child.name: [] for child in children}
        for at, total in enumerate(whole):
            claims = [
                (
                    float(min(child.deserved[at], child.limit[at])),
                    child.spec.weight,
                    min(
                        child.limit[at],
                        child.borrowing[at],
                        inf if self._wants(child) else float(self._held(child, at)),
                    ),
                )
                for child in children
            ]
            for child, part in zip(children, divide(float(total), claims), strict=True):
                parts[child.name].append(part)
        return parts

    def _wants(self, node: QueueNode) -> bool:
        return node.name in self._hungry or any(self._wants(child) for child in node.children)

    # -- which of them ------------------------------------------------------------------------------------------------

    def _shortest(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> int | None:
        """How many of the first are enough; None when all of them are not."""
        if not victims or not self._fits_without(request, victims, place):
            return None
        low, high = 0, 1
        while high < len(victims) and not self._fits_without(request, victims[:high], place):
            low, high = high, high * 2
        high = min(high, len(victims))
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits_without(request, victims[:middle], place):
                high = middle
            else:
                low = middle
        return high

    def _fits_without(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> bool:
        with self.trial.supposing():
            self._suppose_gone(victims)
            return place(self.trial, request) is not None

    def _suppose_gone(self, victims: Sequence[Victim]) -> None:
        """The cluster when these, and all that were told to, have ended, and the places kept for others are taken."""
        for place in self.places:
            place.suppose_lifted()
        self.trial.lift_leaving()
        gone = {job: set(tasks) for job, tasks in self._chosen.items()}
        for victim in victims:
            gone.setdefault(victim.gang.job, set()).update(victim.tasks)
        self.trial.lift(gone)
        for place in self.places:
            place.occupy(self.trial.cluster)

    def _place(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> Reservation | None:
        with self.trial.supposing():
            self._suppose_gone(victims)
            cells = self.trial.cluster.ownership.cells
            marks = {engine: of_engine.mark() for engine, of_engine in cells.items()}
            takes = self.trial.takes(request, place)
            self._bound = [(engine, cell) for engine, mark in marks.items() for cell in cells[engine].since(mark)]
            return reservation_of(request.job, self.now, takes) if takes is not None else None

    def _needed(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> list[Victim]:
        """Those in the way of the place found without all of them; the dearest are let off first if they can be."""
        found = self._place(request, victims, place)
        nodes = {(need.engine, need.wanted.at) for need in found.needs} if found else set()
        chosen = [victim for victim in victims if nodes & self._nodes(victim)]
        if not self._fits_without(request, chosen, place):
            chosen = list(victims)
        if len(chosen) <= _MOST_LET_OFF:
            for victim in sorted(chosen, key=Victim.key, reverse=True):
                rest = [other for other in chosen if other is not victim]
                if rest and self._fits_without(request, rest, place):
                    chosen = rest
        return chosen

    def _nodes(self, victim: Victim) -> set[tuple[str, int]]:
        others = victim.gang.charges.keys() - set(victim.tasks)
        takes = self.trial.cluster.takes(victim.gang.job, without=others)
        return {(index.tree.engine, take.at) for index, take in takes}


def _newest(gang: Running) -> tuple[float, JobId]:
    return (gang.placed_at, gang.job)
