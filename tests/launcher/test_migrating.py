"""A migrated task moves to another node while the others run on, and the move does not count as a failure."""

from __future__ import annotations

import pytest

from corral.launcher import RetryView
from corral.model.commands import StopTask
from corral.model.events import MigrateRequested
from corral.model.exits import MIGRATED
from corral.model.outcome import ExitClass
from corral.model.runs import Retries
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view


def running(retry: RetryView) -> Driver:
    driver = Driver(view(role(replicas=3, retry=retry)))
    driver.start_all()
    return driver


def migrate(driver: Driver, task: str) -> None:
    driver.send(MigrateRequested(driver.key(task), "ada"))


@pytest.mark.parametrize("retry", [RetryView(0, fancy=False), RetryView(3)])
def test_one_task_ends_and_waits_for_another_place_while_the_others_run(retry: RetryView) -> None:
    driver = running(retry)
    migrate(driver, "a-1")
    assert driver.commands == [StopTask(driver.attempt("a-1"), 30.0, "TERM")]
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-1", 143)
    (ended,) = [task.completion for task in driver.ended]
    assert ended is not None and (ended.phrase, ended.exit_class) == (MIGRATED, ExitClass.TRANSIENT)
    assert driver.waiting == {driver.key("a-1")}
    task = driver.tasks[driver.key("a-1")]
    assert (task.attempt, task.retries) == (1, Retries())
    assert [driver.tasks[driver.key(name)].state for name in ("a-0", "a-2")] == [TaskState.RUNNING] * 2
    driver.start_all()
    assert driver.tasks[driver.key("a-1")].state is TaskState.RUNNING


def test_a_task_that_holds_no_place_is_left_alone() -> None:
    driver = Driver(view(role(replicas=1)))
    migrate(driver, "a-0")
    assert driver.commands == []
    driver.start_all()
    migrate(driver, "a-0")
    migrate(driver, "a-0")
    assert driver.commands == []
    driver.exited("a-0", 143)
    assert driver.waiting == {driver.key("a-0")}
