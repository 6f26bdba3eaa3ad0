"""The pulse that front and control give their supervisor as long as their event loop turns."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from typing import Any

from corral.rotation import Rotation
from corral.supervisor import PULSE_FD, PULSE_SECONDS


async def with_pulse(work: Coroutine[Any, Any, None], log: Rotation) -> None:
    """Do the work; meanwhile let the supervisor feel that the event loop turns, and rotate the log that it set up."""
    handle = int(os.environ.pop(PULSE_FD, "-1"))
    if handle < 0:  # it is not supervised, and its log is its caller's
        return await work
    os.set_inheritable(handle, False)  # no task of control's may hold it

    async def beat() -> None:
        while True:
            with contextlib.suppress(OSError):  # the pipe is full: the supervisor itself is held up
                os.write(handle, b".")
            log.look()
            await asyncio.sleep(PULSE_SECONDS)

    pulse = asyncio.create_task(beat())
    try:
        await work
    finally:
        pulse.cancel()
