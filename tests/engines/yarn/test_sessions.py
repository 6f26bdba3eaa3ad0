"""What a slot says of a session: a port at which nothing listens is told apart from what a service says."""

from __future__ import annotations

import asyncio
import json

import pytest

from corral.engines.yarn.sessions import LOST, Sessions
from corral.kernel.errors import InvalidInput, Unavailable
from corral.runtime.slot_session import frame


async def test_a_refused_connection_raises_in_place_of_output() -> None:
    session = Sessions().open("a", "slot", 8080)
    await session.take_output(frame(b"r", b"111"))
    with pytest.raises(Unavailable, match=r"Nothing answers at port 8080 of the task \(Connection refused\)"):
        await anext(session.output())
    assert await session.exit_code() == LOST


@pytest.mark.parametrize(("port", "content"), [(0, b"111"), (8080, b"no"), (8080, b"11111"), (8080, b"")])
async def test_only_a_connection_is_refused_and_by_a_number(port: int, content: bytes) -> None:
    session = Sessions().open("a", "slot", port)
    with pytest.raises(InvalidInput):
        await session.take_output(frame(b"r", content))


async def test_output_is_passed_on_until_the_exit_code() -> None:
    session = Sessions().open("a", "slot", 8080)
    await session.take_output(frame(b"o", b"some") + frame(b"x", b"0"))
    assert [data async for data in session.output()] == [b"some"]
    assert await asyncio.wait_for(session.exit_code(), 60) == 0


async def test_output_for_a_client_that_has_left_is_taken_and_dropped() -> None:
    session = Sessions().open("a", "slot", 8080)
    for _ in range(64):
        await session.take_output(frame(b"o", b"some"))
    held = asyncio.create_task(session.take_output(frame(b"o", b"more") * 100 + frame(b"x", b"0")))
    await asyncio.sleep(0)
    assert not held.done(), "a client that reads slowly holds the slot"
    async with asyncio.timeout(60):
        await session.close()
        await held
        assert await session.exit_code() == 0


async def test_a_command_that_takes_no_input_is_still_ended_with_its_client() -> None:
    ordered: list[str] = []
    session = Sessions().open("a", "slot", order_end=lambda: ordered.append("end"))
    for number in range(64):
        await session.send(b"%d" % number)
    async with asyncio.timeout(60):
        await session.close()
        assert json.loads(await anext(session.input_lines())) == {"close": True}
    assert ordered == ["end"], "the line may wait behind input that the slot cannot write"
    await session.take_output(frame(b"x", b"0"))
    await session.close()
    assert ordered == ["end"]


async def test_what_was_sent_before_a_client_left_is_still_written() -> None:
    session = Sessions().open("a", "slot")
    await session.send(b"last")
    await session.close()
    lines = session.input_lines()
    assert [json.loads(await anext(lines)) for _ in range(2)] == [{"data": "bGFzdA=="}, {"close": True}]
