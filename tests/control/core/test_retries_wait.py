"""A retry waits for its backoff, also over a restart of control; users see its time and its reason."""

from __future__ import annotations

from math import inf

from corral.control.core.driver import Work
from corral.launcher import LaunchPolicy
from corral.model.exits import START_FAILED, classify
from corral.model.records import NEVER_RAN, rfc3339
from tests.control.core.virtual import BEGIN, Played
from tests.control.harness import short

OOM = 137


def test_a_task_that_ends_at_once_is_started_again_at_its_time_and_not_before() -> None:
    played = Played(policy=LaunchPolicy(retry_first=3600.0, retry_most=3600.0))
    played.works["loops"] = Work(0.0, OOM)
    job = played.submit_file(short("loops"))
    record = played.stored(job)
    assert (record.summary.state, record.summary.retries, record.summary.task_retries) == ("running", 1, 1)
    (task,) = record.tasks.values()
    assert (task.retries.total, task.retry_at) == (1, BEGIN + 3600.0)
    waiting = record.summary.waiting
    assert waiting is not None and waiting.code == "retry"
    assert waiting.message.startswith(
        f"worker-0 is tried again at {rfc3339(BEGIN + 3600.0)} (retry 1). Its last attempt ended with"
    )
    played.begin_anew()
    played.works["loops"] = Work(inf)
    played.run(3599.0)
    assert not played.running(job)
    played.run(3600.0)
    assert played.running(job) == [f"{job}.0.worker.0.1"]


def test_a_retry_that_fell_due_while_no_control_ran_begins_at_once() -> None:
    played = Played(policy=LaunchPolicy(retry_first=10.0))
    played.works["loops"] = Work(0.0, OOM)
    job = played.submit_file(short("loops"))
    played.works["loops"] = Work(inf)
    played.driver.now = BEGIN + 60.0
    played.begin_anew()
    played.settle()
    assert played.running(job) == [f"{job}.0.worker.0.1"]


def test_a_job_that_is_tried_again_whole_says_when() -> None:
    played = Played(policy=LaunchPolicy(retry_first=3600.0, retry_most=3600.0))
    played.works["loops"] = Work(0.0, 1)
    job = played.submit_file(short("loops", retryPolicy={"maxRetries": 3}))
    summary = played.stored(job).summary
    assert summary.state == "waiting" and summary.waiting is not None
    assert summary.waiting.message.startswith(f"The job is tried again at {rfc3339(BEGIN + 3600.0)}")


def test_a_task_that_has_not_run_in_ten_attempts_says_so_with_the_cause() -> None:
    played = Played(policy=LaunchPolicy(retry_first=1.0))
    played.works["refused"] = Work(inf, refusal=classify(START_FAILED, "The image has no name. (no-such-image)"))
    job = played.submit_file(short("refused", retryPolicy={"fancy": False, "maxRetries": -1}))
    played.run(510.0)
    before = played.stored(job).summary.waiting
    assert before is not None and before.code == "retry"
    played.run(511.0)  # the tenth, after nine delays from 1 s to 256 s, each twice the one before
    record = played.stored(job)
    waiting = record.summary.waiting
    assert waiting is not None and waiting.code == NEVER_RAN and record.run.retries.unstarted == 10
    assert waiting.message.startswith("The job has not run in 10 attempts and is tried again")
    assert waiting.message.endswith(": The image has no name. (no-such-image).")
