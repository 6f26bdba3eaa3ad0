"""The twelve steps of a live rescale in FrameworkController's manual, played one by one."""

from __future__ import annotations

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.commands import ReleasePlacement, RequestPlacement, StopTask
from corral.model.exits import DELETE_TASK_REQUESTED
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view


def test_the_twelve_steps() -> None:
    four = view(role(replicas=4, min_failed=4, min_succeeded=1))
    two = view(role(replicas=2, min_failed=2, min_succeeded=1))
    driver = Driver(four)
    # 1: all run
    driver.start_all()
    first = {key: driver.attempt(key) for key in driver.tasks}
    # 2: a-2 and a-3 fail
    driver.exit_all(["a-2", "a-3"], code=1)
    assert driver.run.state is JobState.RUNNING
    # 3 and 4: in one update tasks = minFailed = 2; a-2 and a-3 vanish, the job runs on
    driver.scale(2, spec=two)
    assert driver.run.state is JobState.RUNNING
    assert driver.indexes() == [0, 1]
    # 5: up to four, all run
    driver.scale(4)
    driver.start_all()
    assert all(driver.state(f"a-{index}") is TaskState.RUNNING for index in range(4))
    assert driver.attempt("a-2") != first[driver.key("a-2")]
    # 6: a-2 fails
    failed = driver.attempt("a-2")
    driver.exited("a-2", 1)
    assert driver.run.state is JobState.RUNNING
    # 7: down to two and, before a-3 is gone, up to three
    old = driver.attempt("a-3")
    driver.scale(2)
    assert driver.stops() == [old]
    assert driver.indexes() == [0, 1, 3]
    driver.scale(3)
    # 8: a-2 is a new instance, a-3 ends, the job runs
    driver.start_all()
    assert driver.attempt("a-2") != failed
    assert driver.task("a-3").deletion_pending
    driver.exited("a-3", 143)
    assert driver.ended[-1].completion is not None
    assert driver.ended[-1].completion.code == DELETE_TASK_REQUESTED
    assert driver.indexes() == [0, 1, 2]
    assert driver.run.state is JobState.RUNNING
    # 9: up to four
    driver.scale(4)
    driver.start_all()
    assert driver.attempt("a-3") != old
    # 10: a-2 fails
    second, third = driver.attempt("a-2"), driver.attempt("a-3")
    driver.exited("a-2", 1)
    # 11: down to two and at once up to five
    driver.scale(2)
    driver.scale(5)
    # 12: a-2 and a-3 are new instances, a-4 is added, the job runs
    assert driver.indexes() == [0, 1, 2, 3, 4]
    assert driver.task("a-3").deletion_pending and driver.attempt("a-3") == third
    driver.exited("a-3", 143)
    driver.start_all()
    assert driver.indexes() == [0, 1, 2, 3, 4]
    assert not driver.task("a-3").deletion_pending
    assert {driver.attempt("a-2"), driver.attempt("a-3")}.isdisjoint({second, third})
    assert [driver.attempt(f"a-{index}") for index in (0, 1)] == [first[driver.key("a-0")], first[driver.key("a-1")]]
    assert driver.run.state is JobState.RUNNING
    assert driver.run.roles["a"].running == 5


def test_a_scale_down_ends_the_named_tasks_first_then_the_highest() -> None:
    driver = Driver(view(role(replicas=5)))
    driver.start_all()
    driver.scale(3, remove=(1,))
    assert [key.index for key, task in sorted(driver.tasks.items()) if task.deletion_pending] == [1, 4]
    driver.exit_all(["a-1", "a-4"], code=143)
    assert driver.indexes() == [0, 2, 3]


def test_an_elastic_role_lets_go_of_tasks_without_a_place_first() -> None:
    driver = Driver(view(role(replicas=4, min_replicas=1)))
    driver.place("a-0", "a-1", "a-3")
    driver.scale(3)
    assert driver.indexes() == [0, 1, 3]
    assert driver.stops() == []


def test_a_leaving_task_is_not_retried_whatever_its_exit() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.start_all()
    driver.scale(1)
    driver.exited("a-1", -101)
    assert driver.indexes() == [0]


def test_an_index_never_uses_an_attempt_number_again() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.start_all()
    used = set()
    for _ in range(5):
        used.add(driver.attempt("a-1"))
        driver.scale(1)
        driver.exited("a-1", 143)
        driver.scale(2)
        driver.start_all()
    used.add(driver.attempt("a-1"))
    assert len(used) == 6


def test_a_second_scale_down_drops_what_was_only_awaited() -> None:
    driver = Driver(view(role(replicas=4)))
    driver.start_all()
    driver.scale(2)
    driver.scale(4)
    assert driver.run.roles["a"].awaited == (2, 3)
    driver.scale(3)
    assert driver.run.roles["a"].awaited == (2,)
    driver.exit_all(["a-2", "a-3"], code=143)
    assert driver.indexes() == [0, 1, 2]


def test_scaling_a_gang_that_waits_changes_what_it_waits_for() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.scale(3)
    assert driver.commands == [
        ReleasePlacement((driver.key("a-0"), driver.key("a-1"))),
        RequestPlacement(0, (driver.key("a-2"), driver.key("a-0"), driver.key("a-1")), grow=False),
    ]
    driver.scale(1)
    assert driver.waiting == {driver.key("a-0")}
    assert driver.run.state is JobState.CREATION_REQUESTED


def test_scaling_a_held_job_changes_its_plan_only() -> None:
    driver = Driver(view(role(replicas=2)), hold="dependency")
    driver.scale(4)
    assert driver.indexes() == [0, 1, 2, 3] and driver.commands == []
    driver.scale(1)
    assert driver.indexes() == [0] and driver.run.state is JobState.CREATION_PENDING


def test_scaling_away_the_last_running_tasks_completes_the_job() -> None:
    driver = Driver(view(role(replicas=3, min_failed=-1)))
    driver.start_all()
    driver.exited("a-0")
    driver.scale(1)
    assert driver.run.state is JobState.DELETION_PENDING
    driver.exit_all(code=143)
    assert driver.run.state is JobState.COMPLETED
    assert driver.run.completion is not None and driver.run.completion.succeeded
    assert driver.indexes() == [0]


def test_a_policy_changed_with_the_number_decides_at_once() -> None:
    driver = Driver(view(role(replicas=4, min_failed=3)))
    driver.start_all()
    driver.exit_all(["a-0", "a-1"], code=7)
    assert driver.run.state is JobState.RUNNING
    driver.scale(4, spec=view(role(replicas=4, min_failed=2)))
    assert driver.run.state is JobState.DELETION_PENDING
    assert driver.run.completion is not None and driver.run.completion.code == 7


def test_scaling_while_the_attempt_ends_is_for_the_next_one() -> None:
    from corral.launcher import RetryView

    driver = Driver(view(role(replicas=2), retry=RetryView(1)))
    driver.start_all()
    driver.exited("a-0", 1)
    driver.scale(3)
    assert not [command for command in driver.commands if isinstance(command, StopTask)]
    driver.exited("a-1", 143)
    assert driver.indexes() == [0, 1, 2] and driver.run.attempt == 1


def test_a_rescale_that_cannot_be_is_refused_with_a_sentence() -> None:
    driver = Driver(view(role(replicas=2)))
    with pytest.raises(InvalidInput, match="no role b; it has a"):
        driver.scale(1, "b")
    with pytest.raises(InvalidInput, match="cannot have -1 tasks"):
        driver.scale(-1)
