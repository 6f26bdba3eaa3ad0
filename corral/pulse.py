"""The heartbeat of front and control to their supervisor, which shows that their event loop runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from typing import Any

from corral.rotation import Rotation
from corral.supervisor import PULSE_FD, PULSE_SECONDS


async def with_pulse(work: Coroutine[Any, Any, None], log: Rotation) -> None:
    """Run `work`, with heartbeats to the supervisor and rotation of the log that the supervisor opened."""
    handle = int(os.environ.pop(PULSE_FD, "-1"))
    if handle < 0:  # not supervised, and the log is the caller's
        return await work
    os.set_inheritable(handle, False)  # control's tasks must not inherit it

    async def beat() -> None:
        while True:
            with contextlib.suppress(OSError):  # the pipe is full: the supervisor itself is delayed
                os.write(handle, b".")
            log.look()
            await asyncio.sleep(PULSE_SECONDS)

    pulse = asyncio.create_task(beat())
    try:
        await work
    finally:
        pulse.cancel()
