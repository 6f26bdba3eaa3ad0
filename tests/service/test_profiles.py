"""Profiles that the server takes: who may, what becomes of broken answers, and what is kept for how long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests, Unavailable
from corral.kernel.ids import AttemptId, JobId
from corral.model.profiles import ProfileView
from corral.service.jobs.account_limits import Allowance
from corral.service.profiles.task_session import TaskStream
from corral.service.service import Service
from corral.storage.code_archives import blob_store
from corral.store import Store
from tests.profiles.test_memory import FACTS
from tests.service.conftest import ANN, BOB, ROOT, START, job_text
from tests.store.makers import batch, running_task
from tests.waiting import pause

FOLDED = "MainThread;train (job.py:1);mm (job.py:2) 30\nMainThread;train (job.py:1);load (job.py:3) 10\n"


class Task(TaskStream):
    """A command in a task that gives fixed answers once it was asked."""

    def __init__(self, *answers: object, ready: asyncio.Event | None = None, broken: bool = False) -> None:
        self._answers, self._ready, self._broken = answers, ready, broken

    async def send(self, data: bytes) -> None:
        assert data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._ready is not None:
            await self._ready.wait()
        for each in self._answers:
            yield each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
        if self._broken:
            raise Unavailable("exec-broken", "The connection into the task broke.")


def sampled(text: str = FOLDED, **more: object) -> tuple[object, object]:
    """The answers of a task with one process."""
    return {"process": 7, "command": "python job.py", "text": text, **more}, {"done": True, "left_out": 0}


class Profiled:
    """A running job, and how its tasks answer."""

    def __init__(self, service: Service, job: JobId) -> None:
        self.service, self.profiles, self.job = service, service.profiles, job
        self.answer: Callable[[AttemptId], TaskStream] = lambda attempt: Task(*sampled())

    @contextlib.asynccontextmanager
    async def enter(self, attempt: AttemptId, command: tuple[str, ...]) -> AsyncIterator[TaskStream]:
        assert command[0] == "sh"
        yield self.answer(attempt)

    async def begin(self, what: str = "python", seconds: int = 2, tasks: tuple[str, ...] = ()) -> ProfileView:
        return await self.profiles.take(ANN, self.job, self.enter, what=what, seconds=seconds, tasks=tasks)

    async def take(self, what: str = "python", seconds: int = 2, tasks: tuple[str, ...] = ()) -> ProfileView:
        return await self.end((await self.begin(what, seconds, tasks)).id)

    async def end(self, id: str) -> ProfileView:
        begun = time.monotonic()
        while (view := await self.profiles.profile(ANN, id)).state in ("taking", "reading"):
            await asyncio.sleep(pause(begun))
        return view

    async def kept(self) -> list[str]:
        return [each.id for each in (await self.profiles.kept(ANN)).items]


@pytest.fixture
async def profiled(service: Service, store: Store, epoch: int, tmp_path: Path) -> Profiled:
    """A job of Ann's with two running tasks."""
    service.context.profiles = blob_store(tmp_path, None, "profiles")
    service.context.profiles.open()
    detail = (await service.submission.submit(ANN, job_text("train", replicas=2))).detail
    assert detail is not None
    job = JobId(detail.id)
    await store.commit(batch(epoch, tasks=tuple(running_task(job, index) for index in (0, 1))))
    return Profiled(service, job)


async def test_a_profile_of_all_tasks_is_read_kept_and_compared(profiled: Profiled) -> None:
    view = await profiled.take()
    assert (view.state, view.ranks, view.tasks) == ("done", 2, ("worker-0", "worker-1"))
    assert [each.name for each in view.files] == ["flame-graph.svg", "worker-0-7.txt", "worker-1-7.txt"]
    report = await profiled.profiles.report(ANN, view.id)
    assert [(each.name, each.own) for each in report.functions[:2]] == [
        ("mm (job.py:2)", 0.75),
        ("load (job.py:3)", 0.25),
    ]
    assert [each.name for each in report.frames if each.depth == 1] == ["worker-0 process 7", "worker-1 process 7"]
    assert (await profiled.profiles.file(ANN, view.id, "worker-1-7.txt")).decode() == FOLDED
    faster = FOLDED.replace(" 10\n", " 90\n")
    profiled.answer = lambda attempt: Task(*sampled(faster))
    later = await profiled.take(tasks=("worker-1",))
    compared = await profiled.profiles.compare(ANN, view.id, later.id)
    assert (compared.before, compared.after) == (view.id, later.id)
    first = {each.name: (each.before, each.after) for each in compared.differences}["load (job.py:3)"]
    assert first == (0.25, 0.75)
    with pytest.raises(NotFound, match="The profile has no file 'id2'"):
        await profiled.profiles.file(ANN, view.id, "id2")


async def test_memory_is_kept_with_the_growth_and_the_advice_of_what_the_job_asked_for(profiled: Profiled) -> None:
    profiled.answer = lambda attempt: Task(*sampled(json.dumps(FACTS)))
    view = await profiled.take("memory")
    assert (view.state, view.ranks) == ("done", 2)
    report = await profiled.profiles.report(ANN, view.id)
    assert (report.samples, report.memory[0].used, report.memory[0].grown) == (18_000, 9350 * 1024, 9000 * 1024)
    assert [each.name for each in report.curves[0].curves] == ["private", "files", "shared"]
    assert report.advice == ()  # the job asked for no memory, so it has no slack


async def test_only_who_may_enter_its_tasks_may_profile_a_job_and_each_look_is_noted(
    profiled: Profiled, store: Store
) -> None:
    view = await profiled.take("stacks", 0, ("worker-0",))
    assert view.state == "failed"  # samples are no stacks
    for call in (profiled.profiles.profile, profiled.profiles.report, profiled.profiles.remove):
        with pytest.raises(Forbidden, match="bob may not profile the tasks of the job train of ann"):
            await call(BOB, view.id)
    with pytest.raises(Forbidden):
        await profiled.profiles.kept(BOB, job=profiled.job)
    with pytest.raises(Forbidden):
        await profiled.profiles.take(BOB, profiled.job, profiled.enter, what="python", seconds=1, tasks=())
    assert (await profiled.profiles.kept(BOB)).items == ()
    assert (await profiled.profiles.profile(ROOT, view.id)).id == view.id
    await profiled.profiles.remove(ANN, view.id)
    noted = [(each.actor, each.allowed) for each in (await store.audit()).items if each.action == "job.profile"]
    assert noted.count(("ann", True)) == 2
    assert noted.count(("bob", False)) == 5


BROKEN: tuple[tuple[tuple[object, ...], str], ...] = (
    ((b"sh: python3: not found\n",), "The profiler could not run in the task: sh: python3: not found."),
    (({"process": 7, "text": "no stack"}, {"done": True}), "Line 1 of the profile is not a stack"),
    (({"process": 7, "problem": "process 7 ended meanwhile."}, {"done": True}), "Process 7 ended meanwhile."),
    (({"trace": "!!"},), "The profiler in the task sent a broken trace."),
    ((b"x" * (7 * 1024**2),), "The profiler in the task sent an answer that is too long."),
    (({"process": 7, "text": FOLDED},) * 65, "The profiler in the task sent too many answers."),
    (({"process": 7, "text": FOLDED},), "The profiler in the task ended before it had answered."),
)


async def test_what_broken_tasks_answer_is_told_in_one_sentence_each_and_the_others_are_kept(
    profiled: Profiled, store: Store, epoch: int
) -> None:
    await store.commit(batch(epoch, tasks=tuple(running_task(profiled.job, index) for index in range(2, 8))))
    left = [*BROKEN, (sampled(), "")]
    profiled.answer = lambda attempt: Task(*left.pop(0)[0])
    view = await profiled.take()
    assert view.state == "done"
    assert view.ranks == 2  # that of the good task, and the process of the one that ended early
    for (_, told), problem in zip(BROKEN, view.problems, strict=True):
        assert told in problem.problem


async def test_a_task_that_is_lost_while_it_answers_is_told(profiled: Profiled) -> None:
    profiled.answer = lambda attempt: Task(broken=True)
    view = await profiled.take()
    assert view.state == "failed"
    assert view.problem == "Nothing could be read of any process."
    assert {each.problem for each in view.problems} == {"The connection into the task broke."}
    with pytest.raises(Conflict, match="no report"):
        await profiled.profiles.report(ANN, view.id)


async def test_a_job_is_profiled_once_at_a_time_and_a_removed_profile_is_not_kept(profiled: Profiled) -> None:
    ready = asyncio.Event()
    profiled.answer = lambda attempt: Task(*sampled(), ready=ready)
    first = await profiled.begin()
    with pytest.raises(Conflict, match="A profile of this job is being taken"):
        await profiled.begin()
    await profiled.profiles.remove(ANN, first.id)
    second = await profiled.begin()
    ready.set()
    assert (await profiled.end(second.id)).state == "done"
    assert await profiled.kept() == [second.id]
    with pytest.raises(NotFound):
        await profiled.profiles.profile(ANN, first.id)


async def test_a_profile_whose_server_is_gone_has_failed(profiled: Profiled, clock: VirtualClock) -> None:
    profiled.answer = lambda attempt: Task(ready=asyncio.Event())
    view = await profiled.begin()
    clock.advance(121)
    lost = await profiled.profiles.profile(ANN, view.id)
    assert (lost.state, lost.problem) == ("failed", "The server ended while it took the profile; take it again.")
    profiled.answer = lambda attempt: Task(*sampled())
    assert (await profiled.take()).state == "done"


async def test_the_oldest_profiles_make_room_and_the_newest_stays(
    profiled: Profiled, clock: VirtualClock, store: Store
) -> None:
    first = await profiled.take()
    clock.advance(1)
    profiled.service.context.allowance = Allowance(profile_bytes=first.size * 5 // 2)
    second = await profiled.take()
    clock.advance(1)
    assert await profiled.kept() == [second.id, first.id]
    third = await profiled.take()
    assert await profiled.kept() == [third.id, second.id]
    profiled.service.context.allowance = Allowance(profile_bytes=1)
    clock.advance(1)
    last = await profiled.take()
    assert await profiled.kept() == [last.id]
    assert {each.id for each in await store.profiles_to_delete(START - 1)} == {first.id, second.id, third.id}
    assert {each.id for each in await store.profiles_to_delete(START + 100)} >= {last.id}


REFUSED: tuple[tuple[str, int, tuple[str, ...], str], ...] = (
    ("python", 61, (), "takes 1 to 60 seconds, not 61"),
    ("python", 0, (), "takes 1 to 60 seconds, not 0"),
    ("torch", 11, (), "takes 1 to 10 seconds, not 11"),
    ("system", 0, (), "takes 1 to 60 seconds, not 0"),
    ("memory", 31, (), "takes 1 to 30 seconds, not 31"),
    ("stacks", 1, (), "takes no time"),
    ("python", 1, ("worker",), "such as worker-0, not 'worker'"),
    ("python", 1, ("worker-٣",), "such as worker-0"),
    ("python", 1, tuple(f"worker-{each}" for each in range(65)), "At most 64 tasks"),
)


async def test_what_cannot_be_taken_is_refused(profiled: Profiled) -> None:
    for what, seconds, tasks, told in REFUSED:
        with pytest.raises(InvalidInput, match=told):
            await profiled.begin(what, seconds, tasks)
    with pytest.raises(NotFound, match="has no task worker-9"):
        await profiled.begin(tasks=("worker-9",))
    assert await profiled.kept() == []


async def test_a_server_takes_only_some_profiles_at_once(
    profiled: Profiled, service: Service, store: Store, epoch: int
) -> None:
    profiled.answer = lambda attempt: Task(ready=asyncio.Event())
    for number in range(5):
        detail = (await service.submission.submit(ANN, job_text(f"more-{number}"))).detail
        assert detail is not None
        await store.commit(batch(epoch, tasks=(running_task(JobId(detail.id)),)))
        profiled.job = JobId(detail.id)
        if number < 4:
            await profiled.begin()
    with pytest.raises(TooManyRequests, match="takes 4 profiles already"):
        await profiled.begin()
    await service.close()
    states = {each.problem for each in (await profiled.profiles.kept(ANN)).items}
    assert states == {"The server ended while it took the profile; take it again."}
