"""Which of a job's tasks wait for their next attempt, and which of them people are told of: O(log n) a change."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from corral.kernel.ids import TaskKey
from corral.launcher import NEVER_RAN_ALARM
from corral.model.runs import TaskRun

Urgency = tuple[bool, float, TaskKey]
"""Tasks that never ran first, then those that are due first."""
_SPARE: Final = 64
"""So many entries that are out of date are left where they are."""


class Retrying:
    """The tasks of one job that wait for the time of their next attempt."""

    def __init__(self, tasks: Mapping[TaskKey, TaskRun] = {}) -> None:
        self._urgencies: dict[TaskKey, Urgency] = {}
        self._heap: list[Urgency] = []
        """The urgencies, and some that hold no more."""
        for key, task in tasks.items():
            self.change(key, task)

    def fork(self) -> Retrying:
        """An independent copy."""
        twin = Retrying()
        twin._urgencies, twin._heap = dict(self._urgencies), self._heap[:]
        return twin

    def __len__(self) -> int:
        return len(self._urgencies)

    def change(self, key: TaskKey, task: TaskRun | None) -> None:
        """A task is as it is now; None: it is gone."""
        if task is None or task.retry_at is None:
            self._urgencies.pop(key, None)
        else:
            urgency = (task.retries.unstarted < NEVER_RAN_ALARM, task.wake_at or 0.0, key)
            if self._urgencies.get(key) != urgency:
                self._urgencies[key] = urgency
                heappush(self._heap, urgency)
        if len(self._heap) > 2 * len(self._urgencies) + _SPARE:
            self._heap = list(self._urgencies.values())
            heapify(self._heap)

    def first(self) -> TaskKey | None:
        """The task to tell of; None when none waits."""
        while self._heap and self._urgencies.get(self._heap[0][2]) != self._heap[0]:
            heappop(self._heap)
        return self._heap[0][2] if self._heap else None
