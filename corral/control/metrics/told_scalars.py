"""Take the scalars that tasks tell of their event files, each attempt a bounded number of curves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.metrics.job_figures import SCALAR
from corral.model.metrics.samples import Value
from corral.model.metrics.told_scalars import ToldScalars
from corral.runtime.event_folder import MOST_CURVES

_MOST_ATTEMPTS: Final = 20_000
"""Attempts whose curves are known; of more, those that told nothing for the longest time are forgotten."""


class CurvesOfTasks:
    """Makes values of series of what attempts tell."""

    def __init__(self, take: Callable[[Iterable[tuple[float, Value]]], None], now: Callable[[], float]) -> None:
        """`take` gets the values with their times; `now` is the clock of the server."""
        self._take, self._now = take, now
        self._lock = Lock()
        self._curves: OrderedDict[AttemptId, set[tuple[str, str]]] = OrderedDict()

    def told(self, what: ToldScalars) -> int:
        """Take values, in any thread; how many were left out, since their curves are more than an attempt may have.

        Raises ValueError for a malformed attempt.
        """
        key, now = parse_attempt_id(what.attempt), self._now()
        task = f"{key.role}-{key.index}"
        with self._lock:
            curves = self._curves.setdefault(what.attempt, set())
            self._curves.move_to_end(what.attempt)
            while len(self._curves) > _MOST_ATTEMPTS:
                self._curves.popitem(last=False)
            values = []
            for each in what.scalars:
                curve = each.run, each.tag
                if curve not in curves and len(curves) >= MOST_CURVES:
                    continue
                curves.add(curve)
                values.append((now - each.age, Value(SCALAR, (key.job, task, *curve), each.value)))
        self._take(values)
        return len(what.scalars) - len(values)
