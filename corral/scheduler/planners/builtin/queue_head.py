"""The head of the queue in one cycle: its reservation is searched only when something depends on it.

The search costs more than the refusal of a gang, and in a long queue mostly no other gang would fit anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation, reserve, reserve_as_foreseen
from corral.scheduler.events import FOREVER
from corral.scheduler.placement.room_check import room_check
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Trial


class Foreseen(NamedTuple):
    """A reservation that was searched where only running gangs, and gangs placed in the same cycle, held anything."""

    reservation: Reservation
    early: int
    """The counts of `Cluster.future` before the cycle: of early releases, and of all entries."""
    entries: int


_MOST_FORESEEN: Final = 64
"""Shapes of heads whose reservations are kept, the latest ones."""


class LastHead(NamedTuple):
    """What the head of a cycle leaves to the next one."""

    reservation: Reservation | None = None
    reserved_at: tuple[GangRequest, int] | None = None
    """The head and the cluster's revision of a `reservation` that follows from these alone."""
    foreseen: Mapping[Hashable, Foreseen] = MappingProxyType({})
    """The last reservation of each shape of heads, where it follows from running gangs alone."""


class QueueHead:
    """The first gang in order that waits and could run on the working machines, with its reservation.

    The reservation follows from the trial as it was when the head was refused. So whoever changes the trial must ask
    for `reservation` before.
    """

    def __init__(
        self,
        trial: Trial,
        now: float,
        last: LastHead,
        *,
        cluster_decides: bool,
        placed_until: Callable[[], float | None],
    ) -> None:
        """`last` is what is known from the last cycle.

        With `cluster_decides`, a reservation in an untouched trial follows from the gang and the cluster alone.
        `placed_until` returns until when the gangs run that were placed in the trial (-inf: none was placed); None if the
        trial differs from the cluster in more than those.
        """
        self.trial = trial
        self.reserved_at: tuple[GangRequest, int] | None = None
        """The head and the cluster's revision, where the reservation follows from these two alone."""
        self.refused: list[GangRequest] = []
        """The gangs that were refused while no reservation was known, first one first; one of them is the head."""
        early = trial.cluster.future.early
        kept = [
            (shape, each)
            for shape, each in last.foreseen.items()
            if each.reservation.start > now and each.early == early
        ]
        self.foreseen = dict(kept[-_MOST_FORESEEN:])
        """The last reservation of each shape of heads, where it follows from running gangs alone and is still to come."""
        self._now = now
        self._last, self._last_reserved_at = last.reservation, last.reserved_at
        self._cluster_decides = cluster_decides
        self._placed_until = placed_until
        self._found: Reservation | None = None
        self._held = False

    @property
    def reservation(self) -> Reservation | None:
        """Return the reservation, searched now if it is not known; None if no gang that was refused has one."""
        while self._found is None and self.refused:
            self._found = self._reserve(self.refused.pop(0))
            if self._found is not None:
                self.refused.clear()
                if self._held:
                    self._found.hold(self.trial.cluster)
        self._held = self._held and self._found is not None
        return self._found

    @property
    def known(self) -> Reservation | None:
        """Return the reservation if something has asked for it; else None."""
        return self._found

    @property
    def left(self) -> LastHead:
        """Return what the next cycle may know."""
        return LastHead(self._found, self.reserved_at, self.foreseen)

    @property
    def possible(self) -> bool:
        """Return whether there may be a head."""
        return self._found is not None or bool(self.refused)

    def lets_pass(self, duration: int) -> bool:
        """Return whether a gang of this duration in seconds (0: unknown) ends before the head starts."""
        reservation = self.reservation
        return reservation is not None and reservation.lets_pass(duration, self._now)

    @property
    def longest_passing(self) -> float:
        """Return the most seconds that a gang may take to end before the head starts; 0: none does so."""
        reservation = self.reservation
        return 0.0 if reservation is None else reservation.longest_passing(self._now)

    def add(self, request: GangRequest) -> None:
        """Note a gang that was refused; optional growth (every minimum is 0) gets no reservation."""
        if self._found is None and any(role.minimum for role in request.roles):
            self.refused.append(request)

    def hold(self) -> None:
        """Keep other gangs off the reserved place, at once or from when it is known."""
        self._held = self.possible
        if self._found is not None:
            self._found.hold(self.trial.cluster)

    def hold_later(self) -> None:
        """Let the reserved place be kept from the next `hold` on: until then nobody looks at what is free."""
        self._held = self.possible

    def lift(self) -> None:
        """Release the reserved place until the next `hold`."""
        self._held = False
        if self._found is not None:
            self._found.lift()

    def settle(self) -> None:
        """Search the reservation and hold it, if it is to be held; the trial is used for other things from now on."""
        if self._held and (reservation := self.reservation) is not None:
            reservation.hold(self.trial.cluster)

    def _reserve(self, request: GangRequest) -> Reservation | None:
        """Return the reservation of a gang; one equal to the last cycle's is the same object.

        It follows from the cluster alone while its start is to come.
        """
        last, follows = self._last, self._cluster_decides and self.trial.untouched
        alone = (request, self.trial.cluster.revision) if follows else None
        if alone is not None and last is not None and last.start > self._now and alone == self._last_reserved_at:
            self.reserved_at = alone
            return last
        found = self._search(request)
        self.reserved_at = alone if found is not None else None
        return last if found is not None and found == last else found

    def _search(self, request: GangRequest) -> Reservation | None:
        """Search the reservation of a gang from what is known of the last one of its shape.

        As long as no gang ended earlier than expected, no more is free at any time than was expected, so it starts no
        earlier. If none was placed either that runs beyond that start on a node with room for the head then, the place is
        the same, too.
        """
        placed_until = self._placed_until() if self._cluster_decides and request.inputs is None else None
        shape = gang_shape(request)
        if placed_until is None or room_check(self.trial, request, shape) is None:
            return reserve(self.trial, request, self._now)
        future, last = self.trial.cluster.future, self.foreseen.get(shape)
        if last is None:
            found = reserve(self.trial, request, self._now)
        elif self._comes_as(last, placed_until):
            found = reserve_as_foreseen(self.trial, request.job, last.reservation)
        else:
            found = reserve(self.trial, request, self._now, not_before=last.reservation.start)
        if found is not None and found.start < FOREVER:
            self.foreseen[shape] = Foreseen(found, future.early, future.count)
        return found

    def _comes_as(self, last: Foreseen, placed_until: float) -> bool:
        """Return whether all nodes with room for the head are at its foreseen start as they were foreseen."""
        future, start, roomy = self.trial.cluster.future, last.reservation.start, last.reservation.roomy
        if max(placed_until, future.unchanged_from(last.entries)) <= start:
            return True
        taken = None if roomy is None else future.taken_beyond(start, last.entries)
        if roomy is None or taken is None or not roomy.isdisjoint(taken):
            return False
        return placed_until <= start or roomy.isdisjoint(self.trial.touched)


def reservation_of_first(trial: Trial, refused: tuple[GangRequest, ...], now: float) -> Reservation | None:
    """Return the reservation of the first of these gangs that can have one, outside a cycle."""
    return next((found for request in refused if (found := reserve(trial, request, now)) is not None), None)
