"""The attempts of a task in order, as the log reader needs them, and whether one of them has ended."""

from __future__ import annotations

import pytest

from corral.kernel.ids import JobId, TaskKey, attempt_id
from corral.model.attempts import BEFORE_ALL, AttemptNumber
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState, TaskState
from corral.model.store_writes import AttemptWrite, JobWrite, TaskWrite
from corral.store import Store, attempt_views
from tests.store.makers import ME, START, batch, new_job


@pytest.fixture
async def epoch(store: Store) -> int:
    lease = await store.lead(ME)
    assert lease is not None
    return lease.epoch


class Job:
    """A job of one role in the store, written as control would."""

    def __init__(self, store: Store, epoch: int) -> None:
        self.store, self.epoch, self.new = store, epoch, new_job()
        self.id: JobId = self.new.id
        self.revision = 0

    async def stands(
        self, state: JobState, attempt: int, task: TaskRun | None, *attempts: AttemptWrite, live: bool = True
    ) -> None:
        run = JobRun(self.id, state, attempt=attempt, roles={"worker": RoleCount(1, 1)})
        write = JobWrite(self.id, run, "running", self.new.summary, live=live, guard=self.revision)
        tasks = (TaskWrite(self.id, TaskKey("worker", 0), task),)
        await self.store.commit(batch(self.epoch, jobs=(write,), tasks=tasks, attempts=attempts))
        self.revision += 1

    def ran(self, job_attempt: int, task_attempt: int, code: int | None = None) -> AttemptWrite:
        identity = attempt_id(self.id, job_attempt, "worker", 0, task_attempt)
        ended = None if code is None else START
        return AttemptWrite(identity, "local/n1", ended_at=ended, code=code, phrase="Ended" if ended else "")

    async def chain(self, since: AttemptNumber = BEFORE_ALL) -> tuple[list[str], bool]:
        found = await self.store.attempt_chain(self.id, "worker", 0, since)
        return [f"{step.number} {step.code}" for step in found.steps], found.over

    async def over(self, job_attempt: int, task_attempt: int) -> bool:
        return await self.store.attempt_over(attempt_id(self.id, job_attempt, "worker", 0, task_attempt))


@pytest.fixture
async def job(store: Store, epoch: int) -> Job:
    made = Job(store, epoch)
    await store.submit(made.new)
    return made


def task(attempt: int, state: TaskState = TaskState.RUNNING) -> TaskRun:
    return TaskRun("worker", 0, state, attempt=attempt)


async def test_the_chain_has_every_attempt_in_order_and_the_one_that_waits(job: Job) -> None:
    assert await job.chain() == ([], False), "nobody has looked at the job yet"
    await job.stands(
        JobState.RUNNING, 1, task(2), job.ran(0, 0, 9), job.ran(0, 10, 9), job.ran(1, 1, 137), job.ran(0, 2, 9)
    )
    assert await job.chain() == (["0.0 9", "0.2 9", "0.10 9", "1.1 137", "1.2 None"], False)
    assert await job.chain(AttemptNumber(0, 10)) == (["0.10 9", "1.1 137", "1.2 None"], False)
    assert await job.chain(AttemptNumber(1, 2)) == (["1.2 None"], False)


async def test_a_task_is_over_for_good_when_it_completed_or_went_or_its_job_is_over(job: Job) -> None:
    await job.stands(JobState.RUNNING, 0, task(0, TaskState.COMPLETED), job.ran(0, 0, 0))
    assert (await job.chain())[1]
    for state in (JobState.DELETION_PENDING, JobState.ATTEMPT_COMPLETED):
        await job.stands(state, 0, task(0, TaskState.COMPLETED))
        assert not (await job.chain())[1], "the job's next attempt has this task again"
    await job.stands(JobState.RUNNING, 0, task(0, TaskState.ATTEMPT_COMPLETED))
    assert not (await job.chain())[1]
    await job.stands(JobState.RUNNING, 0, None)
    assert (await job.chain())[1]
    await job.stands(JobState.COMPLETED, 0, task(0, TaskState.COMPLETED), live=False)
    assert (await job.chain())[1]
    assert (await job.store.attempt_chain("nobody", "worker", 0, BEFORE_ALL)).over


async def test_an_attempt_is_over_when_it_ended_or_was_passed_over(job: Job) -> None:
    assert not await job.over(0, 0)
    await job.stands(JobState.PREPARING, 1, task(1), job.ran(0, 0, 9), job.ran(1, 0))
    found = {f"{a}.{b}": await job.over(a, b) for a in (0, 1, 2) for b in (0, 1, 2)}
    assert {number for number, over in found.items() if over} == {"0.0", "0.1", "0.2", "1.0"}
    await job.stands(JobState.RUNNING, 1, task(1, TaskState.ATTEMPT_COMPLETED))
    assert await job.over(1, 1)
    await job.stands(JobState.RUNNING, 1, None)
    assert await job.over(1, 5)


async def test_of_very_many_attempts_the_chain_has_the_newest(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_views, "CHAIN_MOST", 10)
    monkeypatch.setattr(attempt_views, "_CHAIN_STEP", 5)
    begins = []
    for count in (10, 11, 15, 16, 20, 21):
        await job.stands(JobState.RUNNING, 0, task(count - 1), *(job.ran(0, number, 9) for number in range(count)))
        steps, _ = await job.chain()
        begins.append((steps[0], len(steps)))
    assert begins == [("0.0 9", 10), ("0.5 9", 6), ("0.5 9", 10), ("0.10 9", 6), ("0.10 9", 10), ("0.15 9", 6)]
