"""Have control answer a question that takes long, and look at its progress meanwhile."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.kernel.errors import CorralError
from corral.model.what_if_progress import WhatIfProgress
from corral.service.control_client import ControlClient

TURN_SECONDS: Final = 240.0
"""Seconds that a question waits for its turn at control when nobody holds a connection for it."""
_LOOK_SECONDS: Final = 0.4
"""Seconds between two looks at the progress."""


async def watched_request(
    control: ControlClient, path: str, body: Any, told: Callable[[WhatIfProgress], None], *, seconds: float
) -> Any:
    """Control's answer to a question, which takes at most `seconds` once it is its turn.

    `told` hears again and again how far it is. Control ends its work when this is cancelled. Raises what control answers.
    """
    number = secrets.token_hex(16)
    looking = asyncio.create_task(_look(control, f"{path}/{number}/progress", told))
    try:
        asked = f"{path}?number={number}&patience={TURN_SECONDS:g}"
        return await control.request(asked, body, seconds=TURN_SECONDS + seconds)
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _look(control: ControlClient, path: str, told: Callable[[WhatIfProgress], None]) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        try:
            found = await control.request(path)
        except CorralError:  # the question itself is told why
            continue
        if found is not None:
            told(msgspec.convert(found, WhatIfProgress))
