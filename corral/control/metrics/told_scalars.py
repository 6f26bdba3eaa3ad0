"""Take the scalars that tasks tell of their event files, each attempt a bounded number of curves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Final

from corral.control.core.world import Job
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.model.metrics.job_figures import SCALAR
from corral.model.metrics.samples import Value
from corral.model.metrics.told_scalars import ToldScalars
from corral.model.states import TaskState
from corral.runtime.event_folder import MOST_CURVES

_MOST_ATTEMPTS: Final = 20_000
"""Attempts whose curves are known; of more, those that told nothing for the longest time are forgotten."""
_RUNS: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING, TaskState.DELETION_PENDING})
"""States in which an instance of a task may exist."""


def task_that_runs(jobs: Mapping[JobId, Job], attempt: AttemptId) -> TaskKey | None:
    """The task of which this is the current attempt, while its instance may exist.

    Raises ValueError for a malformed attempt.
    """
    job = jobs.get((key := parse_attempt_id(attempt)).job)
    task = None if job is None else job.tasks.get(key.task)
    if job is None or task is None or task.state not in _RUNS or job.run.attempt_of(task) != attempt:
        return None
    return task.key


class CurvesOfTasks:
    """Makes values of series of what attempts tell."""

    def __init__(self, take: Callable[[Iterable[tuple[float, Value]]], None], now: Callable[[], float]) -> None:
        """`take` gets the values with their times; `now` is the clock of the server."""
        self._take, self._now = take, now
        self._lock = Lock()
        self._curves: OrderedDict[AttemptId, set[tuple[str, str]]] = OrderedDict()

    def told(self, what: ToldScalars, task: TaskKey) -> int:
        """Take values of an attempt that runs, in any thread.

        Returns how many were left out, since their curves are more than an attempt may have. Raises ValueError for a
        malformed attempt.
        """
        job, name, now = parse_attempt_id(what.attempt).job, str(task), self._now()
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
                values.append((now - each.age, Value(SCALAR, (job, name, *curve), each.value)))
        self._take(values)
        return len(what.scalars) - len(values)
