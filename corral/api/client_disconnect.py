"""Cancel the work for a request when its client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from corral.service.interruption import unless

Answer = TypeVar("Answer")


async def cancel_on_disconnect(
    request: Request, work: Coroutine[Any, Any, Answer], received: asyncio.Event | None = None
) -> Answer:
    """Return the result of `work`; cancel it when the client disconnects.

    A disconnect counts after `received` is set (at once without it), because the body is read from the same channel.
    Raises ClientDisconnect.
    """
    return await unless(_left(request, received), ClientDisconnect, work)


async def _left(request: Request, received: asyncio.Event | None) -> None:
    if received is not None:
        await received.wait()
    while (await request.receive())["type"] != "http.disconnect":
        pass
