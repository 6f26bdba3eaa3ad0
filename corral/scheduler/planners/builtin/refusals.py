"""What waiting gangs were refused for, and how long that holds: from plan to plan, or within one cycle."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import NamedTuple

from corral.kernel.ids import JobId
from corral.model.plan import Reasons
from corral.scheduler.backfill import Reservation
from corral.scheduler.queues.waiting_queue import Entry, Finding, Group


@dataclass(frozen=True)
class Verdict:
    """The cached refusal of a shape; it holds until usable resources are released or the reservation changes."""

    reasons: Reasons
    against: Reservation | None
    """The reservation that it was tried against, which lets shorter gangs pass; None if it fits nowhere at all."""
    freed_count: int
    """The value of `Cluster.freed_count` when it was tried."""
    valid_for_cycle: bool = False
    """Whether places were kept for other gangs when it was tried; then it holds for that cycle only."""


class RefusedGang(NamedTuple):
    """How the last gang of a finding was refused in a cycle."""

    changes: int
    """The cycle's count of changes then."""
    turn: float
    """The gang's turn, as its key has it."""
    passable: bool
    """Whether it was refused only for the head's sake."""
    alone: bool
    """Whether no gang could yield to it."""
    reasons: Reasons

    def for_all(self, group: Group) -> bool:
        """Return whether it holds, as long as nothing changes, for each gang of a group of its finding and turn."""
        return self.alone and not self.passable and group.keys[-1][0] == self.turn


class Refusals:
    """The refusals of one cycle, for gangs that differ from a refused one at most by user and duration.

    An equal gang of another user that comes later in its queue has no more room and no other victims. So it is refused
    for the same until a gang starts, is evicted, or gets a place kept for it.
    """

    def __init__(self) -> None:
        self._last: dict[Finding, RefusedGang] = {}

    def note(self, group: Group, refusal: RefusedGang) -> bool:
        """Remember a refusal, unless it holds for the gang alone, as one that is not the group's cached verdict."""
        noted = isinstance(group.verdict, Verdict) and group.verdict.reasons is refusal.reasons
        if noted:
            self._last[group.finding] = refusal
        return noted

    def of(self, group: Group, entry: Entry, changes: int, kept: Set[JobId]) -> RefusedGang | None:
        """Return the refusal that holds for a gang, unless it is `passable`; None if it must be looked at.

        A gang of a job that has a place kept for it (`kept`) is not bound by what others hold.
        """
        last = self._last.get(group.finding)
        if last is None or last.changes != changes or last.turn != entry.key[0] or entry.request.job in kept:
            return None
        return last
