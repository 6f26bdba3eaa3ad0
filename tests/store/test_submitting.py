"""An acknowledged submission is durable."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from sqlalchemy import insert

from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from corral.kernel.ids import JobId, attempt_id
from corral.model.accounts import Group, QueueRecord
from corral.model.records import TaskCounts
from corral.model.runs import JobRun, RoleCount
from corral.model.store_writes import IntentKind, JobWrite, NewJob
from corral.store import Store, tables
from corral.store.job_writes import CHECKPOINT_SECONDS
from corral.store.writer import Transaction
from tests.store.makers import ME, START, batch, ended, new_job, with_tasks


async def test_a_submitted_job_is_live_and_intended(store: Store) -> None:
    job = new_job("digits", tags=("a", "b"), secrets={"KEY": "sealed"}, hold="dependency")
    answer = await store.submit(job)
    assert (answer.id, answer.created) == (job.id, True)
    (live,) = await store.load_live()
    assert (live.id, live.doc, live.run.hold, live.revision, live.tasks) == (job.id, job.doc, "dependency", 0, {})
    (intent,) = await store.intents(0)
    assert (intent.seq, intent.job, intent.kind, intent.actor) == (answer.seq, job.id, IntentKind.SUBMITTED, "ann")
    assert await store.secrets(f"job:{job.id}") == {"KEY": "sealed"}
    assert await store.intents(intent.seq) == []


async def test_a_live_name_is_taken_for_its_user_only(store: Store) -> None:
    first = new_job("digits")
    await store.submit(first)
    with pytest.raises(Conflict) as refused:
        await store.submit(new_job("digits"))
    assert refused.value.code == "name-taken"
    await store.submit(new_job("digits", user="bob"))
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, jobs=(ended(first),)))
    await store.submit(new_job("digits"))
    with pytest.raises(Conflict):
        await store.submit(new_job("digits", unique_name="ever"))
    await store.submit(new_job("digits", unique_name="none"))


async def test_concurrent_submits_of_one_name_accept_one(store: Store) -> None:
    answers = await asyncio.gather(*(store.submit(new_job("same")) for _ in range(20)), return_exceptions=True)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert {type(answer) for answer in answers} - {Conflict} == {
        type(next(a for a in answers if not isinstance(a, Conflict)))
    }
    assert len(await store.load_live()) == 1


async def test_a_repeated_idempotency_key_gives_the_first_job(store: Store) -> None:
    first = await store.submit(new_job("a", idempotency_key="k", request_hash="h"))
    again = await store.submit(new_job("a", idempotency_key="k", request_hash="h"))
    assert (again.id, again.created, again.seq) == (first.id, False, first.seq)
    with pytest.raises(Conflict) as refused:
        await store.submit(new_job("b", idempotency_key="k", request_hash="other"))
    assert refused.value.code == "idempotency-key-reused"
    other = await store.submit(new_job("a", user="bob", idempotency_key="k", request_hash="h"))
    assert other.created
    later = new_job("c", idempotency_key="k", request_hash="new", created_at=START + 10**6)
    assert (await store.submit(later)).created


async def test_an_array_is_stored_together_or_not_at_all(store: Store) -> None:
    await store.submit(new_job("sweep-1"))
    with pytest.raises(Conflict):
        await store.submit_all([new_job("sweep-0"), new_job("sweep-1")])
    assert [job.name for job in await store.load_live()] == ["sweep-1"]
    made = await store.submit_all([new_job(f"ok-{n}", array_parent="p") for n in range(3)])
    assert [child.id for child in await store.children("p")] == [each.id for each in made]


async def test_an_intent_needs_a_job_and_keeps_its_data(store: Store) -> None:
    job = new_job()
    await store.submit(job)
    seq = await store.add_intent(job.id, IntentKind.SCALE, {"role": "worker", "replicas": 3}, actor="bob", at=START)
    (_, scale) = await store.intents(0)
    assert (scale.seq, scale.kind, scale.data) == (seq, "job.scale-requested", {"role": "worker", "replicas": 3})
    with pytest.raises(NotFound):
        await store.add_intent(JobId("nothing"), IntentKind.STOP, actor="bob", at=START)


async def test_only_the_latest_checkpoint_of_a_job_is_kept_and_not_one_for_every_word(store: Store) -> None:
    job = new_job()
    await store.submit(job)
    first, other = attempt_id(job.id, 0, "worker", 0, 0), attempt_id(job.id, 0, "worker", 3, 0)
    answers = [
        await store.checkpointed(first, START),
        await store.checkpointed(first, START),
        await store.checkpointed(other, START + CHECKPOINT_SECONDS - 0.1),
        await store.checkpointed(other, START - 50),
        await store.checkpointed(other, START + CHECKPOINT_SECONDS),
        await store.checkpointed(attempt_id(job.id, 1, "worker", 0, 0), START + CHECKPOINT_SECONDS),
        await store.checkpointed(first, START + 1000),
        await store.checkpointed(attempt_id(JobId("gone"), 0, "worker", 0, 0), START),
    ]
    assert answers == [True, False, False, False, True, True, False, False]
    (_, kept) = await store.intents(0)
    assert (kept.kind, kept.job, kept.at, kept.data) == (
        "job.checkpointed",
        job.id,
        START + CHECKPOINT_SECONDS,
        {"jobAttempt": 1},
    )


async def test_one_bad_submit_does_not_spoil_those_of_the_same_moment(store: Store) -> None:
    good = [new_job() for _ in range(10)]
    bad = new_job("broken\ud800name")
    answers = await asyncio.gather(*(store.submit(job) for job in [*good[:5], bad, *good[5:]]), return_exceptions=True)
    assert [type(answer) for answer in answers if isinstance(answer, BaseException)] == [InvalidInput]
    assert {job.id for job in await store.load_live()} == {job.id for job in good}


async def test_a_fault_in_one_operation_is_shown_to_its_caller_only(store: Store) -> None:
    def faulty(transaction: Transaction) -> None:
        transaction.write(insert(tables.settings), {"key": "half", "value": "1"})
        raise KeyError("a bug")

    jobs = [new_job() for _ in range(6)]
    answers = await asyncio.gather(
        *(store.submit(job) for job in jobs[:3]),
        store.write(faulty),
        *(store.submit(job) for job in jobs[3:]),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers if isinstance(answer, BaseException)] == [KeyError]
    assert {job.id for job in await store.load_live()} == {job.id for job in jobs}
    assert await store.setting("half") is None, "what the faulty operation wrote is rolled back"


async def test_what_submits_are_asked_about_is_kept_for_a_moment_and_follows_changes_of_this_process(
    store: Store,
) -> None:
    await store.put_queues([QueueRecord("default")])
    before = await store.admission()
    assert await store.admission() is before
    await store.put_queues([QueueRecord("default"), QueueRecord("gold")])
    assert (await store.admission()).queues == ("default", "gold")
    await store.put_group(Group("vips", ("gold",)))
    assert (await store.admission()).granted == {"gold"}
    await store.remove_group("vips")
    assert not (await store.admission()).granted


async def test_tasks_count_while_they_wait_or_run(store: Store) -> None:
    first, second = with_tasks(new_job("first"), 3), with_tasks(new_job("second"), 4)
    await store.submit_all([first], most_tasks=3)
    with pytest.raises(TooManyRequests):
        await store.submit_all([second], most_tasks=6)
    assert await store.open_tasks("ann") == 3
    lease = await store.lead(ME)
    assert lease is not None
    partly = msgspec.structs.replace(first.summary, tasks=TaskCounts(3, 0, 1, 2))
    await store.commit(
        batch(lease.epoch, jobs=(JobWrite(first.id, JobRun(job=first.id), "running", partly, live=True),))
    )
    assert await store.open_tasks("ann") == 1
    await store.submit_all([second], most_tasks=5)
    between = msgspec.structs.replace(first.summary, tasks=TaskCounts(3, 0, 0, 2, 1))
    again = JobWrite(first.id, JobRun(job=first.id), "waiting", between, live=True)
    await store.commit(batch(lease.epoch, jobs=(again,)))
    assert await store.open_tasks("ann") == 3 + 4, "all tasks of a job that is tried again will come again"
    await store.commit(batch(lease.epoch, jobs=(ended(first), ended(second))))
    assert await store.open_tasks("ann") == 0 and await store.open_tasks("nobody") == 0


async def test_a_job_that_grows_counts_at_once_and_until_control_has_carried_it_out(store: Store) -> None:
    job = with_tasks(new_job("wide"), 1)
    await store.submit(job)
    lease = await store.lead(ME)
    assert lease is not None

    async def scaled(size: int, most: int) -> int:
        return await store.scale(job.id, {"worker": size}, asked={"worker": 1}, actor="ann", at=START, most_tasks=most)

    def stands(size: int) -> JobWrite:
        summary = msgspec.structs.replace(job.summary, tasks=TaskCounts(size, size))
        return JobWrite(job.id, JobRun(job=job.id, roles={"worker": RoleCount(size)}), "waiting", summary, live=True)

    seq = await scaled(4, 4)
    assert await store.open_tasks("ann") == 4
    await store.commit(batch(lease.epoch, jobs=(stands(1),)))
    assert await store.open_tasks("ann") == 4, "control has not read of it yet"
    await scaled(4, 4)
    await scaled(2, 1)
    await scaled(4, 4)
    for refused in (scaled(5, 4), store.check_scale(job.id, {"worker": 5}, {"worker": 1}, 4)):
        with pytest.raises(TooManyRequests):
            await refused
    assert [intent.data["replicas"] for intent in (await store.intents(0))[1:]] == [4, 4, 2, 4]
    await store.commit(batch(lease.epoch, jobs=(stands(4),), cursor=seq + 3))
    assert await store.open_tasks("ann") == 4
    await scaled(2, 1)
    await store.commit(batch(lease.epoch, jobs=(stands(2),), cursor=seq + 4))
    assert await store.open_tasks("ann") == 2
    await scaled(9, 0)
    assert await store.open_tasks("ann") == 9, "no bound refuses nothing, and counts"
    with pytest.raises(NotFound):
        await store.scale(JobId("nothing"), {"worker": 2}, asked={}, actor="ann", at=START)


async def test_the_roles_of_a_job_are_scaled_together_or_not_at_all(store: Store) -> None:
    job = with_tasks(new_job("two"), 2)
    await store.submit(job)
    sizes, asked = {"ps": 2, "worker": 3}, {"ps": 1, "worker": 1}
    with pytest.raises(TooManyRequests):
        await store.scale(job.id, sizes, asked=asked, actor="ann", at=START, most_tasks=4)
    assert len(await store.intents(0)) == 1 and await store.open_tasks("ann") == 2
    await store.scale(job.id, sizes, asked=asked, actor="ann", at=START, most_tasks=5)
    assert [intent.data for intent in (await store.intents(0))[1:]] == [
        {"role": "ps", "replicas": 2},
        {"role": "worker", "replicas": 3},
    ]


async def test_jobs_that_are_over_count_again_when_they_are_restarted(store: Store) -> None:
    first, second, third = jobs = [with_tasks(new_job(name), 2) for name in ("first", "second", "third")]
    await store.submit_all(jobs)
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, jobs=(ended(first), ended(second))))

    async def restarted(job: NewJob, most: int) -> None:
        await store.restart(job.id, actor="ann", at=START, most_tasks=most)

    with pytest.raises(TooManyRequests):
        await restarted(first, 3)
    await restarted(first, 4)
    await restarted(first, 4)
    with pytest.raises(TooManyRequests):
        await restarted(second, 4)
    await restarted(third, 1)
    await restarted(second, 0)
