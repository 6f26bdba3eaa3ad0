"""The cost of an event about one task does not grow with the job's other tasks, up to ten thousand.

The tests count work, not time: the tasks that a step reads, changes and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from corral.kernel.ids import TaskKey
from corral.launcher import RetryView, recount, step
from corral.model.commands import ForgetTask, RequestPlacement, StartTask, StopTask
from corral.model.events import JobEvent, Placed
from corral.model.launch import Exited, Started
from corral.model.phases import Phase, phase
from corral.model.placement import Placement, TaskPlacement
from corral.model.runs import TaskRun
from corral.model.states import JobState
from tests.examples import at_least
from tests.launcher.driver import Driver, role, view

MANY = at_least(2_000, 10_000)


class Counting(Mapping[TaskKey, TaskRun]):
    """The tasks of a job; counts the ones that are read."""

    def __init__(self, tasks: Mapping[TaskKey, TaskRun]) -> None:
        self.tasks = tasks
        self.reads = 0

    def __getitem__(self, key: TaskKey) -> TaskRun:
        self.reads += 1
        return self.tasks[key]

    def __iter__(self) -> Iterator[TaskKey]:
        self.reads += len(self.tasks)
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


class Big(Driver):
    """A driver of ten thousand tasks; all of them are checked only on request."""

    def check(self) -> None:
        pass

    def check_now(self) -> None:
        super().check()

    def send(self, event: JobEvent, spec=None):  # type: ignore[no-untyped-def]
        counting = Counting(self.tasks)
        done = step(self.spec, self.run, counting, event, self.now, self.policy)
        self.work = max(counting.reads, len(done.tasks), len(done.commands), len(done.facts))
        return self.apply(done)


def running(**fields) -> Big:  # type: ignore[no-untyped-def]
    driver = Big(view(role(replicas=MANY, **fields)))
    assert driver.commands == [RequestPlacement(0, tuple(TaskKey("a", index) for index in range(MANY)))]
    driver.place()
    assert sum(isinstance(command, StartTask) for command in driver.commands) == MANY
    return driver


def test_starting_and_ending_ten_thousand_tasks_costs_the_same_for_each() -> None:
    driver = running()
    for index in range(MANY):
        driver.send(Started(driver.attempt(TaskKey("a", index)), driver.now))
        assert driver.work <= 10
    assert driver.run.roles["a"].running == MANY
    driver.check_now()
    for index in range(MANY - 1):
        driver.send(Exited(driver.attempt(TaskKey("a", index)), driver.now, 0))
        assert driver.work <= 10
    assert driver.run.state is JobState.RUNNING
    driver.send(Exited(driver.attempt(TaskKey("a", MANY - 1)), driver.now, 0))
    assert phase(driver.run) is Phase.SUCCEEDED
    driver.check_now()


def test_one_failure_ends_ten_thousand_tasks_in_one_step_and_their_ends_cost_the_same_for_each() -> None:
    driver = running()
    for index in range(0, MANY, 2):
        driver.send(Started(driver.attempt(TaskKey("a", index)), driver.now))
    driver.send(Exited(driver.attempt(TaskKey("a", 17)), driver.now, 1))
    assert sum(isinstance(command, StopTask) for command in driver.commands) == MANY - 1
    assert len(driver.tasks) == MANY
    for index in range(MANY):
        if index != 17:
            driver.send(Exited(driver.attempt(TaskKey("a", index)), driver.now, 143))
            assert driver.work <= 10
    assert phase(driver.run) is Phase.FAILED
    assert driver.run.completion is not None and driver.run.completion.code == 1
    driver.check_now()


@pytest.mark.parametrize("code", [1, 251, -1001])
def test_a_retry_in_place_later_or_elsewhere_costs_the_same_among_many(code: int) -> None:
    driver = running(retry=RetryView(5, True))
    for index in range(100):
        driver.send(Started(driver.attempt(TaskKey("a", index)), driver.now))
        driver.send(Exited(driver.attempt(TaskKey("a", index)), driver.now, code))
        assert driver.work <= 10
    driver.check_now()


def test_a_place_for_one_more_among_many_costs_the_same() -> None:
    driver = running(retry=RetryView(0, True))
    driver.send(Started(driver.attempt("a-5"), driver.now))
    driver.send(Exited(driver.attempt("a-5"), driver.now, -1001))
    driver.send(Placed(0, Placement((TaskPlacement("a", 5, "local/n2"),))))
    assert driver.work <= 10 and driver.starts() == ["0123456789abc.0.a.5.1"]


def test_ten_thousand_delayed_retries_come_due_together_at_few_moments() -> None:
    driver = running(retry=RetryView(0, True))
    driver.send(Started(driver.attempt("a-0"), driver.now))
    for index in range(MANY):
        driver.send(Exited(driver.attempt(TaskKey("a", index)), driver.now, 251))
    moments = {task.wake_at for task in driver.tasks.values()}
    assert len(moments) <= 841
    driver.advance(900)
    assert len(driver.waiting) == MANY and driver.run.wake_at is None
    driver.check_now()


def test_scaling_from_ten_thousand_to_one_is_one_step() -> None:
    driver = running()
    driver.scale(1)
    assert sum(isinstance(command, StopTask) for command in driver.commands) == MANY - 1
    for index in range(1, MANY):
        attempt = driver.attempt(TaskKey("a", index))
        driver.send(Exited(attempt, driver.now, 143))
        assert driver.work <= 10 and ForgetTask(attempt) in driver.commands
    assert driver.indexes() == [0]
    assert recount(driver.run.roles, driver.tasks) == driver.run.roles
