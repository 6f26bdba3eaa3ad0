"""A retry waits, twice as long after each failure in a row; during a short wait the task keeps its place."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from corral.launcher import LaunchPolicy, RetryView
from corral.launcher.retry import back_off, decide_retry
from corral.model.commands import ReleasePlacement, RequestPlacement
from corral.model.events import (
    MigrateRequested,
    Preempted,
    ResumeRequested,
    StartRefused,
    SuspendRequested,
    TimePassed,
    Unplaceable,
)
from corral.model.exits import classify
from corral.model.plan import Rule
from corral.model.runs import JobRun, Retries, TaskRun
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view

POLICY = LaunchPolicy()
ALWAYS = RetryView(-1)
OOM = 137
"""A transient exit code."""


def waits_of(driver: Driver, code: int, count: int) -> list[float]:
    """Seconds that a-0 waits for its next attempt after each of `count` immediate failures."""
    found = []
    for _ in range(count):
        driver.start_all()
        driver.exited("a-0", code)
        found.append((driver.task("a-0").retry_at or driver.now) - driver.now)
        driver.advance(found[-1])
    return found


@pytest.mark.parametrize(("code", "policy"), [(OOM, RetryView()), (1, ALWAYS), (0, RetryView(-2)), (1, RetryView(20))])
def test_each_retry_in_a_row_waits_twice_as_long_up_to_five_minutes(code: int, policy: RetryView) -> None:
    driver = Driver(view(role(retry=policy)), policy=POLICY)
    assert waits_of(driver, code, 11) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_job_that_is_tried_again_waits_by_the_same_rule() -> None:
    driver = Driver(view(role(), retry=ALWAYS), policy=POLICY)
    found = []
    for _ in range(4):
        driver.start_all()
        driver.exited("a-0", 1)
        assert driver.run.state is JobState.ATTEMPT_COMPLETED
        found.append((driver.run.wake_at or 0) - driver.now)
        driver.advance(found[-1])
    assert found == [1, 2, 4, 8]


def test_the_first_retry_of_a_passing_failure_waits_for_nothing_where_openpai_and_frameworkcontroller_say_so() -> None:
    driver = Driver(view(role(retry=RetryView(-1, at_once=True))), policy=POLICY)
    assert waits_of(driver, OOM, 5) == [0, 1, 2, 4, 8]
    counted = Driver(view(role(retry=RetryView(-1, at_once=True))), policy=POLICY)
    assert waits_of(counted, 1, 3) == [1, 2, 4]


def test_an_attempt_that_ran_for_ten_minutes_begins_the_row_anew() -> None:
    driver = Driver(view(role(retry=ALWAYS)), policy=POLICY)
    waits_of(driver, OOM, 5)
    driver.start_all()
    driver.now += 599
    driver.exited("a-0", OOM)
    assert driver.task("a-0").retry_at == driver.now + 32
    driver.advance(32)
    driver.start_all()
    driver.now += 600
    driver.exited("a-0", OOM)
    assert driver.task("a-0").retry_at == driver.now + 1
    assert driver.task("a-0").retries.total == 7


@pytest.mark.parametrize(("code", "least"), [(OOM, 100.0), (251, 60.0)])
def test_no_retry_waits_less_than_its_class_asks_for(code: int, least: float) -> None:
    policy = LaunchPolicy((60, 60), transient_floor=100.0)
    decide = [
        decide_retry(RetryView(), Retries(in_a_row=n), classify(code), policy, "job.0", None).delay for n in (0, 4, 12)
    ]
    assert decide == [least, least, 300.0]


def test_a_wait_never_grows_beyond_its_bound() -> None:
    assert [back_off(POLICY, 10**9), back_off(LaunchPolicy(retry_first=0.0), 10**9)] == [300.0, 0.0]
    waits = [back_off(POLICY, n) for n in range(2000)]
    assert all(0 < one <= other <= 300 for one, other in itertools.pairwise(waits))


def test_a_task_keeps_its_place_during_a_short_wait_and_starts_there() -> None:
    driver = Driver(view(role(replicas=2, retry=ALWAYS)), policy=POLICY)
    driver.start_all()
    place = driver.task("a-1").placement
    driver.exited("a-1", 1)
    assert driver.task("a-1").holds and driver.starts() == []
    driver.advance(1)
    assert driver.starts() == ["0123456789abc.0.a.1.1"] and driver.task("a-1").placement == place


def test_a_task_gives_its_place_back_before_a_long_wait_and_asks_for_one_when_it_is_due() -> None:
    driver = Driver(view(role(retry=ALWAYS)), policy=POLICY)
    waits_of(driver, 1, 6)
    driver.start_all()
    driver.exited("a-0", 1)
    assert not driver.task("a-0").holds and driver.held == {}
    driver.advance(64)
    assert driver.state("a-0") is TaskState.CREATION_REQUESTED


def test_a_place_whose_node_was_closed_meanwhile_is_given_back_when_the_retry_is_due() -> None:
    driver = Driver(view(role(retry=ALWAYS)), policy=POLICY)
    driver.start_all()
    driver.exited("a-0", 1)
    driver.policy = LaunchPolicy(closed_nodes=frozenset({"local/n1"}))
    driver.advance(1)
    assert driver.state("a-0") is TaskState.CREATION_REQUESTED and driver.held == {}


def test_a_place_that_is_kept_can_be_taken_back_and_preempted() -> None:
    for event in (
        Unplaceable((Driver(view()).key("a-1"),), "node n1 was removed"),
        Preempted(0, Rule.PRIORITY, "a job of higher priority needs the devices", tasks=(Driver(view()).key("a-1"),)),
    ):
        driver = Driver(view(role(replicas=3, min_replicas=1, retry=ALWAYS)), policy=POLICY)
        driver.start_all()
        driver.exited("a-1", 1)
        driver.send(event)
        assert not driver.task("a-1").holds and driver.state("a-1") is TaskState.ATTEMPT_COMPLETED
        driver.advance(1)
        assert driver.state("a-1") is TaskState.CREATION_REQUESTED and driver.run.state is JobState.RUNNING


def test_a_job_that_is_stopped_gives_back_the_places_that_it_kept() -> None:
    driver = Driver(view(role(replicas=2, retry=ALWAYS)), policy=POLICY)
    driver.start_all()
    driver.exited("a-0", 1)
    driver.exited("a-1", 1)
    driver.stop()
    assert driver.run.state is JobState.COMPLETED and driver.held == {}


def test_what_is_no_failure_is_no_retry_and_begins_without_a_wait() -> None:
    driver = Driver(view(role(replicas=3, min_replicas=1, retry=ALWAYS)), policy=POLICY)
    driver.start_all()
    driver.send(MigrateRequested(driver.key("a-1"), "ada"))
    driver.exited("a-1", 143)
    assert driver.state("a-1") is TaskState.CREATION_REQUESTED
    driver.start_all()
    driver.scale(2)
    driver.exited("a-2", 143)
    driver.send(SuspendRequested("ada"))
    driver.exit_all(code=143)
    driver.send(ResumeRequested("ada"))
    assert driver.run.state is JobState.CREATION_REQUESTED
    assert driver.run.task_retries == 0 and driver.run.retries == driver.task("a-1").retries == Retries()


def test_all_retries_of_a_jobs_tasks_are_counted_over_its_attempts() -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(1)), retry=RetryView(1)))
    driver.start_all()
    driver.exited("a-0", 1)
    driver.exited("a-1", OOM)
    driver.start_all()
    driver.exited("a-0", 1)
    driver.exit_all(code=143)
    assert driver.run.attempt == 1 and driver.run.retries.total == 1
    assert driver.run.task_retries == 2


def test_ten_attempts_in_a_row_that_never_ran_are_told_once_with_the_cause() -> None:
    driver = Driver(view(role(retry=RetryView())), policy=POLICY)
    for number in range(14):
        if driver.waiting:
            driver.place()
        refused = classify(-120, "no space left on device")
        driver.send(StartRefused(driver.attempt("a-0"), driver.now, refused))
        told = [fact for fact in driver.facts if fact.kind == "task.never-ran"]
        assert len(told) == (number >= 9)
        driver.advance((driver.task("a-0").retry_at or 0) - driver.now)
    assert told[0].message == "a-0 has not run in 10 attempts: no space left on device"
    driver.start_all()
    driver.exited("a-0", OOM)
    assert driver.task("a-0").retries.unstarted == 0


@pytest.mark.parametrize("kind", [JobRun, TaskRun])
def test_what_was_stored_before_rows_were_counted_is_read(kind: type[JobRun] | type[TaskRun]) -> None:
    old = {"job": "0123456789abc"} if kind is JobRun else {"role": "a", "index": 0}
    found = msgspec.convert(old | {"retries": {"total": 3, "accountable": 1}}, kind)
    assert (found.retries.total, found.retries.in_a_row, found.retries.unstarted) == (3, 0, 0)


def test_a_retry_that_falls_due_with_the_deadline_of_the_start_releases_nothing() -> None:
    """One step asks for the place of a-0 again and then ends the attempt, as a-1 never started."""
    spec = view(role(replicas=2, retry=RetryView(-2)), retry=RetryView(-2))
    driver = Driver(spec, policy=LaunchPolicy(start_deadline=20.0))
    driver.place()
    driver.send(StartRefused(driver.attempt(driver.key("a-0")), driver.now, classify(-1002, "refused")))
    assert driver.task("a-0").state is TaskState.ATTEMPT_COMPLETED and not driver.waiting
    driver.now += 30
    driver.send(TimePassed())
    assert driver.run.completion is not None and "had not started" in driver.run.completion.diagnostics
    assert not any(isinstance(command, ReleasePlacement | RequestPlacement) for command in driver.commands)
