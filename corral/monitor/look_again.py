"""The loop of what watches beside control: look, rest, and look again, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from corral.kernel.errors import CorralError

log = structlog.get_logger()

_LONGEST: Final = 500


async def look_again(
    ready: asyncio.Event, look: Callable[[], Awaitable[object]], rest: Callable[[], float], trouble: str
) -> None:
    """Look from when control leads until cancelled, and rest for `rest()` seconds after each look.

    No fault of a look ends the loop: it is logged as `trouble`, and again only when another one comes.
    """
    await ready.wait()
    said = ""
    while True:
        try:
            await look()
            said = ""
        except Exception as error:  # what only watches must never end the scheduler
            why = error.message if isinstance(error, CorralError) else repr(error)
            if why != said:
                log.warning(trouble, error=why[:_LONGEST])
            said = why
        await asyncio.sleep(rest())
