"""The six completion templates of FrameworkController, Master-dominated in both forms, each played to its end."""

from __future__ import annotations

import pytest

from corral.launcher import RetryView
from corral.model.exits import ATTEMPT_COMPLETED
from corral.model.phases import Phase, phase
from corral.model.states import JobState
from tests.launcher.driver import Driver, role, view

ALWAYS = RetryView(-2, fancy=False)


def begun(*roles, **fields) -> Driver:  # type: ignore[no-untyped-def]
    driver = Driver(view(*roles, **fields))
    driver.start_all()
    return driver


def ended_as(driver: Driver, code: int, trigger: tuple[str, int]) -> None:
    """The attempt's end is decided like this; its remaining tasks end with -220."""
    completion = driver.run.completion
    assert completion is not None and completion.code == code
    assert completion.trigger is not None
    assert (completion.trigger.role, completion.trigger.index) == trigger
    remaining = [key for key, task in driver.tasks.items() if task.holds]
    if remaining:
        assert driver.run.state is JobState.DELETION_PENDING
    driver.exit_all(code=143)
    assert driver.run.state is JobState.COMPLETED
    assert driver.run.completion == completion
    for key in remaining:
        assert driver.task(key).completion.code == ATTEMPT_COMPLETED  # type: ignore[union-attr]
    assert not driver.held and not driver.waiting


def test_default_fails_with_the_first_failure() -> None:
    driver = begun(role(replicas=3))
    driver.exited("a-1", 0)
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-2", 9)
    ended_as(driver, 9, ("a", 2))
    assert phase(driver.run) is Phase.FAILED


def test_default_succeeds_when_all_have_succeeded() -> None:
    driver = begun(role(replicas=3))
    driver.exit_all(["a-0", "a-2"])
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-1")
    ended_as(driver, 0, ("a", 1))
    assert phase(driver.run) is Phase.SUCCEEDED


def test_service_runs_again_whatever_happens_until_it_is_stopped() -> None:
    driver = begun(role(replicas=2, retry=ALWAYS))
    for attempt, code in enumerate([0, 1, 137, 0], start=1):
        driver.exited("a-0", code)
        assert driver.task("a-0").attempt == attempt
        driver.started("a-0")
    assert driver.run.state is JobState.RUNNING
    driver.stop()
    driver.exit_all(code=143)
    assert phase(driver.run) is Phase.STOPPED


def test_map_reduce_tolerates_a_share_of_failures() -> None:
    tolerated = 10 * 20 // 100
    driver = begun(role(replicas=10, min_failed=tolerated + 1))
    driver.exit_all(["a-0", "a-1"], code=1)
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-2", 5)
    ended_as(driver, 5, ("a", 2))


def test_map_reduce_succeeds_with_tolerated_failures() -> None:
    driver = begun(role(replicas=10, min_failed=3))
    driver.exit_all(["a-3", "a-7"], code=1)
    driver.exit_all([f"a-{index}" for index in range(10) if index not in {3, 7}])
    ended_as(driver, 0, ("a", 9))
    assert "2 of 10 failed" in driver.run.completion.trigger.message  # type: ignore[union-attr]


@pytest.mark.parametrize(("code", "expected"), [(0, Phase.SUCCEEDED), (4, Phase.FAILED)])
def test_master_dominated_by_the_master_alone(code: int, expected: Phase) -> None:
    """First form: master (1, 1), workers (-1, -1)."""
    driver = begun(role("master", 1, min_failed=1, min_succeeded=1), role("worker", 3, min_failed=-1, min_succeeded=-1))
    driver.exited("worker-0", 1)
    driver.exited("worker-1", 0)
    assert driver.run.state is JobState.RUNNING
    driver.exited("master-0", code)
    ended_as(driver, code, ("master", 0))
    assert phase(driver.run) is expected


@pytest.mark.parametrize("failing", ["master-0", "worker-2"])
def test_master_dominated_with_workers_that_must_not_fail(failing: str) -> None:
    """Second form: master (1, 1), workers (1, -1)."""
    roles = (role("master", 1, min_failed=1, min_succeeded=1), role("worker", 3, min_failed=1, min_succeeded=-1))
    driver = begun(*roles)
    driver.exited(failing, 6)
    ended_as(driver, 6, (driver.key(failing).role, driver.key(failing).index))
    driver = begun(*roles)
    driver.exited("worker-0", 0)
    driver.exited("master-0", 0)
    ended_as(driver, 0, ("master", 0))


@pytest.mark.parametrize("form", [(1, -1), (1, 3)])
def test_all_workers_end_the_job_however_many_servers_run(form: tuple[int, int]) -> None:
    """Servers (1, -1) never end by themselves; workers (1, n) end the job when all have succeeded."""
    driver = begun(role("ps", 2, min_failed=1), role("worker", 3, min_failed=form[0], min_succeeded=form[1]))
    driver.exit_all(["worker-0", "worker-1"])
    assert driver.run.state is JobState.RUNNING
    driver.exited("worker-2")
    if form[1] == 3:
        ended_as(driver, 0, ("worker", 2))
    else:
        assert driver.run.state is JobState.RUNNING
        driver.exit_all(["ps-0"])
        driver.exited("ps-1", 3)
        ended_as(driver, 3, ("ps", 1))


def test_any_worker_succeeds_for_all() -> None:
    """Any worker, PyTorch elastic: (n, 1)."""
    driver = begun(role(replicas=3, min_failed=3, min_succeeded=1))
    driver.exit_all(["a-0", "a-1"], code=1)
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-2", 0)
    ended_as(driver, 0, ("a", 2))


def test_any_worker_fails_when_all_have_failed() -> None:
    driver = begun(role(replicas=3, min_failed=3, min_succeeded=1))
    driver.exit_all(["a-0", "a-1"], code=1)
    driver.exited("a-2", 2)
    ended_as(driver, 2, ("a", 2))


def test_a_job_of_several_roles_waits_for_all_of_them() -> None:
    driver = begun(role("a", 1), role("b", 2))
    driver.exit_all(["a-0", "b-0"])
    assert driver.run.state is JobState.RUNNING
    driver.exited("b-1")
    ended_as(driver, 0, ("b", 1))


def test_a_task_that_is_retried_does_not_count_as_failed() -> None:
    driver = begun(role(replicas=2, retry=RetryView(1, False)))
    driver.exited("a-0", 1)
    assert driver.run.state is JobState.RUNNING
    driver.started("a-0")
    driver.exited("a-0", 1)
    ended_as(driver, 1, ("a", 0))


def test_an_elastic_job_that_did_its_work_does_not_wait_for_tasks_that_never_got_a_place() -> None:
    driver = Driver(view(role(replicas=4, min_replicas=2)))
    driver.place("a-0", "a-1", "a-2")
    assert driver.waiting == {driver.key("a-3")}
    for name in ("a-0", "a-1", "a-2"):
        driver.started(name)
    driver.exit_all(["a-0", "a-1"])
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-2")
    ended_as(driver, 0, ("a", 2))
    assert driver.task("a-3").completion.code == ATTEMPT_COMPLETED  # type: ignore[union-attr]


def test_nobody_joins_an_elastic_job_of_which_some_have_done_the_work() -> None:
    driver = Driver(view(role(replicas=4, min_replicas=2)))
    driver.place("a-0", "a-1")
    for name in ("a-0", "a-1"):
        driver.started(name)
    driver.place("a-2")
    driver.exited("a-0")
    assert not driver.waiting, "what a-0 held is not asked for: nobody is there any more to be joined"
    assert driver.stops() == [driver.attempt("a-2")], "what has not begun does not"
    driver.exited("a-2", 143)
    assert not driver.waiting and driver.run.state is JobState.RUNNING
    driver.exited("a-1")
    ended_as(driver, 0, ("a", 1))


def test_a_task_that_failed_is_tried_again_after_others_have_done_the_work() -> None:
    driver = Driver(view(role(replicas=3, min_replicas=2, retry=RetryView(-1))))
    driver.start_all()
    driver.exited("a-1", -1001)
    assert driver.waiting == {driver.key("a-1")}
    driver.exited("a-0")
    assert driver.waiting == {driver.key("a-1")}


def test_a_static_job_waits_for_every_task() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.place("a-0")
    driver.started("a-0")
    driver.exited("a-0")
    assert driver.run.state is JobState.PREPARING or driver.run.state is JobState.RUNNING
    driver.place("a-1")
    driver.started("a-1")
    driver.exited("a-1")
    ended_as(driver, 0, ("a", 1))


def test_a_task_that_the_end_of_the_job_stopped_is_told_from_one_that_failed() -> None:
    driver = begun(role("master", 1, min_failed=1, min_succeeded=1), role("worker", 3, min_failed=-1, min_succeeded=-1))
    driver.exited("worker-0", 1)
    driver.exited("worker-1", 0)
    driver.exited("master-0", 0)
    ended_as(driver, 0, ("master", 0))
    count = driver.run.roles["worker"]
    assert (count.succeeded, count.failed, count.stopped, count.faulty) == (1, 2, 1, 1)
