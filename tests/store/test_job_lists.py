"""Paging through a job list while jobs come and go shows every job once, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.model.outcome import Completion, ExitClass
from corral.model.records import JOB_ORDERS, JobFilter, JobSummary
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import NewJob, TaskWrite
from corral.store import Store, open_store
from tests.databases import sqlite_store
from tests.examples import examples
from tests.store.makers import ME, START, Ticking, attempted, batch, ended, new_job, running_task


async def _pages(store: Store, wanted: JobFilter, limit: int) -> list[JobSummary]:
    found: list[JobSummary] = []
    cursor = ""
    while True:
        page = await store.list_jobs(wanted, limit=limit, after_cursor=cursor)
        found.extend(page.items)
        assert len(page.items) <= limit
        if page.next is None:
            return found
        assert len(page.items) == limit
        cursor = page.next


async def test_each_filter_narrows_the_list(store: Store) -> None:
    one = new_job("Train-100%", user="ann", queue="vision", job_type="pytorch", tags=("x", "y"), created_at=START + 1)
    two = new_job("eval_a", user="bob", queue="nlp", job_type="shell", tags=("y",), created_at=START + 500_000)
    for job in (one, two):
        await store.submit(job)
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, jobs=(ended(two, "failed"),)))
    cases: list[tuple[JobFilter, list[NewJob]]] = [
        (JobFilter(), [two, one]),
        (JobFilter(order="oldest"), [one, two]),
        (JobFilter(users=("ann",)), [one]),
        (JobFilter(users=("ann", "bob"), queues=("nlp",)), [two]),
        (JobFilter(queues=("vision",)), [one]),
        (JobFilter(phases=("failed",)), [two]),
        (JobFilter(phases=("waiting", "running")), [one]),
        (JobFilter(job_type="pytorch"), [one]),
        (JobFilter(tag="y"), [two, one]),
        (JobFilter(tag="x"), [one]),
        (JobFilter(search="tRAIN"), [one]),
        (JobFilter(search="0%"), [one]),
        (JobFilter(search="_"), [two]),
        (JobFilter(search=two.id[:13]), [two]),
        (JobFilter(search="nothing"), []),
        (JobFilter(created_after=START + 2), [two]),
        (JobFilter(created_before=START + 2), [one]),
        (JobFilter(order="ended"), [two]),
    ]
    for wanted, expected in cases:
        page = await store.list_jobs(wanted)
        assert [job.id for job in page.items] == [job.id for job in expected], wanted
        assert page.next is None


@pytest.mark.parametrize("cursor", ["x", "W10", "WyJhIiwiYiJd", "WzFd", "é", "A" * 5000, "bnVsbA"])
async def test_a_made_up_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        await store.list_jobs(JobFilter(), after_cursor=cursor)


async def test_text_that_cannot_be_stored_is_refused_or_found_nowhere(store: Store) -> None:
    for wanted in (JobFilter(search="a\0b"), JobFilter(search="\ud800"), JobFilter(users=("\0",))):
        try:
            page = await store.list_jobs(wanted)
        except InvalidInput:
            continue
        assert page.items == []
    assert await store.find_job("a\0b") is None


_JOBS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "B", "c"]),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from([-1, 10, 120]),
        st.sampled_from(["waiting", "succeeded", "failed"]),
        st.integers(0, 2),
    ),
    max_size=25,
)


@given(jobs=_JOBS, order=st.sampled_from(JOB_ORDERS), limit=st.integers(1, 7), user=st.sampled_from(["", "ann"]))
@settings(max_examples=examples(30))
def test_paging_shows_every_job_exactly_once_in_order(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[Any], order: str, limit: int, user: str
) -> None:
    asyncio.run(_check_paging(tmp_path_factory.mktemp("paging"), jobs, order, limit, user))


async def _check_paging(folder: Path, jobs: list[Any], order: str, limit: int, user: str) -> None:
    store = await open_store(sqlite_store(folder), clock=Ticking())
    try:
        lease = await store.lead(ME)
        assert lease is not None
        stored = [
            new_job(name, user=owner, priority=priority, unique_name="none") for name, owner, priority, _, _ in jobs
        ]
        for job, (_, _, _, phase, end) in zip(stored, jobs, strict=True):
            await store.submit(job)
            if phase != "waiting":
                await store.commit(batch(lease.epoch, jobs=(ended(job, phase, START + end),)))
        keys: dict[str, Any] = {
            "newest": lambda pair: tuple(-ord(char) for char in pair[0].id),
            "oldest": lambda pair: pair[0].id,
            "name": lambda pair: (pair[0].name, pair[0].id),
            "priority": lambda pair: (-pair[0].priority, pair[0].id),
            "ended": lambda pair: (-pair[1][4], tuple(-ord(char) for char in pair[0].id)),
        }
        wanted = [
            pair
            for pair in zip(stored, jobs, strict=True)
            if (not user or pair[0].user == user) and (order != "ended" or pair[1][3] != "waiting")
        ]
        expected = [job.id for job, _ in sorted(wanted, key=keys[order])]
        found = await _pages(store, JobFilter(order=order, users=(user,) if user else ()), limit)
        assert [job.id for job in found] == expected
    finally:
        await store.close()


async def test_jobs_are_found_by_bounds_of_their_priority(store: Store) -> None:
    jobs = {priority: new_job(priority=priority) for priority in (-1, 10, 100, 120)}
    for job in jobs.values():
        await store.submit(job)

    async def found(least: int | None, most: int | None, *, arrays: bool = False) -> set[str]:
        wanted = JobFilter(min_priority=least, max_priority=most, arrays=arrays)
        return {job.id for job in (await store.list_jobs(wanted)).items}

    assert await found(100, None) == {jobs[100].id, jobs[120].id}
    assert await found(None, -1) == {jobs[-1].id}
    assert await found(10, 100, arrays=True) == {jobs[10].id, jobs[100].id}
    assert await found(0, 0) == set()


async def test_a_page_follows_its_key_while_jobs_come(store: Store) -> None:
    first = [new_job() for _ in range(4)]
    for job in first:
        await store.submit(job)
    page = await store.list_jobs(JobFilter(), limit=2)
    await store.submit(new_job())
    rest = await store.list_jobs(JobFilter(), limit=2, after_cursor=page.next or "")
    assert [job.id for job in [*page.items, *rest.items]] == [job.id for job in reversed(first)]


async def test_a_job_is_found_by_id_name_and_owner(store: Store) -> None:
    old, new, bobs = new_job("n"), new_job("n", unique_name="none"), new_job("n", user="bob")
    for job in (old, new, bobs):
        await store.submit(job)
    lease = await store.lead(ME)
    assert lease is not None
    assert await _found(store, old.id) == old.id
    assert await _found(store, "n", "ann") == new.id
    assert await _found(store, "bob~n") == bobs.id
    assert await _found(store, "bob~n", "ann") == bobs.id
    assert await _found(store, "n", "eve") is None
    await store.commit(batch(lease.epoch, jobs=(ended(new),)))
    assert await _found(store, "n", "ann") == old.id, "a live job comes before one that is over"


async def _found(store: Store, ref: str, user: str | None = None) -> str | None:
    record = await store.find_job(ref, user)
    return None if record is None else record.id


async def test_tasks_and_attempts_are_shown_in_pages(store: Store) -> None:
    job = new_job()
    await store.submit(job)
    lease = await store.lead(ME)
    assert lease is not None
    failed = TaskRun(
        "worker", 4, TaskState.COMPLETED, attempt=2, completion=Completion(9, "Killed", ExitClass.UNKNOWN, "no\0thing")
    )
    tasks = [running_task(job.id, index) for index in (3, 0, 10, 1)] + [TaskWrite(job.id, failed.key, failed)]
    attempts = tuple(
        attempted(job.id, n, 4, code=9, phrase="Killed", exit_class="unknown", diagnostics="a\0b") for n in range(3)
    )
    await store.commit(batch(lease.epoch, tasks=tuple(tasks), attempts=attempts))
    first = await store.job_tasks(job.id, limit=3)
    rest = await store.job_tasks(job.id, limit=3, after_cursor=first.next or "")
    assert [task.index for task in [*first.items, *rest.items]] == [0, 1, 3, 4, 10]
    assert rest.next is None
    (shown,) = (await store.job_tasks(job.id, states=("completed",))).items
    assert shown.exit is not None and (shown.exit.code, shown.exit.exit_class, shown.attempt) == (9, "unknown", 2)
    assert (await store.job_tasks(job.id, role="other")).items == []
    newest = await store.job_attempts(job.id, "worker", 4, limit=2)
    oldest = await store.job_attempts(job.id, "worker", 4, limit=2, after_cursor=newest.next or "")
    assert [each.attempt for each in [*newest.items, *oldest.items]] == [2, 1, 0]


async def test_jobs_are_counted_by_queue_and_phase(store: Store) -> None:
    for queue in ("a", "a", "b"):
        await store.submit(new_job(queue=queue))
    assert await store.count_jobs() == {"a": {"waiting": 2}, "b": {"waiting": 1}}


async def test_an_array_is_one_line_and_labels_are_looked_up_in_documents(store: Store) -> None:
    doc = '{"kind":"UnifiedJob","metadata":{"labels":{"team":"vision","example.com/stage":"dev"}}}'
    first = new_job("seeds-0", doc=doc)
    mates = [new_job(f"seeds-{index}", array_parent=first.id) for index in (1, 2)]
    alone = new_job("alone", doc='{"kind":"UnifiedJob","metadata":{"labels":{}}}')
    await store.submit_all([msgspec.structs.replace(first, array_parent=first.id), *mates])
    await store.submit(alone)
    lines = (await store.list_jobs(JobFilter(arrays=True))).items
    assert [line.id for line in lines] == [alone.id, first.id]
    assert lines[0].array is None
    assert lines[1].array is not None
    assert (lines[1].array.name, lines[1].array.states) == ("seeds", {"waiting": 3})
    found = (await store.list_jobs(JobFilter(arrays=True, search="seeds-2"))).items
    assert [line.id for line in found] == [mates[1].id]
    labelled = JobFilter(labels=(("team", "vision"), ("example.com/stage", "dev")))
    assert [line.id for line in (await store.list_jobs(labelled)).items] == [first.id]
    assert not (await store.list_jobs(JobFilter(labels=(("team", "speech"),)))).items
