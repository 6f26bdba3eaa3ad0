"""The steps of a gang's tasks between two stored reports of their job.

The store keeps one report of a job in ten seconds, of whichever task came first. What others said meanwhile goes with
the next one that is stored, so that control knows how far each task is.
"""

from __future__ import annotations

from typing import Final

from corral.kernel.ids import AttemptKey, JobId, TaskKey
from corral.model.runs import TaskStep

_MOST_JOBS: Final = 2_000
_MOST_TASKS: Final = 512
"""Tasks of one job that are remembered."""
MOST_AT_ONCE: Final = 16
"""Other tasks' steps that go with one report; those that waited longest go first."""


class GangReports:
    """What was said and not stored, by job; of more than 2,000 jobs the oldest are forgotten."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, tuple[int, dict[TaskKey, TaskStep]]] = {}

    def others(self, key: AttemptKey) -> tuple[TaskStep, ...]:
        """What goes with a report of a task: the steps of others of the same attempt of its job."""
        attempt, steps = self._jobs.get(key.job, (-1, {}))
        if attempt != key.job_attempt:
            return ()
        return tuple(step for task, step in steps.items() if task != key.task)[:MOST_AT_ONCE]

    def told(self, key: AttemptKey, others: tuple[TaskStep, ...]) -> None:
        """Forget what was stored with a report of a task, unless it has changed meanwhile."""
        attempt, steps = self._jobs.get(key.job, (-1, {}))
        if attempt != key.job_attempt:
            return
        steps.pop(key.task, None)
        for each in others:
            task = TaskKey(each.role, each.index)
            if steps.get(task) == each:
                del steps[task]
        if not steps:
            del self._jobs[key.job]

    def note(self, key: AttemptKey, said: TaskStep) -> None:
        """Remember a task's step that was not stored; a later one takes its place in the order."""
        attempt, known = self._jobs.get(key.job, (-1, {}))
        if attempt > key.job_attempt:
            return
        if attempt != key.job_attempt:
            self._jobs.pop(key.job, None)
            if len(self._jobs) >= _MOST_JOBS:
                del self._jobs[next(iter(self._jobs))]
            known = {}
            self._jobs[key.job] = key.job_attempt, known
        if key.task in known or len(known) < _MOST_TASKS:
            known[key.task] = said
