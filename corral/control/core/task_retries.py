"""The tasks of a job that wait for their next attempt, and the one to report first: O(log n) a change."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from corral.kernel.ids import TaskKey
from corral.launcher import NEVER_RAN_ALARM
from corral.model.runs import TaskRun

Urgency = tuple[bool, float, TaskKey]
"""Sort key: tasks that never ran first, then by the time of the next attempt."""
_SPARE: Final = 64
"""Outdated heap entries, beyond one for each waiting task, that are tolerated before the heap is rebuilt."""


class TaskRetries:
    """The tasks of one job that wait for their next attempt."""

    def __init__(self, tasks: Mapping[TaskKey, TaskRun] = {}) -> None:
        self._urgencies: dict[TaskKey, Urgency] = {}
        self._heap: list[Urgency] = []
        """The current urgencies, and some outdated ones."""
        for key, task in tasks.items():
            self.change(key, task)

    def fork(self) -> TaskRetries:
        """An independent copy."""
        twin = TaskRetries()
        twin._urgencies, twin._heap = dict(self._urgencies), self._heap[:]
        return twin

    def __len__(self) -> int:
        return len(self._urgencies)

    def change(self, key: TaskKey, task: TaskRun | None) -> None:
        """Update one task; None removes it."""
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
        """The task to report; None when none waits."""
        while self._heap and self._urgencies.get(self._heap[0][2]) != self._heap[0]:
            heappop(self._heap)
        return self._heap[0][2] if self._heap else None
