"""A reader whose socket accepts everything at once does not starve the others."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from corral.api.log_reader import LogSource, follow_source, read_source


class Endless:
    """A log of which every piece is available at once."""

    attempt = stream = "x"

    async def size(self) -> int:
        return 1 << 40

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        return offset, bytes(limit)

    async def tail(self, lines: int) -> int:
        return 0

    async def wait(self, offset: int, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        return


Read = Callable[[LogSource], AsyncIterator[bytes]]


@pytest.mark.parametrize(
    "read",
    [lambda source: read_source(source, 0, 1 << 40), lambda source: follow_source(source, 0)],
    ids=["read", "follow"],
)
async def test_between_two_pieces_of_a_log_everybody_else_has_a_turn(read: Read) -> None:
    pieces, turns = 0, list[int]()

    async def reads() -> None:
        nonlocal pieces
        async for _ in read(Endless()):
            pieces += 1

    async def other() -> None:
        for _ in range(20):
            turns.append(pieces)
            await asyncio.sleep(0)

    reader = asyncio.create_task(reads())
    await other()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 1 and pieces > 10
