"""Of a job's tasks that wait for a retry, the status names one that never ran, or else the one due first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.control.core.task_retries import TaskRetries
from corral.kernel.ids import TaskKey
from corral.launcher import NEVER_RAN_ALARM
from corral.model.runs import Retries, TaskRun
from corral.model.states import TaskState

KEYS = [TaskKey("worker", index) for index in range(5)]


def waiting(key: TaskKey, at: float, unstarted: int = 0) -> TaskRun:
    retries = Retries(unstarted=unstarted)
    return TaskRun(key.role, key.index, TaskState.ATTEMPT_COMPLETED, retries=retries, wake_at=at)


def test_a_task_that_never_ran_comes_before_one_that_is_due_sooner() -> None:
    found = TaskRetries({KEYS[0]: waiting(KEYS[0], 1.0), KEYS[1]: waiting(KEYS[1], 9.0, NEVER_RAN_ALARM)})
    assert found.first() == KEYS[1]
    found.change(KEYS[1], None)
    assert found.first() == KEYS[0]


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.tuples(st.integers(0, 9), st.booleans())))))
def test_it_is_always_the_most_urgent_of_those_that_wait_and_what_is_kept_is_bounded(
    changes: list[tuple[TaskKey, tuple[int, bool] | None]],
) -> None:
    found, tasks = TaskRetries(), dict[TaskKey, TaskRun]()
    for key, change in changes * 9:
        tasks.pop(key, None)
        if change is not None:
            tasks[key] = waiting(key, float(change[0]), NEVER_RAN_ALARM if change[1] else 0)
        found.change(key, tasks.get(key))
        order = sorted(tasks, key=lambda key: (tasks[key].retries.unstarted < NEVER_RAN_ALARM, tasks[key].wake_at, key))
        assert found.first() == (order[0] if order else None)
        assert len(found) == len(tasks) and len(found._heap) <= 2 * len(tasks) + 65
