"""A process whose descriptors were closed by mistake cannot connect any more; it reports that and restarts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest

from corral.engines.kubernetes.api.resources import PODS, Call
from corral.kernel.errors import Unavailable
from tests.engines.kubernetes.faulty_server import json, silent
from tests.engines.kubernetes.test_transport import reaching

LIST = Call("list", PODS, "x")


async def test_a_file_closed_under_a_connection_is_no_fault_of_later_calls_and_ends_the_process(tmp_path: Path) -> None:
    async with reaching(tmp_path, silent, json({})) as (transport, server):
        sound = asyncio.create_task(transport.stays_sound())
        first = asyncio.create_task(transport.ask(LIST, deadline=60))
        while not server.seen:
            await asyncio.sleep(0.005)
        request = server.seen[0]
        assert request.transport is not None
        number = _descriptor_bound_to(request.transport.get_extra_info("peername"))
        below = [os.open(os.devnull, os.O_RDONLY)]
        while below[-1] < number:  # so that the next connection gets no lower number
            below.append(os.open(os.devnull, os.O_RDONLY))
        kept = os.dup(number)
        os.close(number)
        try:
            with pytest.raises(Unavailable, match="this process can make no connection any more") as caught:
                await transport.ask(LIST)
            assert caught.value.details["sent"] is False
            with pytest.raises(RuntimeError, match="has the number of one that was not closed"):
                await sound
        finally:
            os.dup2(kept, number)
            for each in (kept, *below):
                os.close(each)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)


def _descriptor_bound_to(address: tuple[str, int]) -> int:
    """The descriptor of this process's socket that is bound to this address."""
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(each.name))) as found:
            if found.getsockname() == address:
                return int(each.name)
    raise AssertionError(f"no socket is bound to {address}")
