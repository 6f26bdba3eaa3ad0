"""Find the fewest and cheapest victims that make room for a gang.

The search runs in an assumed future: all terminating gangs have ended, and the places kept for others are taken. The
shortest prefix of the ranked victims that makes room there is found by doubling and bisection with the real search.
Victims that turn out not to be in the way are then spared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Ending, Reservation, reservation_of
from corral.scheduler.cells.cell_ownership import Cell
from corral.scheduler.cells.owned_placement import owner_of, place_best, place_owned
from corral.scheduler.placement.room_check import RoomCheck, has_room, room_check
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Placer, Trial
from corral.scheduler.policy.faults import CheckedOrder
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.preempt import yields_later
from corral.scheduler.preemption.order_rules import ByOrder
from corral.scheduler.preemption.rules import ByRules
from corral.scheduler.preemption.victim import Victim, in_order
from corral.scheduler.preemption.view import PreemptionView
from corral.scheduler.queues.fair_share import Fairness, Holder
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.queue_tree import Refusal

_MOST_LET_OFF = 24
"""The most victims that are checked one by one for being needed; above it only those elsewhere are spared."""
_ALL_FIRST = 64
"""The most victims for which it is first checked whether all of them suffice; usually they do not."""


_AT_ONCE = 8
"""The first victims that are ended before it is looked whether there is room; then twice as many more, and so on."""


class Preemption:
    """Finds victims in one cycle."""

    def __init__(self, trial: Trial, hungry: frozenset[str], policy: Policy, now: float) -> None:
        self.trial = trial
        self.now = now
        self.fairness = Fairness(trial.cluster, hungry)
        self.view = PreemptionView(trial.cluster, self.fairness, policy.order, now)
        self._part = policy.preempt
        self._later = policy.preempt if policy.preemption and yields_later(policy.preempt) else None
        """The same part if it says who will yield once it runs."""
        ordered = isinstance(self._part, ByOrder) and not isinstance(policy.order, CheckedOrder)
        ordered = ordered or isinstance(self._part, ByRules) or not policy.preemption
        self.in_queue_order = ordered and not trial.cluster.ownership.cells
        """Whether no gang has victims, or room, that an equal gang before it in its queue does not have.

        Not so for gangs in cells of their own, where room depends on their durations, and for installed parts.
        """
        self.places: list[Reservation] = []
        """The places kept for gangs once the evicted ones have ended; no other gang may count on them."""
        self.kept: set[JobId] = set()
        """The gangs for which these places are kept."""
        self._bounds: dict[JobId, float] = {}
        """When those of them with a bounded duration would end."""
        self._nobody: tuple[GangRequest, bool] | None = None
        """The gang that was asked about last, and whether it has no victims by the policy's part."""
        self._ahead = False
        self._fresh: list[tuple[Reservation, str, list[tuple[str, Cell]]]] = []

    @contextmanager
    def future(self) -> Iterator[None]:
        """Switch the trial to the assumed future for the block.

        Places found in the block are held afterwards, as far as they are free.
        """
        if self._ahead:
            yield
            return
        with self.trial.tentative():
            for place in self.places:
                place.lift_tentatively()
            self.trial.lift_leaving()
            self.trial.lift(self.view.evicted)
            for place in self.places:
                place.occupy(self.trial.cluster)
            self._ahead = True
            try:
                yield
            finally:
                self._ahead = False
        for place, owner, bound in self._fresh:
            place.hold(self.trial.cluster)
            for engine, cell in bound:
                self.trial.cluster.ownership.cells[engine].bind(cell, owner)
            self.places.append(place)
        self._fresh.clear()

    @property
    def changes_trial(self) -> bool:
        """Return whether the trial is in the assumed future, or has places kept for gangs, or cells have owners."""
        return self._ahead or bool(self.places) or bool(self.trial.cluster.ownership.cells)

    @property
    def idle(self) -> bool:
        """Return whether no gang is terminating, so that the future equals the present."""
        return not self.trial.cluster.gangs.leaving and not self.view.evicted

    def fits_freed_place(self, request: GangRequest, place: Placer) -> bool:
        """Return whether the gang fits once all terminating gangs have ended."""
        if self.idle:
            return False
        with self.future():
            return self._fits_without(request, (), place)

    def reserve_freed_place(self, request: GangRequest, ask: Sequence[int], place: Placer = place_best) -> bool:
        """Return whether the gang fits once all terminating gangs have ended; if so, that place is kept for it."""
        if self.idle:
            return False
        with self.future():
            return self._keep(request, ask, place)

    def nobody_preemptible(self, request: GangRequest) -> bool:
        """Return whether it is clear, without looking at queues, that this gang has no victims."""
        if request.job in self.kept or self.trial.cluster.ownership.cells:
            return False
        if self._nobody is None or self._nobody[0] is not request:
            self._nobody = (request, not self._part.may_have(request, None, self.view))
        return self._nobody[1]

    def may_yield_later(self, request: GangRequest) -> bool:
        """Return whether there may be gangs to which this one yields once it runs, as `yields_later` says."""
        return self._later is not None and request.preemptible

    def yields_later(self, request: GangRequest, head: GangRequest) -> bool:
        """Return whether this gang, once it runs, yields to the head of the queue as soon as the head has room with it.

        Not so for gangs in cells of their own.
        """
        if self._later is None or not request.preemptible or owner_of(self.trial, request):
            return False
        return self._later.yields_later(request, head, self.view)

    def may_have_victims(self, request: GangRequest, ask: Sequence[int]) -> bool:
        """Return whether some gang may be asked to yield to this one, or has been."""
        owner = owner_of(self.trial, request)
        return (
            request.job in self.kept
            or (bool(owner) and next(self.view.guests(request, owner), None) is not None)
            or self._part.may_have(request, ask, self.view)
        )

    def find(self, request: GangRequest, ask: Sequence[int]) -> tuple[Victim, ...]:
        """Return the fewest and cheapest victims that make room for the gang; empty if there are none.

        The victims are recorded as told to yield, and the freed place is kept for the gang for the rest of the cycle.
        """
        owner = owner_of(self.trial, request)
        if owner:
            guests = in_order(self.view.guests(request, owner))
            chosen = self.choose(request, guests, place_owned)
            if chosen:
                return self.settle(request, ask, chosen, place_owned)
        chosen = self.choose(request, self._part.candidates(request, ask, self.view))
        return self.settle(request, ask, chosen) if chosen else ()

    def choose(self, request: GangRequest, victims: Sequence[Victim], place: Placer = place_best) -> tuple[Victim, ...]:
        """Return the fewest and first of these victims that make room for the gang; empty if all of them do not."""
        with self.future():
            count = self._shortest(request, victims, place)
            return () if count is None else tuple(self._needed(request, victims[:count], place))

    def settle(
        self, request: GangRequest, ask: Sequence[int], chosen: Sequence[Victim], place: Placer = place_best
    ) -> tuple[Victim, ...]:
        """Record that these victims yield, and keep the freed place for the gang for the rest of the cycle."""
        with self.future():
            self.trial.lift(_tasks(chosen))
            self.view.mark_evicted(chosen)
            self._keep(request, ask, place)
        return tuple(chosen)

    def finds_room_again(self, request: GangRequest, chosen: Sequence[Victim]) -> bool:
        """Return whether all victims would fit elsewhere once the gang has its place."""
        wanted = [request, *(victim.gang.request for victim in chosen if victim.gang.request is not None)]
        with self.future(), self.trial.tentative():
            self.trial.lift(_tasks(chosen))
            return len(wanted) == len(chosen) + 1 and all(place_best(self.trial, each) for each in wanted)

    def tasks_without(self, request: GangRequest, chosen: Sequence[Victim]) -> int:
        """Return how many tasks of a gang would have a place without these victims."""
        with self.future(), self.trial.tentative():
            self.trial.lift(_tasks(chosen))
            placement = place_best(self.trial, request)
            return len(placement.tasks) if placement else 0

    def _keep(self, request: GangRequest, ask: Sequence[int], place: Placer) -> bool:
        """Take the gang's place in the future, and record it for the present."""
        if self._bounded(request, (), place):
            return False
        cells = self.trial.cluster.ownership.cells
        marks = {engine: of_engine.mark() for engine, of_engine in cells.items()}
        allocations = self.trial.allocations(request, place)
        if allocations is None:
            return False
        bound = [(engine, cell) for engine, mark in marks.items() for cell in cells[engine].since(mark)]
        self._fresh.append((reservation_of(request.job, self.now, allocations), owner_of(self.trial, request), bound))
        self.fairness.move(_holder(request), ask, 1)
        self.kept.add(request.job)
        if request.max_duration_seconds:
            self._bounds[request.job] = self.now + request.max_duration_seconds
        return True

    def endings(self) -> list[tuple[float, list[Ending]]]:
        """Return the known ends of the bounded gangs for which places are kept."""
        engines = self.trial.cluster.engines
        places = [*self.places, *(fresh[0] for fresh in self._fresh)]
        return [
            (self._bounds[place.job], [(engines[need.engine], need.wanted) for need in place.needs])
            for place in places
            if place.job in self._bounds
        ]

    def _shortest(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> int | None:
        """Return how many of the first victims suffice; None if all of them do not."""
        if self._bounded(request, victims, place):
            return None
        check = room_check(self.trial, request, gang_shape(request)) if place is place_best else None
        if check is not None:
            return self._first_with_room(request, victims, check)
        if 1 < len(victims) <= _ALL_FIRST and not self._fits_without(request, victims, place):
            return None
        low, high = 0, min(1, len(victims))
        while high and not self._fits_without(request, victims[:high], place):
            if high == len(victims):
                return None
            low, high = high, min(len(victims), high * 2)
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits_without(request, victims[:middle], place):
                high = middle
            else:
                low = middle
        return high or None

    def _first_with_room(self, request: GangRequest, victims: Sequence[Victim], has_room: RoomCheck) -> int | None:
        """Return the same where totals tell the room, by ending the victims in order.

        Room only grows, so ever more victims end between two looks, and the last of them once more one by one.
        """
        gone, first, at_once = dict[JobId, set[TaskKey]](), 0, _AT_ONCE
        with self.trial.tentative():
            while first < len(victims):
                marks, lifted = self.trial.marks(), list[dict[JobId, set[TaskKey]]]()
                for victim in victims[first : first + at_once]:
                    known = gone.setdefault(victim.gang.job, set())
                    lifted.append({victim.gang.job: set(victim.tasks) - known})
                    known.update(victim.tasks)
                    self.trial.lift(lifted[-1])
                if has_room():
                    for name, mark in marks.items():
                        self.trial.cluster.engines[name].undo(mark)
                    for count, tasks in enumerate(lifted, first + 1):
                        self.trial.lift(tasks)
                        if has_room() and not self._bounded(request, victims[:count], place_best):
                            return count
                first, at_once = first + at_once, 2 * at_once
        return None

    def refused(self, request: GangRequest, ask: Sequence[int]) -> Refusal | None:
        """Return the bound that other gangs will have used up by the time the gang starts; None if there is none."""
        if not self.fairness.changing or request.job in self.kept:
            return None
        return self.fairness.refusal(_holder(request), ask, ())

    def _bounded(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> bool:
        """Return whether a bound forbids the gang to start even without these victims; own cells have no bounds."""
        queues = self.trial.cluster.queues
        if queues.plain or place is place_owned or request.job in self.kept:
            return False
        gangs = {victim.gang.job: victim.gang for victim in victims}
        less = [
            (gangs[job].holder, gangs[job].charges[task]) for job, tasks in _tasks(victims).items() for task in tasks
        ]
        return self.fairness.refusal(_holder(request), asked(request, queues), less) is not None

    def _fits_without(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> bool:
        if self._bounded(request, victims, place):
            return False
        with self.trial.tentative():
            self.trial.lift(_tasks(victims))
            return self._room(request, gang_shape(request), place)

    def _needed(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> list[Victim]:
        """Return the victims in the way of the place found without any of them, sparing the costliest if possible."""
        with self.trial.tentative():
            self.trial.lift(_tasks(victims))
            allocations = self.trial.allocations(request, place) or []
        nodes = {(index.tree.engine, allocation.at) for index, allocation in allocations}
        chosen = [victim for victim in victims if victim.evict_before_reclaim or nodes & self._nodes(victim)]
        if len(chosen) < len(victims) and not self._fits_without(request, chosen, place):
            chosen = list(victims)
        return self._without_the_dearest(request, chosen, place) if len(chosen) <= _MOST_LET_OFF else chosen

    def _without_the_dearest(self, request: GangRequest, chosen: list[Victim], place: Placer) -> list[Victim]:
        """Spare victims one by one, costliest first, as long as the gang still fits."""
        shape, left = gang_shape(request), list(chosen)
        with self.trial.tentative():
            self.trial.lift(_tasks(chosen))
            for victim in sorted(chosen, key=Victim.key, reverse=True) if len(chosen) > 1 else ():
                back = self.trial.holds(_only(victim, [other for other in left if other is not victim]))
                for index, allocation in back:
                    index.take(allocation)
                if len(left) > 1 and self._may_stay(victim, left, request, place) and self._room(request, shape, place):
                    left.remove(victim)
                else:
                    for index, allocation in back:
                        index.lift(allocation)
        return left

    def _may_stay(self, victim: Victim, chosen: Sequence[Victim], request: GangRequest, place: Placer) -> bool:
        """Return whether the other victims satisfy the bounds, and may be asked without this one."""
        if not victim.evict_before_reclaim and self.trial.cluster.queues.plain:
            return True
        rest = [other for other in chosen if other is not victim]
        needed = victim.evict_before_reclaim and any(other.rule is Rule.RECLAIM for other in rest)
        return not needed and not self._bounded(request, rest, place)

    def _room(self, request: GangRequest, shape: Hashable, place: Placer) -> bool:
        """Return whether the gang fits in the current state of the trial."""
        plainly = has_room(self.trial, request, shape) if place is place_best else None
        return self._fits(request, place) if plainly is None else plainly

    def _fits(self, request: GangRequest, place: Placer) -> bool:
        with self.trial.tentative():
            return place(self.trial, request) is not None

    def _nodes(self, victim: Victim) -> set[tuple[str, int]]:
        others = victim.gang.charges.keys() - set(victim.tasks)
        allocations = self.trial.cluster.allocations(victim.gang.job, without=others)
        return {(index.tree.engine, allocation.at) for index, allocation in allocations}


def _holder(request: GangRequest) -> Holder:
    return (request.queue, request.user, request.groups)


def _only(victim: Victim, others: Iterable[Victim]) -> dict[JobId, set[TaskKey]]:
    """Return the victim's tasks that belong to none of the others.

    A gang may be a victim for one task and also as a whole.
    """
    job = victim.gang.job
    return {job: set(victim.tasks).difference(*(other.tasks for other in others if other.gang.job == job))}


def _tasks(victims: Iterable[Victim]) -> dict[JobId, set[TaskKey]]:
    out: dict[JobId, set[TaskKey]] = {}
    for victim in victims:
        out.setdefault(victim.gang.job, set()).update(victim.tasks)
    return out
