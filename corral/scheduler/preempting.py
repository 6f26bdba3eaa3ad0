"""Why: a gang that is owed room that others hold gets it by ending the fewest and the least of them.

The search runs in the future: the cluster as it is when those have ended who were told to, with the places taken that they
make room for. The shortest run of victims with which the gang fits there is found by doubling and halving on the real
search, and whoever turns out not to be in the way is let off.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.amounts import asked
from corral.scheduler.backfill import Ending, Reservation, reservation_of
from corral.scheduler.cells import Cell
from corral.scheduler.fairness import Fairness, Holder
from corral.scheduler.guarantees import owner_of, place_best, place_owned
from corral.scheduler.placing import Placer, Trial
from corral.scheduler.queues import Refusal
from corral.scheduler.screening import has_room
from corral.scheduler.shapes import gang_shape
from corral.scheduler.victims import Rules, Victim, in_order

_MOST_LET_OFF = 24
"""Among so many victims each is tried whether it is needed; among more only those elsewhere are let off."""
_ALL_FIRST = 64
"""With so few victims it is seen first whether all of them are enough: mostly they are not."""


class Preemption:
    """Finds victims in one cycle."""

    def __init__(self, trial: Trial, hungry: frozenset[str], now: float) -> None:
        self.trial = trial
        self.now = now
        self.fairness = Fairness(trial.cluster, hungry)
        self.rules = Rules(trial.cluster, self.fairness, now)
        self.places: list[Reservation] = []
        """The places that gangs get when those have ended that were told to; nobody else may count on them."""
        self.kept: set[JobId] = set()
        """The gangs that these places are for."""
        self._bounds: dict[JobId, float] = {}
        """When those of them are over whose duration is bounded."""
        self._ahead = False
        self._fresh: list[tuple[Reservation, str, list[tuple[str, Cell]]]] = []

    @contextmanager
    def future(self) -> Iterator[None]:
        """See the cluster as it will be; places found meanwhile are held, as far as they are free, from the end of it."""
        if self._ahead:
            yield
            return
        with self.trial.supposing():
            for place in self.places:
                place.suppose_lifted()
            self.trial.lift_leaving()
            self.trial.lift(self.rules.told)
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
    def idle(self) -> bool:
        """Whether nobody was told to end: then the future is the present."""
        return not self.trial.cluster.gangs.leaving and not self.rules.told

    def could_leave(self, request: GangRequest, place: Placer) -> bool:
        """Whether the gang fits as soon as those have ended that were told to."""
        if self.idle:
            return False
        with self.future():
            return self._fits_without(request, (), place)

    def leaving_place(self, request: GangRequest, ask: Sequence[int], place: Placer = place_best) -> bool:
        """Whether the gang fits as soon as those have ended that were told to; the place is kept for it from now on."""
        if self.idle:
            return False
        with self.future():
            return self._keep(request, ask, place)

    def plainly_nobody(self, request: GangRequest) -> bool:
        """Whether it takes no look at the queues to see that nobody has to yield to this one."""
        return self.rules.nobody(request) and request.job not in self.kept and not self.trial.cluster.ownership.cells

    def might(self, request: GangRequest, ask: Sequence[int]) -> bool:
        """Whether anybody may be asked to yield to this one, or was."""
        owner = owner_of(self.trial, request)
        return (
            request.job in self.kept
            or (bool(owner) and next(self.rules.guests(request, owner), None) is not None)
            or self.rules.anyone(request, ask)
        )

    def find(self, request: GangRequest, ask: Sequence[int]) -> tuple[Victim, ...]:
        """Victims with whom gone the gang fits, as few and as cheap as can be; none when nobody may be ended for it.

        They are told to, and the place that it gets is kept for it for the rest of the cycle.
        """
        owner = owner_of(self.trial, request)
        if owner:
            guests = in_order(self.rules.guests(request, owner))
            chosen = self.choose(request, guests, place_owned)
            if chosen:
                return self.settle(request, ask, chosen, place_owned)
        chosen = self.choose(request, self.rules.ranked(request, ask))
        return self.settle(request, ask, chosen) if chosen else ()

    def choose(self, request: GangRequest, victims: Sequence[Victim], place: Placer = place_best) -> tuple[Victim, ...]:
        """Of these as few and as early ones as can be with whom gone the gang fits; none when it does not without all."""
        with self.future():
            count = self._shortest(request, victims, place)
            return () if count is None else tuple(self._needed(request, victims[:count], place))

    def settle(
        self, request: GangRequest, ask: Sequence[int], chosen: Sequence[Victim], place: Placer = place_best
    ) -> tuple[Victim, ...]:
        """These yield, and the place that the gang gets then is kept for it for the rest of the cycle."""
        with self.future():
            self.trial.lift(_tasks(chosen))
            self.rules.tell(chosen)
            self._keep(request, ask, place)
        return tuple(chosen)

    def finds_room_again(self, request: GangRequest, chosen: Sequence[Victim]) -> bool:
        """Whether all of these fit somewhere else once the gang has its place."""
        wanted = [request, *(victim.gang.request for victim in chosen if victim.gang.request is not None)]
        with self.future(), self.trial.supposing():
            self.trial.lift(_tasks(chosen))
            return len(wanted) == len(chosen) + 1 and all(place_best(self.trial, each) for each in wanted)

    def tasks_without(self, request: GangRequest, chosen: Sequence[Victim]) -> int:
        """How many tasks of a gang would have a place with these gone."""
        with self.future(), self.trial.supposing():
            self.trial.lift(_tasks(chosen))
            placement = place_best(self.trial, request)
            return len(placement.tasks) if placement else 0

    def _keep(self, request: GangRequest, ask: Sequence[int], place: Placer) -> bool:
        """Take the gang's place in the future, and remember it for the present."""
        if self._bounded(request, (), place):
            return False
        cells = self.trial.cluster.ownership.cells
        marks = {engine: of_engine.mark() for engine, of_engine in cells.items()}
        takes = self.trial.takes(request, place)
        if takes is None:
            return False
        bound = [(engine, cell) for engine, mark in marks.items() for cell in cells[engine].since(mark)]
        self._fresh.append((reservation_of(request.job, self.now, takes), owner_of(self.trial, request), bound))
        self.fairness.move(_holder(request), ask, 1)
        self.kept.add(request.job)
        if request.max_duration_seconds:
            self._bounds[request.job] = self.now + request.max_duration_seconds
        return True

    def endings(self) -> list[tuple[float, list[Ending]]]:
        """What is free, and when, once those are over for whom places are kept."""
        engines = self.trial.cluster.engines
        places = [*self.places, *(fresh[0] for fresh in self._fresh)]
        return [
            (self._bounds[place.job], [(engines[need.engine], need.wanted) for need in place.needs])
            for place in places
            if place.job in self._bounds
        ]

    def _shortest(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> int | None:
        """How many of the first are enough; None when all of them are not."""
        if self._bounded(request, victims, place):
            return None
        if place is place_best and has_room(self.trial, request, gang_shape(request)) is not None:
            return self._first_with_room(request, victims)
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

    def _first_with_room(self, request: GangRequest, victims: Sequence[Victim]) -> int | None:
        """The same where room is seen at once: let them end one after the other."""
        shape, gone = gang_shape(request), dict[JobId, set[TaskKey]]()
        with self.trial.supposing():
            for count, victim in enumerate(victims, 1):
                known = gone.setdefault(victim.gang.job, set())
                self.trial.lift({victim.gang.job: set(victim.tasks) - known})
                known.update(victim.tasks)
                if has_room(self.trial, request, shape) and not self._bounded(request, victims[:count], place_best):
                    return count
        return None

    def refused(self, request: GangRequest, ask: Sequence[int]) -> Refusal | None:
        """What forbids the gang to start though nothing does now: others have its part of a bound by then."""
        if not self.fairness.changing or request.job in self.kept:
            return None
        return self.fairness.refusal(_holder(request), ask, ())

    def _bounded(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> bool:
        """Whether a bound forbids the gang to start even with these gone; in one's own cells none does."""
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
        with self.trial.supposing():
            self.trial.lift(_tasks(victims))
            return self._room(request, gang_shape(request), place)

    def _needed(self, request: GangRequest, victims: Sequence[Victim], place: Placer) -> list[Victim]:
        """Those in the way of the place found without all of them; the dearest are let off first if they can be."""
        with self.trial.supposing():
            self.trial.lift(_tasks(victims))
            takes = self.trial.takes(request, place) or []
        nodes = {(index.tree.engine, take.at) for index, take in takes}
        chosen = [victim for victim in victims if victim.clears or nodes & self._nodes(victim)]
        if len(chosen) < len(victims) and not self._fits_without(request, chosen, place):
            chosen = list(victims)
        return self._without_the_dearest(request, chosen, place) if len(chosen) <= _MOST_LET_OFF else chosen

    def _without_the_dearest(self, request: GangRequest, chosen: list[Victim], place: Placer) -> list[Victim]:
        """Let off one after the other, the dearest first, whom the gang fits beside."""
        shape, left = gang_shape(request), list(chosen)
        with self.trial.supposing():
            self.trial.lift(_tasks(chosen))
            for victim in sorted(chosen, key=Victim.key, reverse=True) if len(chosen) > 1 else ():
                back = self.trial.holds(_only(victim, [other for other in left if other is not victim]))
                for index, take in back:
                    index.take(take)
                if len(left) > 1 and self._may_stay(victim, left, request, place) and self._room(request, shape, place):
                    left.remove(victim)
                else:
                    for index, take in back:
                        index.lift(take)
        return left

    def _may_stay(self, victim: Victim, chosen: Sequence[Victim], request: GangRequest, place: Placer) -> bool:
        """Whether the others are enough for the bounds, and may be asked without this one."""
        if not victim.clears and self.trial.cluster.queues.plain:
            return True
        rest = [other for other in chosen if other is not victim]
        needed = victim.clears and any(other.rule is Rule.RECLAIM for other in rest)
        return not needed and not self._bounded(request, rest, place)

    def _room(self, request: GangRequest, shape: Hashable, place: Placer) -> bool:
        """Whether the gang fits as things are."""
        plainly = has_room(self.trial, request, shape) if place is place_best else None
        return self._fits(request, place) if plainly is None else plainly

    def _fits(self, request: GangRequest, place: Placer) -> bool:
        with self.trial.supposing():
            return place(self.trial, request) is not None

    def _nodes(self, victim: Victim) -> set[tuple[str, int]]:
        others = victim.gang.charges.keys() - set(victim.tasks)
        takes = self.trial.cluster.takes(victim.gang.job, without=others)
        return {(index.tree.engine, take.at) for index, take in takes}


def _holder(request: GangRequest) -> Holder:
    return (request.queue, request.user, request.groups)


def _only(victim: Victim, others: Iterable[Victim]) -> dict[JobId, set[TaskKey]]:
    """The tasks of a victim that are in none of the others: a gang may be asked for one task, and for all of it."""
    job = victim.gang.job
    return {job: set(victim.tasks).difference(*(other.tasks for other in others if other.gang.job == job))}


def _tasks(victims: Iterable[Victim]) -> dict[JobId, set[TaskKey]]:
    out: dict[JobId, set[TaskKey]] = {}
    for victim in victims:
        out.setdefault(victim.gang.job, set()).update(victim.tasks)
    return out
