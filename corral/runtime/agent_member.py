"""The joining agent: runs commands of the leading agent in its task."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Any

from corral.runtime.agent_channel import BrokenChannel, Channel, connect
from corral.runtime.agent_commands import Commands

JOIN_SECONDS = 120.0
"""Seconds for which the leading task may be away before the member gives up."""
_RETRY_SECONDS = 0.2


class Member:
    """One joining agent; it runs until the leader says that all is done, or a signal ends the task."""

    def __init__(self, name: str, slots: int, host: str, port: int, secret: str) -> None:
        self._name, self._slots = name, slots
        self._host, self._port, self._secret = host, port, secret
        self._commands = Commands()
        self._jobs: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Join, serve, and join again if the leader comes back; the exit code of the task."""
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        assert me is not None
        loop.add_signal_handler(signal.SIGTERM, me.cancel)
        try:
            while True:
                channel = await self._join(loop.time() + JOIN_SECONDS)
                if channel is None:
                    print(f"corral agent: the leading task does not answer at {self._host}:{self._port}", flush=True)
                    return 1
                if await self._serve(channel):
                    return 0
        except asyncio.CancelledError:
            return 128 + signal.SIGTERM
        finally:
            await self._commands.end_all()

    async def _join(self, deadline: float) -> Channel | None:
        while asyncio.get_running_loop().time() < deadline:
            with suppress(BrokenChannel):
                channel = await connect(self._host, self._port, self._secret)
                await channel.send({"name": self._name, "slots": self._slots})
                return channel
            await asyncio.sleep(_RETRY_SECONDS)
        return None

    async def _serve(self, channel: Channel) -> bool:
        """Carry out the leader's orders until the connection ends; whether the leader ended it with `leave`."""
        try:
            while True:
                order = await channel.receive()
                if order.get("do") == "leave":
                    return True
                self._begin(self._obey(channel, order))
        except BrokenChannel:
            await self._commands.end_all()
            return False
        finally:
            channel.close()

    async def _obey(self, channel: Channel, order: dict[str, Any]) -> None:
        number = int(order.get("number", 0))
        if order.get("do") == "end":
            await self._commands.end(number)
        elif order.get("do") == "run":
            code = await self._commands.run(number, str(order.get("command", "")))
            with suppress(BrokenChannel):  # a leader that is gone needs no answer
                await channel.send({"number": number, "exit": code})

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
