"""An evicted gang loses only its devices: it keeps its place in the queue, its retries and its history."""

from __future__ import annotations

import pytest

from corral.launcher import LaunchPolicy, RetryView
from corral.model.commands import ReleasePlacement, RequestPlacement, StopTask
from corral.model.events import Checkpointed, Preempted, RestartRequested, ResumeRequested, SuspendRequested
from corral.model.exits import PREEMPTED
from corral.model.phases import Phase, phase
from corral.model.plan import Rule
from corral.model.runs import Retries
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view


def preempt(driver: Driver, *tasks: str, attempt: int | None = None, grace: float | None = None) -> None:
    job_attempt = driver.run.attempt if attempt is None else attempt
    keys = tuple(driver.key(task) for task in tasks)
    driver.send(Preempted(job_attempt, Rule.PRIORITY, "prod wants its devices", keys, grace_seconds=grace))


def running(*roles: object, **fields: object) -> Driver:
    driver = Driver(view(*roles, **fields))  # type: ignore[arg-type]
    driver.start_all()
    return driver


def elastic(replicas: int, least: int) -> Driver:
    return running(role(replicas=replicas, min_replicas=least))


def test_the_whole_gang_ends_with_its_own_signal_and_grace() -> None:
    driver = running(role(replicas=2), grace_seconds=120, stop_signal="USR1")
    preempt(driver)
    assert driver.run.state is JobState.DELETION_PENDING
    assert driver.commands == [StopTask(driver.attempt(f"a-{index}"), 120, "USR1") for index in range(2)]


@pytest.mark.parametrize("retry", [RetryView(0, fancy=False), RetryView(0), RetryView(-1), RetryView(-2)])
def test_it_is_tried_again_at_once_and_uncounted_whatever_its_policy(retry: RetryView) -> None:
    driver = running(role(replicas=2, retry=retry), retry=retry)
    preempt(driver)
    driver.exited("a-0", 143)
    assert driver.run.attempt == 0
    driver.exited("a-1", 0)
    assert driver.run.attempt == 1 and driver.run.state is JobState.CREATION_REQUESTED
    assert driver.run.retries == Retries() and driver.run.yield_retries == 1
    assert driver.waiting == {driver.key("a-0"), driver.key("a-1")}
    assert [ended.completion.code for ended in driver.ended if ended.completion] == [PREEMPTED, PREEMPTED]
    assert driver.run.yielded is not None and driver.run.yielded.message == "prod wants its devices"
    driver.start_all()
    assert driver.run.state is JobState.RUNNING and driver.run.yielded is None and driver.run.yields == 1


def test_a_second_word_and_one_for_an_older_attempt_change_nothing() -> None:
    driver = running()
    preempt(driver)
    told = len(driver.facts)
    preempt(driver)
    assert driver.commands == [] and len(driver.facts) == told and driver.run.yields == 1
    driver.exited("a-0", 143)
    driver.start_all()
    preempt(driver, attempt=0)
    assert driver.run.state is JobState.RUNNING and driver.commands == []


def test_a_gang_that_waits_or_is_over_has_nothing_to_yield() -> None:
    driver = Driver(view())
    preempt(driver)
    assert driver.run.state is JobState.CREATION_REQUESTED and driver.run.yields == 0
    driver.start_all()
    driver.exited("a-0")
    preempt(driver)
    assert driver.run.state is JobState.COMPLETED


def test_an_elastic_gang_gives_up_tasks_and_asks_to_grow_again() -> None:
    driver = elastic(4, 2)
    preempt(driver, "a-2", "a-3")
    assert driver.run.state is JobState.RUNNING
    assert driver.stops() == [driver.attempt("a-2"), driver.attempt("a-3")]
    assert driver.held.keys() == {driver.key(f"a-{index}") for index in range(4)}, "held until they have ended"
    driver.exited("a-2", 1)
    key = driver.key("a-2")
    assert driver.commands[:2] == [ReleasePlacement((key,)), RequestPlacement(0, (key,), grow=True)]
    driver.exited("a-3", 143)
    assert driver.waiting == {key, driver.key("a-3")} and driver.run.roles["a"].target == 4
    driver.start_all()
    assert driver.run.roles["a"].running == 4 and driver.run.attempt == 0 and driver.task("a-3").attempt == 1
    assert driver.task("a-3").retries == Retries()


@pytest.mark.parametrize(
    ("tasks", "why"),
    [(("a-0",), "the rendezvous"), (("a-1", "a-2", "a-3"), "below the minimum"), (("b-0",), "not elastic")],
)
def test_tasks_that_the_gang_cannot_spare_end_it_whole(tasks: tuple[str, ...], why: str) -> None:
    driver = running(role(replicas=4, min_replicas=2), role("b"))
    preempt(driver, *tasks)
    assert driver.run.state is JobState.DELETION_PENDING, why
    assert len(driver.stops()) == 5


def test_a_yielding_task_that_a_scale_down_names_goes_for_good() -> None:
    driver = elastic(3, 1)
    preempt(driver, "a-2")
    driver.scale(2)
    driver.exited("a-2", 143)
    assert driver.indexes() == [0, 1] and not driver.waiting


def test_a_job_whose_other_tasks_are_done_does_not_wait_for_one_that_yielded() -> None:
    driver = elastic(3, 2)
    preempt(driver, "a-2")
    driver.exit_all(["a-0", "a-1"])
    assert driver.run.state is JobState.RUNNING
    driver.exited("a-2", 143)
    assert driver.run.state is JobState.COMPLETED
    assert driver.run.completion is not None and driver.run.completion.succeeded


def test_a_stop_while_it_yields_is_final_and_shown_as_a_stop() -> None:
    driver = running()
    preempt(driver)
    driver.stop()
    driver.exited("a-0", 143)
    assert driver.run.state is JobState.COMPLETED and phase(driver.run) is Phase.STOPPED


def test_the_grace_of_a_drain_is_that_of_whoever_drains() -> None:
    driver = running(grace_seconds=600)
    preempt(driver, grace=5)
    assert [command.grace_seconds for command in driver.commands if isinstance(command, StopTask)] == [5]


def test_a_suspended_job_is_held_until_it_is_resumed() -> None:
    driver = running()
    driver.send(SuspendRequested("ada"))
    assert driver.stops() == [driver.attempt("a-0")]
    driver.exited("a-0", 143)
    assert driver.run.state is JobState.CREATION_PENDING and driver.run.hold == "suspended"
    assert not driver.waiting and not driver.held
    driver.send(ResumeRequested("ada"))
    assert driver.run.state is JobState.CREATION_REQUESTED and driver.run.hold == ""
    driver.start_all()
    assert driver.run.retries.accountable == 0 and driver.run.state is JobState.RUNNING


def test_a_waiting_job_leaves_the_queue_when_it_is_suspended() -> None:
    driver = Driver(view(role(replicas=2)))
    driver.send(SuspendRequested("ada"))
    assert driver.run.hold == "suspended" and not driver.waiting
    driver.send(SuspendRequested("ada"))
    driver.send(ResumeRequested("ada"))
    assert len(driver.waiting) == 2


def test_a_job_that_waits_for_another_is_held_by_both() -> None:
    from corral.model.events import HoldReleased

    driver = Driver(view(), hold="dependency")
    driver.send(SuspendRequested("ada"))
    driver.send(HoldReleased())
    assert driver.run.hold == "suspended"
    driver.send(HoldReleased())
    assert driver.run.hold == "suspended", "only a resume ends that"
    driver.send(ResumeRequested("ada"))
    assert driver.waiting


USED_UP = SuspendRequested("budgets", Rule.BUDGET, "the budget of queue lab is used up")
ALLOWED = ResumeRequested("budgets", Rule.BUDGET, "its budget allows more")


def test_a_used_up_budget_holds_a_job_until_it_allows_more_whatever_a_person_asks_for() -> None:
    driver = running()
    driver.send(USED_UP)
    driver.exited("a-0", 143)
    assert (driver.run.hold, driver.run.over_budget) == ("budget", USED_UP.message) and not driver.waiting
    assert driver.run.yielded is not None and driver.run.yielded.rule == "budget"
    driver.send(ResumeRequested("ada"))
    driver.send(USED_UP)
    assert driver.run.hold == "budget" and not driver.run.suspended
    driver.send(SuspendRequested("ada"))
    driver.send(ALLOWED)
    assert driver.run.hold == "suspended" and driver.run.over_budget == ""
    driver.send(USED_UP)
    driver.send(ResumeRequested("ada"))
    assert driver.run.hold == "budget"
    driver.send(ALLOWED)
    driver.start_all()
    assert driver.run.retries.accountable == 0 and driver.run.state is JobState.RUNNING


def test_a_waiting_job_is_held_by_a_used_up_budget_also_after_its_dependencies() -> None:
    from corral.model.events import HoldReleased

    waiting, dependent = Driver(view(role(replicas=2))), Driver(view(), hold="dependency")
    for driver in (waiting, dependent):
        driver.send(USED_UP)
        driver.send(HoldReleased())
        assert driver.run.hold == "budget" and not driver.waiting
        driver.send(HoldReleased())
        assert driver.run.hold == "budget", "only the budget ends that"
        driver.send(ALLOWED)
        assert driver.waiting


def test_a_stopped_job_that_begins_anew_is_not_held_by_the_budget_of_before() -> None:
    driver = running()
    driver.send(USED_UP)
    driver.exited("a-0", 143)
    driver.stop()
    assert driver.run.state is JobState.COMPLETED
    driver.send(RestartRequested("ada"))
    assert driver.run.state is JobState.CREATION_REQUESTED and driver.run.over_budget == ""


def test_the_last_wish_wins_while_the_attempt_ends() -> None:
    driver = running()
    driver.send(SuspendRequested("ada"))
    driver.send(ResumeRequested("ada"))
    driver.exited("a-0", 143)
    assert driver.run.state is JobState.CREATION_REQUESTED
    driver.start_all()
    preempt(driver)
    driver.send(SuspendRequested("ada"))
    driver.exited("a-0", 143)
    assert driver.run.hold == "suspended"
    driver.stop()
    assert driver.run.state is JobState.COMPLETED and phase(driver.run) is Phase.STOPPED


def test_a_retry_leaves_a_node_that_takes_no_new_tasks() -> None:
    closed = LaunchPolicy(closed_nodes=frozenset({"local/n1"}), retry_first=0.0)
    for policy, stays in ((LaunchPolicy(retry_first=0.0), True), (closed, False)):
        driver = Driver(view(role(retry=RetryView(1, fancy=False))), policy=policy)
        driver.start_all()
        driver.exited("a-0", 1)
        expected = TaskState.PREPARING if stays else TaskState.CREATION_REQUESTED
        assert driver.state("a-0") is expected


def test_the_latest_word_of_saved_work_is_kept_for_as_long_as_the_attempt_lasts() -> None:
    driver = running(role(replicas=2))
    assert driver.run.checkpointed_at is None
    for at, kept in ((20.0, 20.0), (15.0, 20.0), (30.0, 30.0)):
        driver.send(Checkpointed(0, at))
        assert driver.run.checkpointed_at == kept
    driver.send(Checkpointed(1, 99.0))
    assert driver.run.checkpointed_at == 30.0, "of an attempt that is not there yet, or over, it means nothing"
    preempt(driver)
    driver.send(Checkpointed(0, 40.0))
    driver.exited("a-0", 143)
    driver.exited("a-1", 143)
    assert driver.run.attempt == 1 and driver.run.checkpointed_at is None


def test_each_task_that_ran_and_gave_up_its_place_is_counted_when_it_is_tried_again() -> None:
    driver = elastic(4, 1)
    preempt(driver, "a-2", "a-3")
    driver.exited("a-2", 143)
    assert driver.run.yield_retries == 1
    driver.exited("a-3", 143)
    assert driver.run.yield_retries == 2
    assert (driver.run.retries, driver.run.task_retries) == (Retries(), 0)


def test_a_task_that_never_ran_and_one_that_goes_with_its_job_are_not_counted_as_tried_again() -> None:
    driver = Driver(view(role(replicas=3, min_replicas=1)))
    driver.place("a-0", "a-1")
    driver.started("a-0")
    preempt(driver, "a-1")
    driver.exited("a-1", 143)
    assert driver.task("a-1").attempt == 1
    assert driver.run.yield_retries == 0
    preempt(driver)
    driver.exited("a-0", 143)
    assert (driver.run.attempt, driver.run.yield_retries) == (1, 1)
