"""Who may ask what, how a request becomes a question, and what the answer shows to whom."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest

from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unavailable
from corral.model.what_if import (
    AddedJobs,
    AddedNodes,
    Course,
    Courses,
    Known,
    QueueCourse,
    Stay,
    TimelineNode,
    WaitingJob,
    WhatIfRequest,
)
from corral.service.service import Service
from corral.service.what_if.comparison import compare
from tests.service.conftest import ANN, BOB, ROOT, FakeControl, job_text
from tests.service.test_jobs import _submit


class Recording(FakeControl):
    """A control that keeps the question and answers with a few courses."""

    def __init__(self, courses: Courses) -> None:
        super().__init__()
        self.answers["/configuration/check"] = []
        self._courses = msgspec.to_builtins(courses)
        self.asked: dict[str, Any] = {}

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        if path != "/what-if":
            return await super().request(path, body)
        self.asked = body
        return self._courses


def course(*starts: float | None, queue: str = "default", waits: tuple[float, ...] = ()) -> Course:
    """A course in which the jobs a, b, ... start then; None: never."""
    found = {name: at for name, at in zip("abcdef", starts, strict=False) if at is not None}
    queues = {queue: QueueCourse(started=len(found), waits=list(waits), used=2.0)}
    return Course(found, queues, Known(own=2), [0.0, 60.0], [2.0, 4.0], 4, [1, 0])


def waiting(name: str, user: str = "ann", queue: str = "default") -> WaitingJob:
    return WaitingJob(name, f"{name}-job", user, queue, 2.0, 30.0)


COURSES = Courses(
    at=1_000_000_000.0,
    cursor=7,
    jobs=(waiting("a"), waiting("b", "bob"), waiting("c", "bob", "closed")),
    before=(course(10.0, 100.0, 50.0, waits=(10.0, 100.0)), course(20.0, None, waits=(20.0,))),
    after=(course(0.0, 200.0, waits=(1.0,)), course(0.0, 300.0, waits=(2.0,))),
)


@pytest.fixture
def control(service: Service) -> Recording:
    """The service asks this one."""
    made = Recording(COURSES)
    service.context.control = made
    return made


async def test_the_answer_has_quantiles_over_the_seeds(service: Service, control: Recording) -> None:
    answer = await service.what_if.ask(ROOT, WhatIfRequest(seeds=2))
    first, second, _ = answer.jobs
    assert (first.before.p10, first.before.p50, first.before.p90) == (10.0, 10.0, 20.0)
    assert (second.before.p50, second.before.p90, second.after.p90) == (100.0, None, 300.0)
    assert answer.gains == ("a",) and answer.losses == ("c", "b")  # c starts no more
    (queue,) = answer.queues
    assert (queue.before.wait_p50, queue.before.wait_p95, queue.after.wait_p95) == (20.0, 100.0, 2.0)
    assert (answer.before.devices, answer.before.used, answer.before.waiting) == (4.0, (2.0, 4.0), (1.0, 0.0))
    assert control.asked["seeds"] == (0, 1)


async def test_other_peoples_jobs_are_sizes(service: Service, control: Recording) -> None:
    await service.configuration.apply(ROOT, "{kind: Queue, name: closed, membersOnly: true}")
    answer = await service.what_if.ask(ANN, WhatIfRequest())
    assert [(job.id, job.name, job.user, job.devices) for job in answer.jobs] == [
        ("a", "a-job", "ann", 2.0),
        ("job-2", "job", "", 2.0),
    ]
    assert answer.gains == ("a",) and answer.losses == ("job-2",)


async def test_a_timeline_shows_other_peoples_jobs_as_sizes(service: Service, control: Recording) -> None:
    await service.configuration.apply(ROOT, "{kind: Queue, name: closed, membersOnly: true}")
    told = copy.deepcopy(COURSES)
    for each in (*told.before, *told.after):
        each.nodes = {"local/n1": 4, "local/n2": 0}
        each.stays = [
            Stay("a", "a-job", "ann", "default", "local/n1", (0,), 0.0, 60.0),
            Stay("b", "b-job", "bob", "default", "local/n1", (1,)),
            Stay("r", "runs", "bob", "default", "local/n1", (2,)),
            Stay("c", "c-job", "bob", "closed", "local/n1", (3,)),
            Stay("z", "z-job", "ann", "default", "local/n2", (0,)),
        ]
        each.stays_left_out = 3
    service.context.control = Recording(told)
    found = (await service.what_if.ask(ANN, WhatIfRequest(timeline=True))).timeline
    assert found is not None
    assert found.nodes == (TimelineNode("local/n1", 4),)
    assert [(stay.job, stay.name, stay.user, stay.devices) for stay in found.after] == [
        ("a", "a-job", "ann", (0,)),
        ("job-2", "job", "", (1,)),
        ("job-4", "job", "", (2,)),
    ]
    assert found.before == found.after
    assert found.left_out == 2 * (3 + 1)
    all_of_it = (await service.what_if.ask(ROOT, WhatIfRequest(timeline=True))).timeline
    assert all_of_it is not None and [stay.job for stay in all_of_it.after] == ["a", "b", "r", "c"]


async def test_changes_become_a_question_and_clauses(service: Service, control: Recording) -> None:
    job = await _submit(service, job_text("waits"))
    answer = await service.what_if.ask(
        ROOT,
        WhatIfRequest(
            add_nodes=(AddedNodes(2, "local/n1"),),
            drain=("local/n2",),
            queues={"default": {"deserved": {"devices": 2}}},
            submit=(AddedJobs(job_text("more"), 3),),
            stop=(job,),
            priorities={job: "prod"},
            policy="fifo",
        ),
    )
    assert answer.changes == (
        "deserved.devices 2 in queue default",
        "policy fifo",
        "2 nodes like local/n1 added",
        "local/n2 drained",
        "waits stopped",
        "waits with priority prod",
        "more submitted 3 times",
    )
    asked = control.asked
    kinds = {each["kind"]: each for each in asked["documents"]}
    assert kinds["Queue"]["deserved"] == {"devices": "2"} and kinds["Policy"]["preset"] == "fifo"
    assert (asked["stop"], asked["priorities"], asked["submit"][0]["times"]) == ((job,), {job: "prod"}, 3)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (WhatIfRequest(arrivals="yesterday"), "Arrivals are last-week, or left out."),
        (WhatIfRequest(horizon_seconds=1.0), "The horizon is from 1 minute to 30d."),
        (WhatIfRequest(horizon_seconds=float("nan")), "The horizon is from 1 minute to 30d."),
        (WhatIfRequest(seeds=1000), "draws 1 to 20 courses"),
        (WhatIfRequest(seed=-1), "draws 1 to 20 courses"),
        (WhatIfRequest(add_nodes=(AddedNodes(10**9, "local/n1"),)), "adds 1 to 1000 nodes"),
        (WhatIfRequest(add_nodes=(AddedNodes(-1, "local/n1"),)), "adds 1 to 1000 nodes"),
        (WhatIfRequest(submit=(AddedJobs("x", 10**9),)), "submits 1 to 1000 jobs"),
        (WhatIfRequest(drain=("local/n1",) * 1000), "at most 500 changes"),
        (WhatIfRequest(submit=(AddedJobs("x"),) * 51), "at most 50 job files"),
        (WhatIfRequest(submit=(AddedJobs("name: x"),)), "The job file has a problem"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(
    service: Service, control: Recording, request_: WhatIfRequest, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        await service.what_if.ask(ROOT, request_)
    assert control.asked == {}


async def test_one_caller_asks_one_question_at_a_time(service: Service, control: Recording) -> None:
    turn, ask = asyncio.Event(), control.request

    async def later(path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        await turn.wait()
        return await ask(path, body, seconds=seconds)

    control.request = later  # type: ignore[method-assign]
    first, other = (asyncio.create_task(service.what_if.ask(each, WhatIfRequest())) for each in (ANN, BOB))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Your question before this one is still being answered"):
        await service.what_if.ask(ANN, WhatIfRequest())
    turn.set()
    assert (await first).seeds == (await other).seeds == 2
    await service.what_if.ask(ANN, WhatIfRequest())


async def test_an_array_counts_all_its_jobs(service: Service, control: Recording) -> None:
    text = job_text("sweep", more="array: {size: 500}\n")
    with pytest.raises(InvalidInput, match="at most 1000 jobs, those of arrays counted, not 1500"):
        await service.what_if.ask(ROOT, WhatIfRequest(submit=(AddedJobs(text, 2), AddedJobs(text, 1))))


async def test_ordinary_users_ask_about_what_is_theirs(service: Service, control: Recording) -> None:
    await service.configuration.apply(ROOT, "{kind: Queue, name: closed, membersOnly: true}")
    job = await _submit(service, job_text("waits"))
    for refused in (
        WhatIfRequest(policy="fifo"),
        WhatIfRequest(documents="{kind: Queue, name: default}"),
        WhatIfRequest(queues={"closed": {"weight": 2}}),
        WhatIfRequest(stop=(job,)),
        WhatIfRequest(priorities={job: 5}),
    ):
        with pytest.raises(Forbidden):
            await service.what_if.ask(BOB, refused)
    await service.what_if.ask(BOB, WhatIfRequest(queues={"default": {"weight": 2}}))


async def test_an_unknown_queue_is_named_with_the_nearest(service: Service, control: Recording) -> None:
    with pytest.raises(NotFound, match=r'There is no queue defaul; did you mean "default"\?'):
        await service.what_if.ask(ROOT, WhatIfRequest(queues={"defaul": {"weight": 2}}))
    with pytest.raises(InvalidInput, match="change its name or kind"):
        await service.what_if.ask(ROOT, WhatIfRequest(queues={"default": {"name": "other"}}))


@pytest.mark.parametrize(
    ("own", "said"), [(1, "1 job runs for as long as its"), (2, "2 jobs run for as long as their")]
)
def test_the_run_times_of_one_job_and_of_several_are_told(own: int, said: str) -> None:
    known = msgspec.structs.replace(COURSES.after[0], known=Known(own=own))
    found = compare(
        msgspec.structs.replace(COURSES, after=(known,)), horizon=60.0, changes=(), shown=lambda queue: True
    )
    assert f"{said} maxDuration." in found.assumptions
