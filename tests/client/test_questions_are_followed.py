"""Both clients follow a what-if question to its answer, tell its progress, and cancel it when they are interrupted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from corral.client import AsyncClient, Client
from corral.client.operations import later as operations
from corral.kernel.errors import InvalidInput, NotFound, TooManyRequests, Unavailable
from corral.model.what_if_progress import BEFORE, WhatIfProgress
from tests.api.harness import Server, serving
from tests.api.test_questions_are_answered_later import Held
from tests.api.test_questions_are_answered_later import held as held_control
from tests.api.test_work_ends_with_its_caller import until

held = held_control


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running front."""
    with serving(tmp_path_factory.mktemp("front")) as running:
        yield running


def test_the_client_tells_the_progress_and_returns_the_answer(held: Held) -> None:
    held.control.progress = [WhatIfProgress(0.5, BEFORE, 1, 1)]
    seen: list[Any] = []

    def tell(progress: Any) -> None:
        seen.append(progress)
        if progress["stage"] == "before":
            held.go_on()

    with held.server.client("alice") as alice:
        answer = alice.follow_what_if(tell=tell, seeds=1)
        assert answer == alice.what_if()
        assert [each["state"] for each in alice.what_if_questions()["items"]] == ["done"]
    assert seen[0]["stage"] == "preparing" and {"before", "comparing"} <= {each["stage"] for each in seen}


def test_an_interrupt_cancels_the_question_on_the_server(held: Held) -> None:
    def interrupt(progress: Any) -> None:
        until(held.control.begun.is_set)
        raise KeyboardInterrupt

    with held.server.client("alice") as alice:
        with pytest.raises(KeyboardInterrupt):
            alice.follow_what_if(tell=interrupt)
        assert alice.what_if_questions()["items"] == []
    until(lambda: held.control.cancelled == 1)


async def test_a_cancelled_task_of_the_async_client_does_so_too(held: Held) -> None:
    token = await asyncio.to_thread(held.server.token, "alice")
    async with AsyncClient(held.server.url, token) as client:
        told = asyncio.Event()
        following = asyncio.create_task(client.follow_what_if(tell=lambda progress: told.set()))
        await told.wait()
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        assert (await client.what_if_questions())["items"] == []
        held.go_on()
        answer = await client.follow_what_if(horizon_seconds=7200.0)
        assert answer["horizonSeconds"] == 7200.0


def test_a_refusal_is_the_one_that_it_would_have_been_at_once(held: Held) -> None:
    with held.server.client("root") as root:
        for call in (root.what_if, root.follow_what_if):
            with pytest.raises(InvalidInput, match="unknown field") as refused:
                call(documents="{kind: Queue, name: q, weigth: 2}")
            assert refused.value.details["problems"]


def test_a_restart_of_the_server_is_told(held: Held) -> None:
    started = threading.Event()

    def lose() -> None:
        assert started.wait(60)
        until(held.control.begun.is_set)
        held.server.call(held.server.service.kept_questions._close())

    losing = threading.Thread(target=lose)
    losing.start()
    with held.server.client("alice") as alice, pytest.raises(NotFound, match="was lost with a restart of the server"):
        alice.follow_what_if(tell=lambda progress: started.set())
    losing.join()


def test_the_state_is_asked_again_while_streams_are_refused(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def refused(self: Client, call: Any, *, timeout: float | None) -> Iterator[Any]:
        calls.append(call.path)
        held.go_on()
        raise [TooManyRequests("too-many-streams", "."), Unavailable("unreachable", ".")][len(calls) % 2]

    monkeypatch.setattr(Client, "_events_of", refused)
    monkeypatch.setattr("corral.client.sync.time.sleep", lambda seconds: None)
    with held.server.client("alice") as alice:
        assert alice.follow_what_if()["seeds"] == 2


def test_a_server_that_does_not_answer_is_given_up_after_a_while(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(self: Client, call: Any, *, timeout: float | None) -> Iterator[Any]:
        raise Unavailable("unreachable", "The server does not answer.")

    monkeypatch.setattr(Client, "_events_of", unreachable)
    monkeypatch.setattr("corral.client.sync.time.sleep", lambda seconds: None)
    monkeypatch.setattr(operations, "PATIENCE", 0.0)
    with held.server.client("alice") as alice, pytest.raises(Unavailable, match="The server does not answer"):
        alice.follow_what_if()
