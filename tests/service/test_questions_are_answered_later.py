"""Questions that are answered later: their progress, who may see and cancel them, their bounds, and their end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unavailable
from corral.model.what_if import WhatIfRequest
from corral.model.what_if_progress import (
    AFTER,
    BEFORE,
    CANCELLED,
    COMPARING,
    DONE,
    FAILED,
    RUNNING,
    WhatIfProgress,
    WhatIfQuestions,
    WhatIfStatus,
    in_words,
)
from corral.service import stream_expiry
from corral.service.actor import Actor
from corral.service.service import WHAT_IF, Service
from corral.service.what_if import watched_request
from corral.service.what_if.kept_questions import KeptQuestions, QuestionBounds
from tests.service.conftest import ANN, BOB, ROOT, FakeControl
from tests.service.test_what_if import COURSES

Kept = KeptQuestions[WhatIfRequest, WhatIfStatus, WhatIfQuestions]
JOB = Actor("ann", "job", kind="job", job="1m83", token_id="t-job")


class Playing(FakeControl):
    """A control that plays a question until it is told to go on, and says how far each one is."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()
        self.cancelled = 0
        self.error: Exception | None = None
        self.told = asyncio.Event()
        """Set by each look at the progress."""
        self.progress: list[WhatIfProgress] = []

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        if path.endswith("/progress"):
            self.told.set()
            found = self.progress.pop(0) if self.progress else None
            return msgspec.to_builtins(found)
        if not path.startswith("/what-if"):
            return await super().request(path, body)
        assert seconds is not None and seconds > 60
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return msgspec.to_builtins(COURSES)


@pytest.fixture
def control(service: Service, monkeypatch: pytest.MonkeyPatch) -> Playing:
    """The service asks this one; the sign-ins of the tests, which no store knows, are looked at only when told."""
    monkeypatch.setattr(stream_expiry, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(watched_request, "_LOOK_SECONDS", 0.001)
    made = Playing()
    service.context.control = made
    return made


async def bounded(service: Service, **bounds: Any) -> Kept:
    """Questions with other bounds."""
    return KeptQuestions(service.context, service.what_if, WHAT_IF, QuestionBounds(**bounds))


async def ended(questions: Kept, actor: Actor, number: str) -> WhatIfStatus:
    """The last state of a question."""
    last = None
    async for each in await questions.follow(actor, number):
        last = each
    assert last is not None
    return last


async def _answered(questions: Kept, control: Playing, actor: Actor) -> str:
    control.go_on.set()
    started = await questions.start(actor, WhatIfRequest())
    assert (await ended(questions, actor, started.id)).state == DONE
    return started.id


async def test_its_states_are_followed_and_its_answer_is_the_one_that_it_would_have_had(
    service: Service, control: Playing
) -> None:
    questions = service.kept_questions
    control.progress = [WhatIfProgress(0.25, BEFORE, 1, 2), WhatIfProgress(0.75, AFTER, 2, 2)]
    started = await questions.start(ANN, WhatIfRequest(seeds=2))
    assert (started.state, started.answer) == (RUNNING, None)
    seen: list[WhatIfStatus] = []
    async for each in await questions.follow(ANN, started.id):
        assert each is not None and each.answer is None
        seen.append(each)
        if each.progress.stage == AFTER:
            control.go_on.set()
    assert seen[0].state == RUNNING and seen[-1].state == DONE
    says = [each.progress.says for each in seen]
    assert "Plays the changes, course 2 of 2." in says and says[0] == "Prepares the changes."
    assert (seen[-1].progress.fraction, seen[-1].progress.stage) == (1.0, COMPARING)
    told = await questions.status(ANN, started.id)
    at_once = await service.what_if.ask(ANN, WhatIfRequest(seeds=2))
    assert msgspec.json.decode(msgspec.json.encode(told))["answer"] == msgspec.json.decode(msgspec.json.encode(at_once))
    assert [each.id for each in (await questions.of_user(ANN)).items] == [started.id]


async def test_another_user_neither_sees_nor_cancels_it(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    started = await questions.start(ANN, WhatIfRequest())
    for other in (BOB, ROOT, msgspec.structs.replace(ANN, role="admin")):
        for call in (questions.status, questions.cancel, questions.follow):
            with pytest.raises(NotFound, match=f"There is no question {started.id} of yours"):
                await call(other, started.id)
        assert (await questions.of_user(other)).items == ()
    assert (await questions.status(ANN, started.id)).state == RUNNING


async def test_a_job_may_not_ask(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    started = await questions.start(ANN, WhatIfRequest())
    for call in (questions.status, questions.cancel, questions.follow):
        with pytest.raises(Forbidden):
            await call(JOB, started.id)
    with pytest.raises(Forbidden):
        await questions.start(JOB, WhatIfRequest())
    with pytest.raises(Forbidden):
        await questions.of_user(JOB)


async def test_cancelling_ends_what_control_does_and_frees_the_place(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    started = await questions.start(ANN, WhatIfRequest())
    with pytest.raises(Unavailable, match="ask again when it is, or cancel it"):
        await questions.start(ANN, WhatIfRequest())
    with pytest.raises(Unavailable, match="ask again when it is, or cancel it"):
        await service.what_if.ask(ANN, WhatIfRequest())
    following = asyncio.create_task(ended(questions, ANN, started.id))
    await control.begun.wait()
    await questions.cancel(ANN, started.id)
    assert control.cancelled == 1
    assert (await following).state == CANCELLED
    with pytest.raises(NotFound):
        await questions.cancel(ANN, started.id)
    again = await questions.start(ANN, WhatIfRequest())
    await questions.cancel(ANN, again.id)  # before it has begun
    await questions.start(ANN, WhatIfRequest())


async def test_it_ends_with_the_sign_in_that_asked_it(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    done = await _answered(questions, control, BOB)
    control.go_on.clear()
    control.begun.clear()
    running = await questions.start(ANN, WhatIfRequest())
    following = asyncio.create_task(ended(questions, ANN, running.id))
    await control.begun.wait()
    await service.context.streams.look()  # the store knows neither of the tokens
    assert (await following).state == CANCELLED
    assert control.cancelled == 1
    for actor, number in ((ANN, running.id), (BOB, done)):
        with pytest.raises(NotFound):
            while True:
                await questions.status(actor, number)
                await asyncio.sleep(0.001)


async def test_what_is_refused_before_it_runs_is_refused_at_once(service: Service, control: Playing) -> None:
    with pytest.raises(InvalidInput, match="draws 1 to 20 courses"):
        await service.kept_questions.start(ANN, WhatIfRequest(seeds=1000))
    assert (await service.kept_questions.of_user(ANN)).items == ()


async def test_a_refusal_is_kept_with_its_problems(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    started = await questions.start(ROOT, WhatIfRequest(documents="{kind: Queue, name: q, weigth: 2}"))
    told = await ended(questions, ROOT, started.id)
    assert told.state == FAILED and told.error is not None
    assert (told.error.status, told.error.code) == (400, "invalid-document")
    assert "weigth" in told.error.problems[0].path + told.error.problems[0].message


async def test_a_restart_of_control_is_told_in_one_sentence(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    control.error = Unavailable("no-control", "The scheduler does not answer; try again in a moment.")
    control.go_on.set()
    started = await questions.start(ANN, WhatIfRequest())
    told = await ended(questions, ANN, started.id)
    assert told.error is not None and told.error.status == 503
    assert told.error.message == "The scheduler does not answer; try again in a moment."


async def test_a_fault_is_told_without_its_words(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    control.error = ValueError("a secret")
    control.go_on.set()
    started = await questions.start(ANN, WhatIfRequest())
    told = await ended(questions, ANN, started.id)
    assert told.error is not None and told.error.code == "internal-fault" and "secret" not in told.error.message


async def test_a_user_has_a_few_and_the_oldest_answers_go(service: Service, control: Playing) -> None:
    questions = await bounded(service, of_user=2)
    others = await _answered(questions, control, BOB)
    numbers = [await _answered(questions, control, ANN) for _ in range(4)]
    assert [each.id for each in (await questions.of_user(ANN)).items] == numbers[2:]
    assert (await questions.status(BOB, others)).state == DONE


async def test_all_have_so_many_and_the_oldest_answers_go(service: Service, control: Playing) -> None:
    questions = await bounded(service, in_all=2)
    first = await _answered(questions, control, ANN)
    for actor in (BOB, ROOT):
        await _answered(questions, control, actor)
    with pytest.raises(NotFound):
        await questions.status(ANN, first)


async def test_so_many_run_at_once(service: Service, control: Playing) -> None:
    questions = await bounded(service, running=1)
    await questions.start(ANN, WhatIfRequest())
    with pytest.raises(Unavailable, match="Too many questions are being answered"):
        await questions.start(BOB, WhatIfRequest())


async def test_answers_have_a_size(service: Service, control: Playing) -> None:
    questions = await bounded(service, answer_bytes=100)
    control.go_on.set()
    started = await questions.start(ANN, WhatIfRequest())
    told = await ended(questions, ANN, started.id)
    assert told.state == FAILED and told.error is not None and told.error.code == "answer-too-large"
    size = len(msgspec.json.encode(await service.what_if.ask(ANN, WhatIfRequest())))
    for bounds in ({"bytes_of_user": 2 * size}, {"bytes_in_all": 2 * size}):
        questions = await bounded(service, **bounds)
        numbers = [await _answered(questions, control, ANN) for _ in range(3)]
        assert [each.id for each in (await questions.of_user(ANN)).items] == numbers[1:]


async def test_an_answer_is_forgotten_after_a_while(service: Service, control: Playing) -> None:
    questions = await bounded(service, seconds=0.0)
    number = await _answered(questions, control, ANN)
    with pytest.raises(NotFound, match="ended more than 0 minutes ago"):
        while True:
            await questions.status(ANN, number)
            await asyncio.sleep(0)


async def test_many_questions_that_are_begun_and_cancelled_leave_nothing(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    for _ in range(200):
        await questions.cancel(ANN, (await questions.start(ANN, WhatIfRequest())).id)
    assert questions._kept == {} and service.what_if._places._users == set()
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert "what-if" not in names


async def test_closing_the_service_ends_them(service: Service, control: Playing) -> None:
    await service.kept_questions.start(ANN, WhatIfRequest())
    await control.begun.wait()
    await service.kept_questions._close()
    assert control.cancelled == 1


async def test_a_search_tells_its_attempts_and_never_goes_back(service: Service, control: Playing) -> None:
    questions = service.kept_questions
    control.progress = [WhatIfProgress(0.5, AFTER, 1, 1)]
    started = await questions.start(
        ROOT, WhatIfRequest(goal="wait.p95(queue=default) <= 1s", vary="nodes-like=local/n1")
    )
    fractions: list[float] = []
    says: list[str] = []
    async for each in await questions.follow(ROOT, started.id):
        assert each is not None
        fractions.append(each.progress.fraction)
        says.append(each.progress.says)
        if each.progress.stage == AFTER:
            control.go_on.set()
    assert fractions == sorted(fractions)
    assert "Tries no node added (attempt 1 of at most 16), plays the changes." in says


def test_progress_has_a_sentence() -> None:
    trying = WhatIfProgress(0.3, BEFORE, 3, 10, 4, 16, "2 nodes like local/n1 added")
    assert in_words(trying).says == (
        "Tries 2 nodes like local/n1 added (attempt 4 of at most 16), plays things as they are, course 3 of 10."
    )
    assert in_words(WhatIfProgress(stage=AFTER, course=1, courses=1)).says == "Plays the changes."
