"""Cancel work when something else is over first, such as the connection of its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


async def unless(over: Coroutine[Any, Any, None], error: type[Exception], work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of `work`; if `over` returns first, cancel it and raise `error`. Both have ended afterwards."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(over)
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise error
        return await working
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
