"""Holds, stops, restarts, deadlines, lost places and late events, each played as a user sees it."""

from __future__ import annotations

import pytest

from corral.kernel.ids import AttemptId
from corral.launcher import InvalidTransition, LaunchPolicy, RetryView
from corral.model.commands import ForgetTask, ReleasePlacement, RequestPlacement, StartTask, StopTask
from corral.model.events import (
    DependencyFailed,
    HoldReleased,
    Placed,
    RestartRequested,
    StartRefused,
    StopRequested,
    Unplaceable,
)
from corral.model.exits import DEADLINE_EXCEEDED, GANG_TIMED_OUT, STOP_REQUESTED, classify
from corral.model.launch import Exited, Started
from corral.model.outcome import ExitClass
from corral.model.phases import Phase, phase
from corral.model.placement import Placement, TaskPlacement
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view


def code_of(driver: Driver) -> int:
    assert driver.run.completion is not None
    return driver.run.completion.code


def test_a_job_asks_for_all_its_places_at_once_and_starts_what_it_gets() -> None:
    driver = Driver(view(role("a", 2), role("b", 1)))
    keys = (driver.key("a-0"), driver.key("a-1"), driver.key("b-0"))
    assert driver.commands == [RequestPlacement(0, keys)]
    assert phase(driver.run) is Phase.WAITING
    driver.place()
    assert driver.starts() == [driver.attempt(key) for key in keys]
    assert phase(driver.run) is Phase.STARTING
    driver.started("a-1")
    assert phase(driver.run) is Phase.RUNNING
    assert driver.run.started_at == driver.now


def test_what_is_told_reads_as_sentences() -> None:
    driver = Driver(view(role("worker", 2)))
    driver.start_all()
    driver.exited("worker-1", 3, "ran out of patience")
    told = {fact.kind: fact.message for fact in driver.facts}
    assert told["job.placed"] == "2 tasks were placed on local/n1"
    assert told["task.exited"] == "worker-1 exited with code 3 (UserCommandExitWithError): ran out of patience"
    assert "1 of worker's tasks failed, and minFailed is 1" in told["job.ending"]
    exited = next(fact for fact in driver.facts if fact.kind == "task.exited")
    assert (exited.role, exited.index, exited.attempt) == ("worker", 1, "0123456789abc.0.worker.1.0")
    assert exited.data["code"] == 3


def test_a_held_job_asks_for_nothing_until_it_is_released() -> None:
    driver = Driver(view(), hold="dependency")
    assert driver.run.state is JobState.CREATION_PENDING and driver.commands == []
    driver.send(HoldReleased())
    assert driver.run.state is JobState.CREATION_REQUESTED and len(driver.waiting) == 1
    driver.send(HoldReleased())
    assert driver.commands == []


def test_a_job_whose_dependency_failed_never_runs() -> None:
    driver = Driver(view(role(), retry=RetryView(-2)), hold="dependency")
    driver.send(DependencyFailed("it waited for job prepare, which failed"))
    assert driver.run.state is JobState.COMPLETED and phase(driver.run) is Phase.STOPPED
    assert "prepare" in driver.run.completion.diagnostics  # type: ignore[union-attr]


@pytest.mark.parametrize("hold", ["", "dependency"])
def test_a_stop_before_placement_completes_at_once(hold: str) -> None:
    driver = Driver(view(role(replicas=2)), hold=hold)
    driver.stop()
    assert driver.run.state is JobState.COMPLETED and code_of(driver) == STOP_REQUESTED
    assert driver.stops() == [] and not driver.waiting
    assert any(isinstance(command, ReleasePlacement) for command in driver.commands) is (not hold)


def test_a_stop_ends_the_tasks_with_the_jobs_signal_and_grace() -> None:
    driver = Driver(view(role(replicas=2), retry=RetryView(-2), grace_seconds=7.0, stop_signal="USR1"))
    driver.start_all()
    driver.stop()
    stops = [command for command in driver.commands if isinstance(command, StopTask)]
    assert stops == [StopTask(driver.attempt(f"a-{index}"), 7.0, "USR1") for index in (0, 1)]
    assert phase(driver.run) is Phase.STOPPING
    driver.exit_all(code=0)
    assert driver.run.state is JobState.COMPLETED and driver.run.attempt == 0
    assert phase(driver.run) is Phase.STOPPED


def test_a_stop_may_bring_its_own_completion() -> None:
    driver = Driver(view())
    driver.start_all()
    driver.send(StopRequested("quota", classify(-1003, "its devices were claimed")))
    driver.exit_all(code=143)
    assert code_of(driver) == -1003 and phase(driver.run) is Phase.FAILED


def test_a_stop_while_the_attempt_ends_keeps_its_completion_and_forbids_the_retry() -> None:
    driver = Driver(view(role(replicas=2), retry=RetryView(5)))
    driver.start_all()
    driver.exited("a-0", 3)
    driver.stop()
    driver.exited("a-1", 143)
    assert driver.run.state is JobState.COMPLETED and code_of(driver) == 3


def test_an_attempt_is_deleting_once_one_of_its_tasks_has_ended() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.start_all()
    driver.stop()
    assert (driver.run.state, driver.state("a-0")) == (JobState.DELETION_PENDING, TaskState.DELETION_PENDING)
    driver.exited("a-1", 143)
    assert driver.run.state is JobState.DELETING and driver.state("a-0") is TaskState.DELETION_PENDING
    driver.exited("a-0", 143)
    assert driver.run.state is JobState.COMPLETED


def test_a_restart_of_a_completed_job_begins_anew_with_its_retries_unspent() -> None:
    driver = Driver(view(role(replicas=2), retry=RetryView(1)))
    for _ in range(2):
        driver.start_all()
        driver.exit_all(code=1)
    assert driver.run.state is JobState.COMPLETED and driver.run.retries.accountable == 1
    driver.send(RestartRequested("ada"))
    assert driver.run.state is JobState.CREATION_REQUESTED
    assert driver.run.attempt == 2 and driver.run.retries.total == 0 and driver.run.completion is None
    driver.start_all()
    driver.exit_all()
    assert phase(driver.run) is Phase.SUCCEEDED


def test_a_restart_of_a_running_job_ends_it_first() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.start_all()
    driver.send(RestartRequested("ada"))
    assert len(driver.stops()) == 2 and driver.run.attempt == 0
    driver.exited("a-0", 143)
    assert driver.run.attempt == 0
    driver.exited("a-1", 143)
    assert driver.run.attempt == 1 and driver.run.state is JobState.CREATION_REQUESTED


def test_a_restart_after_a_stop_runs_again_and_a_stop_after_a_restart_does_not() -> None:
    driver = Driver(view())
    driver.start_all()
    driver.stop()
    driver.send(RestartRequested("ada"))
    driver.exit_all(code=143)
    assert driver.run.attempt == 1 and not driver.run.stop_requested
    driver.start_all()
    driver.send(RestartRequested("ada"))
    driver.stop()
    driver.exit_all(code=143)
    assert driver.run.state is JobState.COMPLETED and driver.run.attempt == 1


def test_a_job_that_runs_for_too_long_is_ended_for_good() -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(-2)), retry=RetryView(-2), max_duration_seconds=60))
    driver.start_all()
    assert driver.run.wake_at == driver.now + 60
    driver.advance(59)
    assert driver.run.state is JobState.RUNNING
    driver.advance(1)
    assert len(driver.stops()) == 2
    driver.exit_all(code=143)
    assert code_of(driver) == DEADLINE_EXCEEDED and driver.run.state is JobState.COMPLETED


def test_the_duration_counts_from_the_first_start_of_each_attempt() -> None:
    driver = Driver(view(role(), retry=RetryView(1), max_duration_seconds=60))
    driver.start_all()
    driver.advance(50)
    driver.exited("a-0", 1)
    driver.start_all()
    driver.advance(50)
    assert driver.run.state is JobState.RUNNING
    driver.advance(10)
    assert driver.run.state is JobState.DELETION_PENDING


def test_an_attempt_of_a_task_that_runs_for_too_long_ends_alone_and_its_retry_policy_decides() -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(1, fancy=False), max_task_seconds=60)))
    driver.start_all()
    driver.advance(20)
    driver.exited("a-1", 1)
    driver.started("a-1")
    driver.advance(39)
    assert not driver.stops()
    driver.advance(1)
    assert driver.stops() == [driver.attempt("a-0")]
    driver.exited("a-0", 143)
    ended = driver.ended[-1].completion
    assert ended is not None and (ended.code, ended.exit_class) == (DEADLINE_EXCEEDED, ExitClass.PERMANENT)
    driver.started("a-0")
    assert (driver.task("a-0").attempt, driver.run.state) == (1, JobState.RUNNING)
    driver.advance(20)
    assert driver.stops() == [driver.attempt("a-1")]
    driver.exited("a-1", 143)
    driver.exit_all(code=143)
    assert code_of(driver) == DEADLINE_EXCEEDED and driver.run.state is JobState.COMPLETED


def test_a_task_past_its_deadline_is_not_tried_again_where_permanent_failures_are_not() -> None:
    driver = Driver(view(role(retry=RetryView(5, fancy=True), max_task_seconds=60)))
    driver.start_all()
    driver.advance(60)
    driver.exited("a-0", 0)
    assert code_of(driver) == DEADLINE_EXCEEDED and driver.run.state is JobState.COMPLETED


def test_a_gang_that_is_not_complete_in_time_gives_everything_back_and_comes_again_later() -> None:
    policy = LaunchPolicy((60, 60), start_deadline=30.0, retry_first=0.0)
    driver = Driver(view(role(replicas=3, retry=RetryView(0, True)), retry=RetryView(0, True)), policy=policy)
    driver.place()
    driver.started("a-0")
    driver.advance(30)
    assert len(driver.stops()) == 3 and driver.starts() == []
    assert driver.run.completion is not None and driver.run.completion.exit_class is ExitClass.CONFLICT
    assert driver.run.completion.diagnostics == "a-1 and 1 more had not started 30 s after the gang was placed"
    for name in ("a-0", "a-1", "a-2"):
        driver.exited(name, 143)
    assert driver.task("a-1").completion.code == -111  # type: ignore[union-attr]
    assert not driver.held and driver.run.state is JobState.ATTEMPT_COMPLETED
    driver.advance(60)
    assert driver.run.attempt == 1 and driver.run.state is JobState.CREATION_REQUESTED


def test_a_task_that_is_too_slow_to_start_again_is_tried_once_more_alone() -> None:
    policy = LaunchPolicy(start_deadline=30.0, retry_first=0.0)
    driver = Driver(view(role(replicas=2, retry=RetryView(1, True))), policy=policy)
    driver.start_all()
    driver.exited("a-1", 1)
    driver.advance(30)
    assert driver.stops() == ["0123456789abc.0.a.1.1"] and driver.starts() == []
    assert driver.state("a-0") is TaskState.RUNNING
    driver.exited("a-1", 143)
    assert driver.starts() == ["0123456789abc.0.a.1.2"]
    assert driver.ended[-1].completion.code == -111  # type: ignore[union-attr]


def test_a_lost_place_is_asked_for_anew_and_is_no_retry() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.place()
    driver.started("a-0")
    driver.send(Unplaceable((driver.key("a-1"),), "node n1 was removed"))
    assert driver.state("a-1") is TaskState.CREATION_REQUESTED
    assert driver.task("a-1").retries.total == 0
    assert RequestPlacement(0, (driver.key("a-1"),), grow=True) in driver.commands
    driver.place(node="local/n2")
    assert driver.starts() == ["0123456789abc.0.a.1.1"]


def test_a_gang_that_lost_all_its_places_waits_again() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.place()
    driver.send(Unplaceable(tuple(driver.tasks), "node n1 was removed"))
    assert phase(driver.run) is Phase.WAITING and not driver.held


@pytest.mark.parametrize("others_run", [False, True])
def test_a_lost_place_of_a_task_that_was_too_late_counts_as_its_failure(others_run: bool) -> None:
    driver = Driver(view(role(replicas=2)), policy=LaunchPolicy(start_deadline=30.0, retry_first=0.0))
    driver.place()
    if others_run:
        driver.started("a-0")
    driver.advance(30)
    driver.send(Unplaceable((driver.key("a-1"),), "node n1 was removed"))
    assert driver.run.state is JobState.DELETION_PENDING and code_of(driver) == GANG_TIMED_OUT
    assert driver.task("a-1").completion.code == -111  # type: ignore[union-attr]


def test_a_gang_that_lost_its_places_one_by_one_is_one_gang_again() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.place()
    driver.send(Unplaceable((driver.key("a-1"),), "node n1 was removed"))
    driver.send(Unplaceable((driver.key("a-0"),), "node n1 was removed"))
    assert set(driver.commands[0].tasks) == set(driver.tasks)  # type: ignore[union-attr]
    assert driver.commands[1] == RequestPlacement(0, (driver.key("a-0"), driver.key("a-1")), grow=False)


def test_a_lost_place_of_a_task_that_was_to_end_is_its_end() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.place()
    driver.stop()
    driver.send(Unplaceable(tuple(driver.tasks), "node n1 was removed"))
    assert driver.run.state is JobState.COMPLETED and code_of(driver) == STOP_REQUESTED


@pytest.mark.parametrize("code", [-200, -1005])
def test_a_refused_start_fails_the_job_with_its_reason(code: int) -> None:
    driver = Driver(view())
    driver.place()
    driver.send(StartRefused(driver.attempt("a-0"), driver.now, classify(code, "no such image")))
    assert code_of(driver) == code
    assert driver.run.completion.diagnostics == "no such image"  # type: ignore[union-attr]


def test_an_elastic_gang_grows_when_its_last_tasks_get_their_places() -> None:
    driver = Driver(view(role(replicas=4, min_replicas=2)))
    driver.place("a-0", "a-1")
    assert RequestPlacement(0, (driver.key("a-2"), driver.key("a-3")), grow=True) in driver.commands
    driver.started("a-0")
    driver.place("a-2", "a-3")
    assert len(driver.starts()) == 2 and driver.run.state is JobState.RUNNING


def test_an_end_that_was_seen_twice_is_forgotten_twice_and_counted_once() -> None:
    driver = Driver(view(role(replicas=2, min_failed=2)))
    driver.start_all()
    attempt = driver.attempt("a-0")
    driver.exited("a-0", 1)
    driver.send(Exited(attempt, driver.now, 0))
    assert driver.commands == [ForgetTask(attempt)]
    assert driver.run.roles["a"].failed == 1


def test_an_end_that_was_seen_before_the_start_counts() -> None:
    driver = Driver(view())
    driver.place()
    attempt = driver.attempt("a-0")
    driver.exited("a-0", 0)
    driver.send(Started(attempt, driver.now))
    assert phase(driver.run) is Phase.SUCCEEDED


def test_late_words_of_an_attempt_that_is_over_change_nothing() -> None:
    driver = Driver(view(role(retry=RetryView(3))))
    driver.start_all()
    old = driver.attempt("a-0")
    driver.exited("a-0", 1)
    before = driver.run, dict(driver.tasks)
    driver.send(Started(old, driver.now))
    assert driver.commands == []
    driver.send(Exited(old, driver.now, 9))
    assert driver.commands == [ForgetTask(old)]
    assert (driver.run, driver.tasks) == before


@pytest.mark.parametrize("attempt", ["0.a.0.7", "3.a.0.0", "0.a.5.0"])
def test_an_instance_from_a_future_that_a_restore_undid_is_ended(attempt: str) -> None:
    driver = Driver(view())
    driver.start_all()
    unknown = AttemptId(f"{driver.run.job}.{attempt}")
    driver.send(Started(unknown, driver.now))
    assert driver.commands == [StopTask(unknown, 30.0)]
    driver.send(Exited(unknown, driver.now, 143))
    assert driver.commands == [ForgetTask(unknown)]
    assert driver.run.state is JobState.RUNNING


def test_an_instance_found_before_it_was_asked_for_is_ended_before_the_task_begins() -> None:
    driver = Driver(view())
    found = driver.attempt("a-0")
    driver.started("a-0")
    assert driver.stops() == [found]
    driver.exited("a-0", 0)
    driver.place()
    assert driver.starts() == ["0123456789abc.0.a.0.1"]


def test_a_stop_waits_for_the_end_of_an_instance_that_was_found() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.started("a-0")
    driver.stop()
    assert driver.run.state is JobState.DELETION_PENDING
    driver.exited("a-0", 143)
    assert driver.run.state is JobState.COMPLETED and code_of(driver) == STOP_REQUESTED


def test_a_place_for_a_task_that_needs_none_goes_back() -> None:
    driver = Driver(view(role(replicas=2, min_failed=2)))
    driver.start_all()
    driver.exited("a-0")
    places = (TaskPlacement("a", 0, "local/n2"), TaskPlacement("a", 9, "local/n2"))
    driver.send(Placed(0, Placement(places)))
    assert driver.commands == [ReleasePlacement((driver.key("a-0"), driver.key("a-9")))]
    assert not [command for command in driver.commands if isinstance(command, StartTask)]


def test_a_second_owner_of_a_task_is_refused_with_the_story() -> None:
    driver = Driver(view())
    driver.start_all()
    with pytest.raises(
        InvalidTransition, match=r"task a-0 \(running\) of job 0123456789abc .*holds local/n1"
    ) as refused:
        driver.send(Placed(0, Placement((TaskPlacement("a", 0, "local/n2"),))))
    assert refused.value.details["job"] == driver.run


def test_a_place_that_is_told_twice_is_taken_once() -> None:
    driver = Driver(view())
    driver.place()
    place = driver.task("a-0").placement
    assert place is not None
    driver.send(Placed(0, Placement((place,))))
    assert driver.commands == []
