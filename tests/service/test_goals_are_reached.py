"""The least that reaches a goal is found by a bounded search, and refused where the asker may not ask."""

from __future__ import annotations

import asyncio
from math import ceil, log2
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from corral.model.what_if import MOST_TRIES, Course, Courses, Known, Question, QueueCourse, WhatIfAnswer, WhatIfRequest
from corral.service.service import Service
from corral.service.what_if import reaching
from corral.service.what_if.goal_search import Found, Least, least
from corral.service.what_if.goals import outcome_of, parse_goal, parse_vary
from tests.examples import examples
from tests.service.conftest import BOB, ROOT, FakeControl

RESEARCH = "{kind: Queue, name: research, deserved: {devices: 4}}"


# ---- the search


@given(st.integers(0, 1200), st.integers(0, 50), st.integers(1, 1000), st.integers(1, 40))
@settings(max_examples=examples(300))
def test_the_least_value_is_found_in_a_bounded_number_of_tries(goal: int, first: int, room: int, tries: int) -> None:
    most, asked = first + room, []

    async def attempt(value: int) -> Found:
        asked.append(value)
        return Found.HELD if value >= goal else Found.MISSED

    found = asyncio.run(least(attempt, first, most, tries, lambda: True))
    assert len(asked) <= tries and len(set(asked)) == len(asked) and all(first <= each <= most for each in asked)
    if found.complete:
        assert found.value == (None if goal > most else max(goal, first))
    else:
        assert len(asked) == tries and (found.value is None or found.value >= max(goal, first))
    if tries >= 2 * (ceil(log2(room + 1)) + 2):
        assert found.complete


@given(st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=examples(100))
def test_what_is_refused_bounds_the_search(goal: int, allowed: int) -> None:
    async def attempt(value: int) -> Found:
        return Found.REFUSED if value > allowed else Found.HELD if value >= goal else Found.MISSED

    found = asyncio.run(least(attempt, 0, 60, 40, lambda: True))
    assert found == Least(goal if goal <= allowed else None, True)


def test_a_search_ends_when_time_is_over_or_nobody_answers() -> None:
    async def unknown(value: int) -> Found:
        return Found.MISSED if value < 4 else Found.UNKNOWN

    assert asyncio.run(least(unknown, 0, 60, 40, lambda: True)) == Least(None, False)
    assert asyncio.run(least(unknown, 0, 60, 40, lambda: False)) == Least(None, False)


# ---- goals


def course(waits: list[float], *, waiting: int = 0, used: float = 4.0, preempted: int = 0) -> Course:
    research = QueueCourse(waits=waits, waiting=waiting, used=used, preempted=preempted)
    return Course({}, {"research": research, "vision": QueueCourse(used=1.0)}, Known(), [0.0], [5.0], 8, [0])


@pytest.mark.parametrize(
    ("goal", "left", "held"),
    [
        ("wait.p50(queue=research) <= 1h", 10.0, True),
        ("wait.max(queue=research) <= 30d", float("inf"), False),
        ("wait.p50(queue=research) <= 0.2 * base", 10.0, True),
        ("utilisation >= 60%", 5.0 / 8.0, True),
        ("utilisation(queue=research) >= 60%", 0.5, False),
        ("preemptions(queue=research) <= 2", 1.5, True),
    ],
)
def test_a_goal_is_measured_on_the_courses_of_all_seeds(goal: str, left: float, held: bool) -> None:
    after = [course([0.0, 10.0, 20.0], waiting=1, preempted=1), course([10.0], preempted=2)]
    parsed = parse_goal(goal, ["research", "vision"], all_queues=True)
    outcome = outcome_of(parsed, [course([100.0])], after)
    assert (outcome.left, outcome.held) == (left, held)


def test_a_goal_about_nobody_is_refused() -> None:
    goal = parse_goal("wait.p95(queue=vision) <= 1h", ["vision"], all_queues=True)
    with pytest.raises(InvalidInput, match="No job starts or waits until the horizon"):
        outcome_of(goal, [course([])], [course([])])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nodes=4", "vary is nodes-like=NODE or queue=NAME:FIELD"),
        ("queue=research", "vary is nodes-like=NODE or queue=NAME:FIELD"),
        ("queue=research:weight", r"varies an amount of devices, such as weight\.devices"),
        ("nodes-like=", "vary is nodes-like"),
    ],
)
def test_what_cannot_be_varied_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        parse_vary(text)


# ---- the service


class Yielding(FakeControl):
    """A control whose research jobs wait less the more nodes are added or the more the queue deserves."""

    def __init__(self) -> None:
        super().__init__()
        self.answers["/configuration/check"] = []
        self.asked: list[int] = []
        self.fails_at = 10**9

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        if path != "/what-if":
            return await super().request(path, body)
        question = msgspec.convert(body, Question)
        value = sum(each.count for each in question.add_nodes)
        for document in question.documents or ():
            if document["kind"] == "Queue" and document["name"] == "research":
                value = int(document["deserved"]["devices"])
        self.asked.append(value)
        if value >= self.fails_at:
            raise Unavailable("question-too-long", "The question was not answered in 60 seconds.", retry_after=60)
        before = course([7200.0])
        return msgspec.to_builtins(Courses(1e9, 7, (), (before,), (course([7200.0 / (1 + value)]),)))


@pytest.fixture
async def control(service: Service) -> Yielding:
    """The service asks this one; it has the queue research."""
    made = Yielding()
    service.context.control = made
    await service.configuration.apply(ROOT, RESEARCH)
    return made


async def asked(service: Service, goal: str, vary: str, actor: Any = ROOT, **more: Any) -> WhatIfAnswer:
    return await service.what_if.ask(actor, WhatIfRequest(goal=goal, vary=vary, **more))


async def test_the_least_nodes_are_found_and_the_answer_is_about_them(service: Service, control: Yielding) -> None:
    answer = await asked(service, "wait.p95(queue=research) <= 20m", "nodes-like=local/n1")
    assert control.asked == [0, 1, 2, 4, 8, 6, 5]
    goal = answer.goal
    assert goal is not None and (goal.reached, goal.least, goal.complete, goal.unit) == (True, 5, True, "seconds")
    assert goal.says == "The least that reaches it: 5 nodes like local/n1 added (20m)."
    assert [(each.value, each.held) for each in goal.tries][:3] == [(0, False), (1, False), (2, False)]
    assert answer.changes == ("5 nodes like local/n1 added",)
    assert answer.queues[0].after.wait_p95 == 1200.0


async def test_a_quota_is_raised_from_what_it_is(service: Service, control: Yielding) -> None:
    answer = await asked(service, "wait.p95(queue=research) <= 0.15 * base", "queue=research:deserved.devices")
    assert control.asked == [4, 5, 6]
    assert answer.goal is not None and answer.goal.least == 6
    assert answer.goal.says == "The least that reaches it: deserved.devices 6 in queue research (17m9s)."


async def test_what_cannot_be_reached_is_said_with_the_most_that_was_tried(service: Service, control: Yielding) -> None:
    answer = await asked(service, "wait.p95(queue=research) <= 1m", "queue=research:deserved.devices")
    assert answer.goal is not None and not answer.goal.reached and answer.goal.least is None
    assert answer.goal.says == "It cannot be reached; deserved.devices 8 in queue research gives 13m20s."
    assert answer.changes == ("deserved.devices 8 in queue research",)


async def test_a_search_that_control_leaves_alone_ends_with_what_it_has(service: Service, control: Yielding) -> None:
    control.fails_at = 5
    answer = await asked(service, "wait.p95(queue=research) <= 10m", "nodes-like=local/n1")
    assert answer.goal is not None and not answer.goal.complete
    assert answer.goal.says == "It was not reached in 4 attempts; 4 nodes like local/n1 added gives 24m."
    control.fails_at = 0
    with pytest.raises(Unavailable, match="was not answered in 60 seconds"):
        await asked(service, "wait.p95(queue=research) <= 10m", "nodes-like=local/n1")


async def test_a_search_has_an_end(service: Service, control: Yielding, monkeypatch: pytest.MonkeyPatch) -> None:
    await asked(service, "wait.p95(queue=research) < 8s", "nodes-like=local/n1")
    assert len(control.asked) == MOST_TRIES
    control.asked.clear()
    monkeypatch.setattr(reaching, "SECONDS", 0.0)
    answer = await asked(service, "wait.p95(queue=research) <= 10m", "nodes-like=local/n1")
    assert answer.goal is not None and control.asked == [0] and not answer.goal.complete


async def test_values_that_documents_refuse_bound_the_search(service: Service, control: Yielding) -> None:
    ask = control.request

    async def strict(path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        if path == "/what-if" and any(
            int(each.get("deserved", {}).get("devices", 0)) > 5 for each in body["documents"] or ()
        ):
            raise Conflict("documents-contradict", "research deserves more than there is.")
        return await ask(path, body, seconds=seconds)

    control.request = strict  # type: ignore[method-assign]
    answer = await asked(service, "wait.p95(queue=research) <= 1m", "queue=research:deserved.devices")
    assert answer.goal is not None and answer.goal.says == (
        "It cannot be reached; deserved.devices 5 in queue research gives 20m; "
        "6 is refused: research deserves more than there is."
    )


@pytest.mark.parametrize(
    ("goal", "vary", "kind", "reason"),
    [
        ("wait.p95 <= 1h", "", InvalidInput, "A goal needs something to vary"),
        ("", "nodes-like=n", InvalidInput, "something to vary needs a goal"),
        ("wait.p95(queue=reserch) <= 1h", "nodes-like=n", InvalidInput, 'no queue reserch; did you mean "research"'),
        ("run.p95(queue=research) <= 1h", "nodes-like=n", InvalidInput, "cannot tell run, only wait, utilisation"),
        ("wait.p95(user=ann) <= 1h", "nodes-like=n", InvalidInput, "cannot tell wait by user, only by queue"),
        ("preemptions.max <= 1", "nodes-like=n", InvalidInput, r"write preemptions\.sum"),
        ("wait.p95 <= 1h", "queue=reserch:deserved.devices", NotFound, "There is no queue reserch"),
        ("wait.p95 <= 1h", "queue=research:limit.devices", InvalidInput, r"has no limit\.devices that could be raised"),
    ],
)
async def test_goals_that_cannot_be_asked_are_refused(
    service: Service, control: Yielding, goal: str, vary: str, kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        await asked(service, goal, vary)
    assert control.asked == []


async def test_ordinary_users_have_goals_for_their_own_queues(service: Service, control: Yielding) -> None:
    await service.configuration.apply(ROOT, "{kind: Queue, name: closed, membersOnly: true}")
    with pytest.raises(InvalidInput, match="has no queue closed"):
        await asked(service, "wait.p95(queue=closed) <= 1h", "nodes-like=n", BOB)
    with pytest.raises(InvalidInput, match="Name a queue that you may use"):
        await asked(service, "wait.p95 <= 1h", "nodes-like=n", BOB)
    with pytest.raises(Forbidden):
        await asked(service, "wait.p95(queue=research) <= 1h", "queue=closed:deserved.devices", BOB)
    answer = await asked(service, "wait.p95(queue=research) <= 1h", "nodes-like=n", BOB)
    assert answer.goal is not None and answer.goal.least == 1
