"""Run the parts of a server process until a signal ends it, and report readiness to the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from corral.kernel.errors import CorralError
from corral.kernel.garbage import give_back
from corral.supervisor import READY_FD

_GIVE_BACK_SECONDS: Final = 2.0
"""Seconds from the readiness of a process until it releases the memory of its start."""


def new_loop() -> asyncio.AbstractEventLoop:
    """Create uvloop's event loop, which saves a third of the time per request, or asyncio's if it is not installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def refusal(error: BaseException) -> CorralError | None:
    """The CorralError that a failure consists of; None if it contains any other exception."""
    if isinstance(error, BaseExceptionGroup):
        inside = [refusal(each) for each in error.exceptions]
        return inside[0] if all(inside) else None
    return error if isinstance(error, CorralError) else None


async def until_told(*running: Coroutine[Any, Any, None]) -> None:
    """Run all coroutines until SIGTERM or SIGINT; the first failure ends all and is raised."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in running]
        await ending.wait()
        for task in tasks:
            task.cancel()


async def once(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` once `event` is set."""
    try:
        await event.wait()
        await work
    finally:
        work.close()


async def when(event: asyncio.Event, act: Callable[[], None]) -> None:
    """Call `act` once `event` is set."""
    await event.wait()
    act()


def begin(facts: Mapping[str, Any]) -> None:
    """Report readiness, and a moment later release memory that only the start needed.

    That takes some 30 ms, in which the first calls to the server would wait.
    """
    tell_ready(facts)
    asyncio.get_running_loop().call_later(_GIVE_BACK_SECONDS, give_back)


def tell_ready(facts: Mapping[str, Any]) -> None:
    """Send the supervisor the line of facts that it waits for; does nothing without a supervisor."""
    handle = os.environ.pop(READY_FD, "")
    if handle:
        with contextlib.suppress(BrokenPipeError), os.fdopen(int(handle), "wb") as pipe:
            pipe.write(json.dumps(facts).encode() + b"\n")
