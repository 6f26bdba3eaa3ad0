"""The distribution of the attained service of jobs that are over, and the Gittins index that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

from corral.scheduler.policy.grades import grade, least

_MOST: Final = 2000.0
"""The weight of all jobs at which each weight is halved: jobs of long ago count less and less."""


@dataclass(frozen=True)
class ServiceDistribution:
    """How much service jobs had attained when they were over, in device-seconds; a value that never changes.

    It is kept in grades (`grades`), so it has at most 201 entries. A job counts 1. When all jobs together count 2,000,
    each count is halved.
    """

    parts: tuple[tuple[int, float, float], ...] = ()
    """By grade: the grade, the count of its jobs, and the sum of their service in device-seconds."""

    @cached_property
    def count(self) -> float:
        """Return how much all its jobs count together."""
        return sum(count for _, count, _ in self.parts)

    def with_jobs(self, attained: Iterable[float]) -> ServiceDistribution:
        """Return the distribution with these jobs more, each given by the service it had attained; O(jobs + grades)."""
        kept = {own: (count, total) for own, count, total in self.parts}
        weight = self.count
        for each in attained:
            own = grade(each)
            count, total = kept.get(own, (0.0, 0.0))
            kept[own] = (count + 1.0, total + each)
            weight += 1.0
            if weight > _MOST - 2.0:  # near the bound the sum decides, as rounding may have moved the other
                weight = sum(kept[own][0] for own in sorted(kept))
            if weight >= _MOST:
                kept = {own: (count * 0.5, total * 0.5) for own, (count, total) in kept.items()}
                weight = sum(kept[own][0] for own in sorted(kept))
        return ServiceDistribution(tuple((own, *kept[own]) for own in sorted(kept)))

    def service_per_end(self, attained: float) -> float:
        """Return the expected service per end of a job that attained so much: device-seconds, the inverse Gittins index.

        The index at the service a is the maximum over all quanta q of P(S - a <= q) / E(min(S - a, q)). S is the service
        at their end of those jobs that got beyond a. Here a is the least service of its grade, and S is the mean of each
        grade. Its inverse is infinite where no job got that far. O(grades), once for each grade.
        """
        own = grade(attained)
        known = self._known.get(own)
        if known is None:
            known = self._known[own] = self._least_per_end(own)
        return known

    @cached_property
    def _known(self) -> dict[int, float]:
        """Answers of `service_per_end` by grade; they depend on `parts` only."""
        return {}

    def _least_per_end(self, own: int) -> float:
        begin = least(own)
        beyond = [(count, max(0.0, total / count - begin)) for each, count, total in self.parts if each >= own]
        going_on = sum(count for count, _ in beyond)
        best, ended, spent = inf, 0.0, 0.0
        for count, quantum in beyond:
            ended, going_on, spent = ended + count, going_on - count, spent + count * quantum
            best = min(best, (spent + going_on * quantum) / ended)
        return best
