"""A waiting job that a manager has moved starts in its new place, also after a restart.

Its priority and its user's turn do not matter.
"""

from __future__ import annotations

import pytest

from corral.control.core.queue_turns import turn_of, turns_at
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.store_writes import IntentKind
from tests.control.harness import House, short


async def order(house: House, job: JobId, place: str, before: JobId | None = None) -> None:
    data: dict[str, object] = {"place": place}
    if before is not None:
        data["before"] = before
    await house.store.add_intent(job, IntentKind.ORDER, data, actor="lead", at=house.clock.now())


async def full(house: House) -> tuple[JobId, list[JobId]]:
    """A job that holds everything, and three jobs of two users that wait behind it."""
    holder = await house.submit(short("holder", devices=4, preemptible=False))
    await house.until(holder, "running")
    waiting = []
    for name, user, priority in (("one", "ada", "prod"), ("two", "bob", "test"), ("three", "ada", "test")):
        waiting.append(await house.submit(short(name, devices=4, priority=priority, preemptible=False), user=user))
    for job in waiting:
        await house.explained(job)
    return holder, waiting


async def end(house: House, job: JobId) -> None:
    house.engine.end(next(each for each in house.engine.running if parse_attempt_id(each).job == job), 0)
    await house.until(job, "succeeded")


async def order_of_starts(house: House, holder: JobId, waiting: list[JobId]) -> list[str]:
    """The names of the waiting jobs in the order of their starts."""
    started, left, now = [], list(waiting), holder
    while left:
        await end(house, now)
        async with house.patience():
            while not (running := [job for job in left if await _runs(house, job)]):
                await house.store.wakeup.wait(0.05)
        (now,) = running
        left.remove(now)
        record = await house.store.find_job(now)
        assert record is not None
        started.append(record.name)
    return started


async def _runs(house: House, job: JobId) -> bool:
    record = await house.store.find_job(job)
    return record is not None and record.phase == "running"


async def turned(house: House, job: JobId) -> None:
    await house.when(job, lambda record: record.run.turn != 0)


@pytest.mark.parametrize(
    ("moves", "starts"),
    [
        ([], ["one", "two", "three"]),
        ([("three", "first", "")], ["three", "one", "two"]),
        ([("one", "last", "")], ["two", "three", "one"]),
        ([("two", "first", ""), ("three", "before", "two")], ["three", "two", "one"]),
        ([("three", "first", ""), ("two", "first", ""), ("one", "before", "three")], ["two", "one", "three"]),
    ],
)
async def test_jobs_start_in_the_order_that_a_manager_says(
    house: House, moves: list[tuple[str, str, str]], starts: list[str]
) -> None:
    await house.begin()
    holder, waiting = await full(house)
    named = dict(zip(("one", "two", "three"), waiting, strict=True))
    for job, place, before in moves:
        await order(house, named[job], place, named[before] if before else None)
        await turned(house, named[job])
    assert await order_of_starts(house, holder, waiting) == starts


async def test_an_opportunist_that_was_moved_first_is_the_first_of_its_kind(house: House) -> None:
    await house.begin()
    holder, waiting = await full(house)
    for name in ("guest", "moved"):
        waiting.append(await house.submit(short(name, devices=4, priority="oppo"), user="cyd"))
        await house.explained(waiting[-1])
    await order(house, waiting[-1], "first")
    await turned(house, waiting[-1])
    assert await order_of_starts(house, holder, waiting) == ["one", "two", "three", "moved", "guest"]


async def test_the_order_outlives_control_and_can_be_taken_back(house: House) -> None:
    await house.begin()
    holder, waiting = await full(house)
    await order(house, waiting[2], "first")
    await order(house, waiting[1], "first")
    await turned(house, waiting[1])
    await order(house, waiting[1], "own")
    await house.when(waiting[1], lambda record: record.run.turn == 0)
    await house.abandon()
    await house.begin()
    assert await order_of_starts(house, holder, waiting) == ["three", "one", "two"]


def test_turns_leave_room_between() -> None:
    assert turn_of("first", [], None) == 1
    assert turn_of("last", [2.0, -3.0], None) == -4
    assert turn_of("before", [2.0, 1.0], 1.0) == 1.5
    assert turn_of("before", [1.0], 1.0) == 2.0
    assert turn_of("own", [5.0], None) == 0


def test_any_number_of_jobs_come_right_before_the_same_one() -> None:
    """After about fifty halvings the midpoint of two floats equals one of them."""
    turns = {JobId("x"): 0.0, JobId("above"): 1.0}
    for number in range(200):
        turn, moved = turns_at("before", turns, turns[JobId("x")])
        turns |= moved | {JobId(f"j{number}"): turn}
        assert turns[JobId("x")] < turn and sorted(turns.values())[1] == turn
        assert len(set(turns.values())) == len(turns)
