"""Cancel the work for a call to control's API when its caller disconnects."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from corral.service.interruption import unless

Answer = TypeVar("Answer")


async def while_connected(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of `work`, for a call whose body has been read; cancel it when the caller disconnects.

    Raises ClientDisconnect.
    """
    return await unless(_left(request), ClientDisconnect, work)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
