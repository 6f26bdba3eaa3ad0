"""Control's batches are atomic, ordered, and accepted only from the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from corral.kernel.errors import Conflict
from corral.kernel.ids import TaskKey, attempt_id
from corral.model.commands import EngineCommand, ForgetTask, StartTask, StopTask
from corral.model.inventory import Device, Node
from corral.model.records import JobFilter
from corral.model.runs import JobRun, RoleCount
from corral.model.store_writes import JobWrite, LiveJob, TaskWrite
from corral.store import LeadershipLost, Store
from tests.store.makers import ME, OTHER, START, Ticking, attempted, batch, ended, new_job, running_task, told


async def _led(store: Store) -> int:
    lease = await store.lead(ME)
    assert lease is not None
    return lease.epoch


async def test_a_batch_is_read_back_as_it_was_written(store: Store) -> None:
    epoch, job = await _led(store), new_job()
    await store.submit(job)
    run = JobRun(job=job.id, roles={"worker": RoleCount(2)}, started_at=START)
    start: EngineCommand = StartTask(attempt_id(job.id, 0, "worker", 0, 0))
    write = JobWrite(job.id, run, "running", job.summary, live=True, guard=0)
    result = await store.commit(
        batch(
            epoch,
            cursor=7,
            jobs=(write,),
            tasks=(running_task(job.id, 1), running_task(job.id, 0)),
            attempts=(attempted(job.id, node="local/n1", started_at=START),),
            facts=(told(job.id), told(job.id, "task.exited")),
            outbox_add=((job.id, start), (job.id, StopTask(start.attempt, 5))),
        )
    )
    (live,) = await store.load_live()
    assert (live.run, live.revision, list(live.tasks)) == (run, 1, [TaskKey("worker", 0), TaskKey("worker", 1)])
    assert [(row.seq, row.command) for row in await store.outbox()] == [
        (result.outbox[0], start),
        (result.outbox[1], StopTask(start.attempt, 5)),
    ]
    kinds = [event.kind for event in await store.events(0)]
    assert kinds == ["job.submitted", "task.started", "task.exited"]
    assert result.last_event == await store.last_seq() == (await store.events(0))[-1].seq
    lease = await store.lead(ME)
    assert lease is not None and lease.cursor == 7


async def test_done_commands_leave_the_outbox_and_numbers_go_on(store: Store) -> None:
    epoch, job = await _led(store), new_job()
    await store.submit(job)
    forget = ForgetTask(attempt_id(job.id, 0, "worker", 0, 0))
    first = await store.commit(batch(epoch, outbox_add=((job.id, forget),) * 3))
    second = await store.commit(batch(epoch, outbox_done=first.outbox, outbox_add=((job.id, forget),)))
    assert second.outbox[0] > first.outbox[-1]
    assert [row.seq for row in await store.outbox()] == list(second.outbox)


async def test_a_removed_task_is_gone_and_a_later_write_wins(store: Store) -> None:
    epoch, job = await _led(store), new_job()
    await store.submit(job)
    await store.commit(batch(epoch, tasks=(running_task(job.id, 0), running_task(job.id, 1))))
    moved = running_task(job.id, 0, "local/n2", (3,))
    gone = TaskWrite(job.id, TaskKey("worker", 1), None)
    await store.commit(batch(epoch, tasks=(running_task(job.id, 1), moved, gone)))
    (task,) = (await store.job_tasks(job.id)).items
    assert (task.node, task.devices) == ("local/n2", (3,))


async def test_a_stale_guard_refuses_the_whole_batch(store: Store) -> None:
    epoch, job = await _led(store), new_job()
    await store.submit(job)
    write = JobWrite(job.id, JobRun(job=job.id), "running", job.summary, live=True, guard=4)
    with pytest.raises(Conflict) as refused:
        await store.commit(batch(epoch, jobs=(write,), facts=(told(job.id),)))
    assert refused.value.code == "stale-revision"
    assert [event.kind for event in await store.events(0)] == ["job.submitted"]


async def test_a_deposed_leader_writes_nothing(
    store: Store, open_more: Callable[[], Awaitable[Store]], clock: Ticking
) -> None:
    epoch, job = await _led(store), new_job()
    await store.submit(job)
    other = await open_more()
    assert await other.lead(OTHER) is None
    clock.advance(3.1)
    lease = await other.lead(OTHER)
    assert lease is not None and lease.epoch > epoch
    with pytest.raises(LeadershipLost):
        await store.commit(batch(epoch, jobs=(ended(job),)))
    with pytest.raises(LeadershipLost):
        await store.put_nodes(epoch, "local", [], START)
    assert len(await store.load_live()) == 1


async def test_a_job_removed_leaves_only_a_line_of_history(store: Store) -> None:
    epoch, job, kept = await _led(store), new_job(tags=("t",), secrets={"S": "x"}, idempotency_key="k"), new_job()
    await store.submit(job)
    await store.submit(kept)
    await store.commit(batch(epoch, tasks=(running_task(job.id),), attempts=(attempted(job.id),), jobs=(ended(job),)))
    await store.commit(batch(epoch, removed_jobs=(job.id,)))
    assert await store.load_job(job.id) is None
    assert await store.find_job(job.id) is None
    assert {event.job for event in await store.events(0)} == {kept.id}
    assert await store.secrets(f"job:{job.id}") == {}
    assert [line.id for line in (await store.history()).items] == [job.id]
    assert (await store.list_jobs(JobFilter(tag="t"))).items == []
    assert (await store.submit(new_job(idempotency_key="k"))).created


async def test_event_numbers_follow_the_order_of_commits_across_processes(
    store: Store, open_more: Callable[[], Awaitable[Store]]
) -> None:
    """A reader that always continues after its last number misses no event, whoever writes."""
    epoch, other = await _led(store), await open_more()
    seen: list[int] = []
    writing = True

    async def read_on() -> None:
        while True:
            last = not writing
            found = await other.events(seen[-1] if seen else 0, 50)
            seen.extend(event.seq for event in found)
            if last and not found:
                return

    async def submit(where: Store) -> None:
        for _ in range(20):
            await where.submit(new_job())

    async def commit() -> None:
        job = new_job()
        await store.submit(job)
        for _ in range(20):
            await store.commit(batch(epoch, facts=(told(job.id),) * 3))

    reader = asyncio.create_task(read_on())
    await asyncio.gather(submit(store), submit(other), submit(store), commit())
    writing = False
    await reader
    assert seen == list(range(1, 3 * 20 + 1 + 60 + 1))


async def test_nodes_not_seen_any_more_are_removed(store: Store) -> None:
    epoch = await _led(store)
    nodes = [Node(f"local/n{n}", devices=(Device(0, f"d{n}"),)) for n in range(3)]
    await store.put_nodes(epoch, "local", nodes, START)
    await store.put_nodes(epoch, "other", [Node("other/x")], START)
    await store.put_nodes(epoch, "local", nodes[:2], START + 1)
    assert [(row.node.name, row.seen_at) for row in await store.nodes()] == [
        ("local/n0", START + 1),
        ("local/n1", START + 1),
        ("other/x", START),
    ]


async def test_only_placed_tasks_that_are_not_over_hold_something(store: Store) -> None:
    epoch, job, over = await _led(store), new_job(), new_job()
    await store.submit(job)
    await store.submit(over)
    await store.commit(batch(epoch, tasks=(running_task(job.id), running_task(over.id)), jobs=(ended(over),)))
    assert [(row.job, row.task.index) for row in await store.holders()] == [(job.id, 0)]
    assert await store.holders("local/n2") == []


async def test_load_jobs_gives_those_that_are_there(store: Store) -> None:
    one, two = new_job(), new_job()
    await store.submit(two)
    await store.submit(one)
    found: list[LiveJob] = await store.load_jobs([two.id, one.id, new_job().id])
    assert [job.id for job in found] == sorted([one.id, two.id])
    assert await store.load_jobs([]) == []
