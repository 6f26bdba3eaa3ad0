"""Run what one process of the server does until it is told to end, and say when it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from corral.kernel.errors import CorralError
from corral.kernel.garbage import give_back
from corral.supervisor import READY_FD


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which spends a third less on each request; asyncio's own where it is not installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def refusal(error: BaseException) -> CorralError | None:
    """The refusal that a failure consists of; None when there is anything else in it."""
    if isinstance(error, BaseExceptionGroup):
        inside = [refusal(each) for each in error.exceptions]
        return inside[0] if all(inside) else None
    return error if isinstance(error, CorralError) else None


async def until_told(*running: Coroutine[Any, Any, None]) -> None:
    """Run everything until SIGTERM or SIGINT; the first failure ends all and is raised."""
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
    """Do work from then on."""
    try:
        await event.wait()
        await work
    finally:
        work.close()


async def when(event: asyncio.Event, act: Callable[[], None]) -> None:
    """Do something once, from then on."""
    await event.wait()
    act()


def begin(facts: Mapping[str, Any]) -> None:
    """Say that all is ready, and let go of what only the start needed."""
    tell_ready(facts)
    give_back()


def tell_ready(facts: Mapping[str, Any]) -> None:
    """Give the supervisor the one line it waits for; nothing without a supervisor."""
    handle = os.environ.pop(READY_FD, "")
    if handle:
        with contextlib.suppress(BrokenPipeError), os.fdopen(int(handle), "wb") as pipe:
            pipe.write(json.dumps(facts).encode() + b"\n")
