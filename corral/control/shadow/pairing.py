"""Pair the decisions of two schedulers that take the same inputs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from corral.control.shadow.decisions import Decision, Kind
from corral.kernel.ids import JobId


class Pair(NamedTuple):
    """What both decided, or what one of them decided alone."""

    in_force: Decision | None
    candidate: Decision | None

    @property
    def elsewhere(self) -> bool:
        """Whether both placed the job, but not on the same nodes."""
        both = self.in_force is not None and self.candidate is not None
        return both and self.in_force.nodes != self.candidate.nodes  # type: ignore[union-attr]


@dataclass(slots=True)
class _Waiting:
    """A decision that may find its partner."""

    decision: Decision
    candidate: bool
    paired: bool = False


class Pairing:
    """Pairs decisions of one kind about one job that both schedulers made within some seconds of each other.

    Decisions are added in the order of their times. Those of the last `within` seconds are kept.
    """

    def __init__(self, within: float) -> None:
        self._within = within
        self._order: deque[_Waiting] = deque()
        self._of: dict[tuple[bool, JobId, Kind], deque[_Waiting]] = {}

    def add(self, decision: Decision, *, candidate: bool) -> Pair | None:
        """The pair that a decision makes with an earlier one; None: it waits for a later one."""
        key = decision.job, decision.kind
        for other in self._of.get((not candidate, *key), ()):
            if abs(decision.at - other.decision.at) <= self._within:
                other.paired = True
                self._take(other)
                return Pair(other.decision, decision) if candidate else Pair(decision, other.decision)
        waiting = _Waiting(decision, candidate)
        self._order.append(waiting)
        self._of.setdefault((candidate, *key), deque()).append(waiting)
        return None

    @property
    def due_at(self) -> float | None:
        """From when on the oldest decision without a partner counts as made alone; None: there is none."""
        while self._order and self._order[0].paired:
            self._order.popleft()
        return self._order[0].decision.at + self._within if self._order else None

    def settle(self, until: float) -> list[Pair]:
        """Take out the decisions that were made alone, both schedulers having come to `until`."""
        found = []
        while (due := self.due_at) is not None and due <= until:
            waiting = self._order.popleft()
            self._take(waiting)
            decision = waiting.decision
            found.append(Pair(None, decision) if waiting.candidate else Pair(decision, None))
        return found

    def drop(self) -> list[Pair]:
        """Take out the decisions that might still have found a partner."""
        return self.settle(inf)

    def _take(self, waiting: _Waiting) -> None:
        key = waiting.candidate, waiting.decision.job, waiting.decision.kind
        self._of[key].remove(waiting)
        if not self._of[key]:
            del self._of[key]
