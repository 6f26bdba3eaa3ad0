"""Work for a caller ends when the caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

Answer = TypeVar("Answer")


async def unless_left(
    request: Request, work: Coroutine[Any, Any, Answer], received: asyncio.Event | None = None
) -> Answer:
    """What `work` gives; it is cancelled when the client leaves after its body was received (now, if unsaid).

    Raises ClientDisconnect.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request, received))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request, received: asyncio.Event | None) -> None:
    if received is not None:
        await received.wait()
    while (await request.receive())["type"] != "http.disconnect":
        pass
