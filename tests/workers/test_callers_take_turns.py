"""A user with many large requests takes turns with others, and gets at most half of all places."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import TooManyRequests
from corral.workers.fair_semaphore import FairSemaphore
from corral.workers.pool import CALLER, Workers


def test_callers_take_turns_and_each_keeps_its_order() -> None:
    async def work() -> list[str]:
        turns, order = FairSemaphore(1), list[str]()
        await turns.acquire("first")

        async def one(caller: str, name: str) -> None:
            await turns.acquire(caller)
            order.append(name)
            turns.release()

        waiting = [asyncio.create_task(one("ada", f"ada {number}")) for number in range(4)]
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(one("bob", "bob 0")))
        await asyncio.sleep(0)
        turns.release()
        await asyncio.gather(*waiting)
        return order

    assert asyncio.run(work()) == ["ada 0", "bob 0", "ada 1", "ada 2", "ada 3"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12), st.integers(1, 3))
def test_no_place_is_lost_or_given_twice_whoever_leaves_while_waiting(
    asked: list[tuple[str, bool]], places: int
) -> None:
    async def work() -> None:
        turns, inside = FairSemaphore(places), 0

        async def one(caller: str) -> None:
            nonlocal inside
            await turns.acquire(caller)
            try:
                inside += 1
                assert inside <= places
                await asyncio.sleep(0)
            finally:
                inside -= 1
                turns.release()

        tasks = [asyncio.create_task(one(caller)) for caller, _ in asked]
        await asyncio.sleep(0)
        for task, (_, leaves) in zip(tasks, asked, strict=True):
            if leaves:
                task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert not any(isinstance(each, AssertionError) for each in found)
        assert inside == 0 and not turns._waiting
        async with asyncio.timeout(60):
            for _ in range(places):
                await turns.acquire("c")

    asyncio.run(work())


async def test_one_caller_has_half_of_the_places_and_others_the_rest() -> None:
    workers = Workers(size=1, waiting=3)
    CALLER.set("user ada")
    hers = [asyncio.create_task(workers.call(pow, 3, 1 << 40)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests, match="2 large requests of yours"):
        await workers.call(abs, -1)
    CALLER.set("user bob")
    his = asyncio.create_task(workers.call(abs, -1))
    await asyncio.sleep(0)
    for task in hers:
        task.cancel()
    async with asyncio.timeout(120):
        assert await his == 1
    await workers.close()
