"""A retry waits for its backoff, also over a restart of control; users see its time and its reason."""

from __future__ import annotations

from datetime import datetime

from corral.kernel.errors import InvalidInput
from corral.launcher import LaunchPolicy
from corral.model.records import NEVER_RAN
from corral.model.store_writes import JobRecord
from tests.control.harness import House, short

OOM = 137


async def test_a_task_that_ends_at_once_is_started_again_at_its_time_and_not_before(house: House) -> None:
    house.launch_policy = LaunchPolicy(retry_first=3600.0, retry_most=3600.0)
    await house.begin()
    job = await house.submit(short("loops", end_with=OOM))
    record = await house.explained(job)
    assert (record.phase, record.summary.retries, record.summary.task_retries) == ("running", 1, 1)
    (task,) = (await house.store.job_tasks(job, limit=10)).items
    assert task.retries == 1 and task.retry_at is not None
    assert datetime.fromisoformat(task.retry_at).timestamp() > house.clock.now() + 3500
    waiting = record.summary.waiting
    assert waiting is not None and waiting.code == "retry"
    assert waiting.message.startswith(
        f"worker-0 is tried again at {task.retry_at} (retry 1). Its last attempt ended with"
    )
    await house.abandon()
    await house.begin()
    other = await house.submit(short("other", end_with=0))
    await house.until(other, "succeeded")
    assert [attempt for attempt in house.engine.started if attempt.startswith(job)] == [f"{job}.0.worker.0.0"]


async def test_a_retry_that_is_due_after_a_restart_of_control_begins(house: House) -> None:
    house.launch_policy = LaunchPolicy(retry_first=1.0)
    await house.begin()
    job = await house.submit(short("loops", end_with=OOM))
    await house.explained(job)
    await house.abandon()
    await house.begin()
    async with house.patience():
        while f"{job}.0.worker.0.1" not in house.engine.started:
            await house.control.cycled()


async def test_a_job_that_is_tried_again_whole_says_when(house: House) -> None:
    house.launch_policy = LaunchPolicy(retry_first=3600.0, retry_most=3600.0)
    await house.begin()
    job = await house.submit(short("loops", end_with=1, retryPolicy={"maxRetries": 3}))
    record = await house.explained(job)
    assert record.phase == "waiting" and record.summary.waiting is not None
    assert record.summary.waiting.message.startswith("The job is tried again at ")


async def test_a_task_that_has_not_run_in_ten_attempts_says_so_with_the_cause(house: House) -> None:
    def refuse(call: str) -> None:
        if call == "start":
            raise InvalidInput("no-such-image", "The image has no name.")

    def told(record: JobRecord) -> bool:
        return record.summary.waiting is not None and record.summary.waiting.code == NEVER_RAN

    house.launch_policy = LaunchPolicy(retry_first=0.01)
    house.engine.fault = refuse
    await house.begin()
    job = await house.submit(short("refused", retryPolicy={"fancy": False, "maxRetries": -1}))
    record = await house.when(job, told)
    waiting = record.summary.waiting
    assert waiting is not None and record.run.retries.unstarted >= 10
    assert waiting.message.startswith(
        f"The job has not run in {record.run.retries.unstarted} attempts and is tried again"
    )
    assert waiting.message.endswith(": The image has no name. (no-such-image).")
