"""Take the tasks of a core over into a driver, as it begins to play a copy of that core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from corral.control.core.driver import Driver
from corral.control.core.world import Job
from corral.model.launch import Started
from corral.model.runs import TaskRun
from corral.model.states import TaskState

_INSTANCE: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


class Ending(NamedTuple):
    """How a task that runs will end by itself; `at` is in seconds since 1970."""

    at: float
    code: int = 0


def adopt_tasks(driver: Driver, job: Job, ending: Callable[[TaskRun], Ending]) -> list[TaskRun]:
    """Have the driver end a job's running tasks as `ending` says, and removed ones at once; returns the running ones."""
    adopted, now = [], driver.now
    for task in job.tasks.values():
        attempt = job.run.attempt_of(task)
        if task.state is TaskState.DELETION_PENDING:
            driver.adopt(attempt, 0.0)
        elif task.state in _INSTANCE:
            if task.state is TaskState.PREPARING:
                driver.at(now, Started(attempt, now))
            end = ending(task)
            driver.adopt(attempt, end.at - now, end.code)
            adopted.append(task)
    return adopted
