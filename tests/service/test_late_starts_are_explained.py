"""`corral explain` of a job that starts says why: the last cause that its engine told of this attempt."""

from __future__ import annotations

from corral.kernel.ids import JobId, attempt_id
from corral.model.facts import TASK_NOTED, Fact
from corral.model.runs import JobRun, RoleCount
from corral.model.states import JobState
from corral.model.store_writes import ControlBatch, FactWrite, JobWrite
from corral.model.summary import summarize
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, START, job_text

STARTS = "Its devices are allocated and its tasks are starting."


async def starting(store: Store, epoch: int, job: JobId, attempt: int, *told: tuple[int, str]) -> None:
    """Store, as control would, that the job starts in this attempt; and what was told of attempts, in order."""
    stored = await store.load_job(job)
    assert stored is not None
    run = JobRun(job, JobState.PREPARING, attempt=attempt, roles={"worker": RoleCount(1, 1)})
    facts = tuple(
        FactWrite(job, START, Fact(TASK_NOTED, said, "worker", 0, attempt_id(job, of, "worker", 0, 0)))
        for of, said in told
    )
    write = JobWrite(job, run, "starting", summarize(stored.summary, run, "starting"), live=True)
    await store.commit(ControlBatch(epoch, jobs=(write,), facts=facts))


async def test_a_job_that_starts_is_explained_by_what_its_engine_told_last_of_this_attempt(
    service: Service, store: Store, epoch: int
) -> None:
    detail = (await service.submission.submit(ANN, job_text())).detail
    assert detail is not None
    job = detail.id
    await starting(store, epoch, JobId(job), 0)
    assert (await service.explanations.explain(ANN, job)).message == STARTS
    first, second = "worker-0: StartDelayed: It waits.", "worker-0: StartDelayed: No NodeManager can fetch /x."
    await starting(store, epoch, JobId(job), 0, (0, first), (0, second))
    assert (await service.explanations.explain(ANN, job)).message == f"{STARTS} Told last: {second}"
    await starting(store, epoch, JobId(job), 1)
    assert (await service.explanations.explain(ANN, job)).message == STARTS, "that was the attempt before"
