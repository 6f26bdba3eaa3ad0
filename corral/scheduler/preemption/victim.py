"""A victim: a running gang, or spare tasks of it, that a rule allows to be evicted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.kernel.ids import TaskKey
from corral.model.plan import Rule
from corral.scheduler.cluster.running_gang import RunningGang

EVICTION_ORDER = (
    Rule.GUARANTEE,
    Rule.OPPORTUNISTIC,
    Rule.SHRINK,
    Rule.RECLAIM,
    Rule.PRIORITY,
    Rule.ORDER,
    Rule.CONSOLIDATION,
    Rule.GROW,
)
"""The rules of the planner, in the order in which their victims go."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A running gang, or some tasks of an elastic one, that may be evicted, with the rule that allows it."""

    gang: RunningGang
    rule: Rule
    cost: float
    """Device-seconds of work lost; for a spare task of an elastic gang a rank, lower the more the gang can spare."""
    tasks: tuple[TaskKey, ...]
    evict_before_reclaim: bool = False
    """Whether it must be gone before its queue may reclaim anything from others."""

    def key(self) -> tuple[int, bool, int, float, float]:
        """Return the eviction order: by rule, lowest priority, smallest loss, then latest start."""
        gang, rule = self.gang, Rule.RECLAIM if self.evict_before_reclaim else self.rule
        return (EVICTION_ORDER.index(rule), not self.evict_before_reclaim, gang.priority, self.cost, -gang.placed_at)

    @property
    def amounts(self) -> list[int]:
        """Return the holdings of its tasks, as a queue resource vector."""
        return [sum(column) for column in zip(*(self.gang.charges[task] for task in self.tasks), strict=True)]


def in_order(victims: Iterable[Victim]) -> list[Victim]:
    """Return victims in eviction order; on ties the latest submitted job comes first."""
    latest_first = sorted(victims, key=lambda victim: victim.gang.job, reverse=True)
    return sorted(latest_first, key=Victim.key)
