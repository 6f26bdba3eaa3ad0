"""The retry truth table of FrameworkController: five classes × fancy and plain × four limits."""

from __future__ import annotations

import pytest

from corral.launcher import LaunchPolicy, RetryView
from corral.launcher.retry import Decision, decide_retry
from corral.model.events import StopRequested
from corral.model.exits import ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED, STOP_REQUESTED, classify
from corral.model.outcome import Completion, ExitClass
from corral.model.runs import RetriedAfter, Retries
from corral.model.states import JobState, TaskState
from tests.launcher.driver import Driver, role, view

CODES = {
    ExitClass.SUCCEEDED: 0,
    ExitClass.TRANSIENT: -101,
    ExitClass.CONFLICT: 251,
    ExitClass.PERMANENT: 220,
    ExitClass.UNKNOWN: 1,
}
NO, FREE, COUNTED, LATER = "no", "retried, not counted", "retried, counted", "retried later, not counted"

# class: (fancy, plain), each for the limits -2, -1, 0, and 2 with one retry spent, and 2 with both spent
LIMITS = ((-2, 0), (-1, 0), (0, 0), (2, 1), (2, 2))
TABLE = {
    ExitClass.SUCCEEDED: ((COUNTED, NO, NO, NO, NO), (COUNTED, NO, NO, NO, NO)),
    ExitClass.TRANSIENT: ((FREE, FREE, FREE, FREE, FREE), (COUNTED, COUNTED, NO, COUNTED, NO)),
    ExitClass.CONFLICT: ((LATER, LATER, LATER, LATER, LATER), (COUNTED, COUNTED, NO, COUNTED, NO)),
    ExitClass.PERMANENT: ((NO, NO, NO, NO, NO), (COUNTED, COUNTED, NO, COUNTED, NO)),
    ExitClass.UNKNOWN: ((COUNTED, COUNTED, NO, COUNTED, NO), (COUNTED, COUNTED, NO, COUNTED, NO)),
}
CASES = [
    pytest.param(kind, fancy, limit, spent, TABLE[kind][not fancy][column], id=f"{kind}-{fancy}-{limit}-{spent}")
    for kind in ExitClass
    for fancy in (True, False)
    for column, (limit, spent) in enumerate(LIMITS)
]


def decide(completion: Completion, limit: int, fancy: bool, spent: int = 0, **policy: float) -> Decision:
    launch = LaunchPolicy(retry_first=0.0, **policy)
    return decide_retry(RetryView(limit, fancy), Retries(spent, spent), completion, launch, "0123456789abc.0", None)


@pytest.mark.parametrize(("kind", "fancy", "limit", "spent", "expected"), CASES)
def test_the_truth_table(kind: ExitClass, fancy: bool, limit: int, spent: int, expected: str) -> None:
    completion = classify(CODES[kind])
    assert completion.exit_class is kind
    decision = decide(completion, limit, fancy, spent)
    assert decision.retry is (expected != NO)
    assert decision.counted is (expected == COUNTED)
    assert (60 <= decision.delay <= 900) if expected == LATER else decision.delay == 0
    assert decision.why


@pytest.mark.parametrize(("kind", "fancy", "limit", "spent", "expected"), CASES)
def test_a_task_and_a_job_are_retried_by_the_same_table(
    kind: ExitClass, fancy: bool, limit: int, spent: int, expected: str
) -> None:
    policy = RetryView(limit, fancy)
    task = Driver(view(role(retry=policy), retry=RetryView(0, False)))
    task.start_all()
    task.tasks[task.key("a-0")] = _with_spent(task, spent)
    task.exited("a-0", CODES[kind])
    job = Driver(view(role(), retry=policy))
    job.start_all()
    job.run = _job_with_spent(job, spent)
    job.exited("a-0", CODES[kind])
    if expected == NO:
        assert task.run.state is JobState.COMPLETED
        assert job.run.state is JobState.COMPLETED
        assert job.run.attempt == 0
    elif expected == LATER:
        assert task.state("a-0") is TaskState.ATTEMPT_COMPLETED
        assert job.run.state is JobState.ATTEMPT_COMPLETED
        assert 60 <= (job.run.wake_at or 0) - job.now <= 900
    else:
        assert task.task("a-0").attempt == 1
        assert job.run.attempt == 1
    counted = spent + (expected == COUNTED)
    total = spent + (expected != NO)
    after = RetriedAfter() if expected == NO else RetriedAfter(**{kind.value: 1})
    assert job.run.retries == Retries(total, counted, after, in_a_row=int(expected != NO))
    assert task.task("a-0").retries == job.run.retries


def _with_spent(driver: Driver, spent: int):  # type: ignore[no-untyped-def]
    import msgspec

    return msgspec.structs.replace(driver.task("a-0"), retries=Retries(spent, spent))


def _job_with_spent(driver: Driver, spent: int):  # type: ignore[no-untyped-def]
    import msgspec

    return msgspec.structs.replace(driver.run, retries=Retries(spent, spent))


@pytest.mark.parametrize("code", [STOP_REQUESTED, ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED])
@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("limit", [-2, -1, 0, 3])
def test_an_end_that_was_asked_for_is_never_undone(code: int, fancy: bool, limit: int) -> None:
    assert not decide(classify(code), limit, fancy).retry


@pytest.mark.parametrize("fancy", [True, False])
def test_a_passing_failure_to_create_never_completes_a_task(fancy: bool) -> None:
    decision = decide(classify(-120), 0, fancy)
    assert decision.retry and not decision.counted


@pytest.mark.parametrize("fancy", [True, False])
def test_a_floor_delays_transient_retries_only(fancy: bool) -> None:
    assert decide(classify(137), -1, fancy, transient_floor=7.0).delay == 7.0
    assert decide(classify(1), -1, fancy, transient_floor=7.0).delay == 0.0


def test_conflict_delays_replay_and_spread() -> None:
    completion = classify(251)
    policy = RetryView(0, True)
    delays = [decide_retry(policy, Retries(), completion, LaunchPolicy(), f"job.{n}", None).delay for n in range(2000)]
    again = [decide_retry(policy, Retries(), completion, LaunchPolicy(), f"job.{n}", None).delay for n in range(2000)]
    assert delays == again
    assert min(delays) >= 60 and max(delays) <= 900
    quarters = [sum(60 + 210 * q <= delay < 60 + 210 * (q + 1) for delay in delays) for q in range(4)]
    assert all(400 < count < 600 for count in quarters)


def test_an_immediate_retry_keeps_its_place_and_starts_only_after_the_end_was_seen() -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(1))))
    driver.start_all()
    place = driver.task("a-1").placement
    done = driver.exited("a-1", 1)
    assert driver.starts() == ["0123456789abc.0.a.1.1"]
    assert driver.task("a-1").placement == place
    assert done.ended[0].attempt == "0123456789abc.0.a.1.0"
    assert done.ended[0].task.completion == classify(1)
    assert driver.task("a-1").completion is None


@pytest.mark.parametrize("code", [-1001, 223])
def test_a_retry_leaves_a_machine_that_is_to_blame(code: int) -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(0, True))))
    driver.start_all()
    driver.exited("a-1", code)
    assert driver.state("a-1") is TaskState.CREATION_REQUESTED
    assert driver.starts() == []
    assert driver.commands[1].grow  # type: ignore[union-attr]
    driver.place(node="local/n2")
    assert driver.starts() == ["0123456789abc.0.a.1.1"]


def test_a_delayed_retry_gives_its_place_back_and_asks_again_when_it_is_due() -> None:
    driver = Driver(view(role(replicas=2, retry=RetryView(0, True))))
    driver.start_all()
    driver.exited("a-1", 251)
    due = driver.run.wake_at
    assert due is not None and due == driver.task("a-1").wake_at
    assert set(driver.held) == {driver.key("a-0")}
    driver.advance(due - driver.now - 1)
    assert driver.state("a-1") is TaskState.ATTEMPT_COMPLETED
    driver.advance(1)
    assert driver.state("a-1") is TaskState.CREATION_REQUESTED
    assert driver.run.wake_at is None


def test_a_job_retry_gives_everything_back_and_queues_the_gang_anew() -> None:
    driver = Driver(view(role(replicas=2), retry=RetryView(1)))
    driver.start_all()
    driver.exited("a-0", 1)
    assert driver.run.state is JobState.DELETION_PENDING
    assert driver.stops() == ["0123456789abc.0.a.1.0"]
    done = driver.exited("a-1", 143)
    assert driver.run.state is JobState.CREATION_REQUESTED
    assert driver.run.attempt == 1 and driver.run.completion is None
    assert not driver.held and len(driver.waiting) == 2
    assert done.job_ended is not None and done.job_ended.attempt == 0
    assert done.job_ended.completion is not None and done.job_ended.completion.code == 1
    assert done.ended[0].task.completion is not None and done.ended[0].task.completion.code == ATTEMPT_COMPLETED
    driver.start_all()
    assert driver.attempt("a-0") == "0123456789abc.1.a.0.0"


def test_a_stop_while_a_retry_waits_is_final_and_keeps_the_last_completion() -> None:
    driver = Driver(view(role(), retry=RetryView(0, True)))
    driver.start_all()
    driver.exited("a-0", 251)
    assert driver.run.state is JobState.ATTEMPT_COMPLETED
    driver.send(StopRequested("ada"))
    assert driver.run.state is JobState.COMPLETED
    assert driver.run.completion is not None and driver.run.completion.code == 251
    driver.advance(10_000)
    assert driver.run.attempt == 0
