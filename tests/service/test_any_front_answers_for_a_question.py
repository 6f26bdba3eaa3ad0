"""Two fronts on one PostgreSQL store: each tells of the questions of both, follows them, lists them and cancels them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import NotFound, Unavailable
from corral.model.accounts import User
from corral.model.what_if import WhatIfRequest
from corral.model.what_if_progress import BEFORE, CANCELLED, DONE, RUNNING, WhatIfProgress
from corral.service import stream_expiry
from corral.service.context import Context
from corral.service.service import Service
from corral.service.what_if import shared_questions, watched_request
from corral.store import open_store
from tests.service.conftest import ANN, BOB, KEY, ROOT, START
from tests.service.test_questions_are_answered_later import Playing
from tests.testbeds.postgresql import PostgresServer
from tests.waiting import pause

pytestmark = pytest.mark.postgres


class Front(NamedTuple):
    """One front with the control that it asks."""

    service: Service
    control: Playing


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_store()
    yield url
    postgres.drop(url)


@pytest.fixture
async def fronts(url: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Front, Front]]:
    """Two fronts, which look often."""
    monkeypatch.setattr(stream_expiry, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(watched_request, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(shared_questions, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(shared_questions, "_TELL_SECONDS", 0.05)
    made = []
    for _ in range(2):
        store, control = await open_store(url, clock=clock), Playing()
        made.append(Front(Service(Context(store, key=KEY, clock=clock, control=control)), control))
    for name, role in (("ann", "user"), ("bob", "user"), ("root", "admin")):
        await made[0].service.context.store.add_user(User(name, role, created_at=START))
    yield made[0], made[1]
    for front in made:
        await front.service.close()
        await front.service.context.store.close()


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a call says so."""
    begun = time.monotonic()
    while not await found():
        await asyncio.sleep(pause(begun))


async def test_the_other_front_follows_it_and_has_its_answer(fronts: tuple[Front, Front]) -> None:
    one, other = fronts
    one.control.progress = [WhatIfProgress(0.25, BEFORE, 1, 2)]
    asked = await one.service.kept_questions.start(ANN, WhatIfRequest(seeds=2))
    assert (await other.service.kept_questions.status(ANN, asked.id)).state == RUNNING
    states = []
    async with asyncio.timeout(120):
        async for each in await other.service.kept_questions.follow(ANN, asked.id):
            assert each is not None and each.answer is None and each.id == asked.id
            states.append(each)
            if each.progress.stage == BEFORE:
                one.control.go_on.set()
    assert states[0].state == RUNNING and states[-1].state == DONE
    here, there = [await each.service.kept_questions.status(ANN, asked.id) for each in fronts]
    assert there.answer is not None and msgspec.json.encode(there) == msgspec.json.encode(here)
    for front in fronts:
        listed = (await front.service.kept_questions.of_user(ANN)).items
        assert [(each.id, each.state, each.answer) for each in listed] == [(asked.id, DONE, None)]


async def test_it_belongs_to_its_user_and_its_kind_at_each_front(fronts: tuple[Front, Front]) -> None:
    one, other = fronts
    asked = await one.service.kept_questions.start(ROOT, WhatIfRequest())
    for front in fronts:
        assert (await front.service.kept_questions.of_user(BOB)).items == ()
        assert (await front.service.policy_shadows.of_user(ROOT)).items == ()
        for call in (front.service.kept_questions.status, front.service.kept_questions.cancel):
            with pytest.raises(NotFound, match="There is no question"):
                await call(BOB, asked.id)
        with pytest.raises(NotFound, match="There is no question"):
            await front.service.policy_shadows.status(ROOT, asked.id)
    assert not one.control.cancelled and not other.control.cancelled


async def test_the_other_front_cancels_it_and_its_work_ends(fronts: tuple[Front, Front]) -> None:
    one, other = fronts
    asked = await one.service.kept_questions.start(ANN, WhatIfRequest())
    await one.control.begun.wait()
    following = await one.service.kept_questions.follow(ANN, asked.id)
    await other.service.kept_questions.cancel(ANN, asked.id)
    assert one.control.cancelled == 1
    assert [each.state for each in [state async for state in following] if each is not None][-1] == CANCELLED
    for front in fronts:
        with pytest.raises(NotFound, match="There is no question"):
            await front.service.kept_questions.status(ANN, asked.id)
    again = await one.service.kept_questions.start(ANN, WhatIfRequest())  # the place of its user is free
    await one.service.kept_questions.cancel(ANN, again.id)
    assert (await other.service.kept_questions.of_user(ANN)).items == ()


async def test_an_answer_that_the_other_front_forgets_is_forgotten_by_both(fronts: tuple[Front, Front]) -> None:
    one, other = fronts
    one.control.go_on.set()
    asked = await one.service.kept_questions.start(ANN, WhatIfRequest())

    async def is_done_there() -> bool:
        return (await other.service.kept_questions.status(ANN, asked.id)).state == DONE

    await until(is_done_there)
    await other.service.kept_questions.cancel(ANN, asked.id)
    for front in fronts:
        with pytest.raises(NotFound, match="There is no question"):
            await front.service.kept_questions.status(ANN, asked.id)


async def test_a_question_whose_front_was_lost_is_not_there_for_ever(
    fronts: tuple[Front, Front], clock: VirtualClock
) -> None:
    one, other = fronts
    asked = await one.service.kept_questions.start(ANN, WhatIfRequest())
    await one.service.context.store.close()  # nothing more is told, as after a crash

    async def is_known() -> bool:
        return bool((await other.service.kept_questions.of_user(ANN)).items)

    assert await is_known()
    clock.advance(120.0)
    assert not await is_known()
    with pytest.raises(NotFound, match="lost with a restart of the server"):
        await other.service.kept_questions.status(ANN, asked.id)


async def test_without_a_store_no_question_begins(fronts: tuple[Front, Front]) -> None:
    one, _ = fronts
    await one.service.context.store.close()
    for _ in range(2):  # the place of its user is free again
        with pytest.raises(Unavailable):
            await one.service.kept_questions.start(ANN, WhatIfRequest())
