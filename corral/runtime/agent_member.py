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
    """One joining agent; it runs until the leader says that all is done, or a signal ends the task.

    With `leave_seconds` a first SIGTERM takes the task off the leader's list of hosts, and commands that run have so
    long to end by themselves. In that time an elastic launcher makes its ring smaller; a process that is killed in the
    middle of an exchange can end all others with it.
    """

    def __init__(self, name: str, slots: int, host: str, port: int, secret: str, leave_seconds: float = 0) -> None:
        self._name, self._slots = name, slots
        self._host, self._port, self._secret = host, port, secret
        self._leave_seconds = leave_seconds
        self._commands = Commands()
        self._jobs: set[asyncio.Task[None]] = set()
        self._channel: Channel | None = None
        self._leaving = self._ending = False

    async def run(self) -> int:
        """Join, serve, and join again if the leader comes back; the exit code of the task."""
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        assert me is not None
        loop.add_signal_handler(signal.SIGTERM, self._asked_to_end, me)
        try:
            while True:
                channel = await self._join(loop.time() + JOIN_SECONDS)
                if channel is None:
                    print(f"corral agent: the leading task does not answer at {self._host}:{self._port}", flush=True)
                    return 1
                if await self._serve(channel):
                    self._ending = True
                    return 128 + signal.SIGTERM if self._leaving else 0
        except asyncio.CancelledError:
            return 128 + signal.SIGTERM
        finally:
            await self._commands.end_all()

    def _asked_to_end(self, me: asyncio.Task[int]) -> None:
        """Leave between two steps at the first SIGTERM; end at the second, or where nothing is to be waited for."""
        self._leaving = True
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end, me)
        if self._leave_seconds <= 0 or self._channel is None or self._commands.none_run:
            self._end(me)
        else:
            self._begin(self._leave(self._channel, me))

    def _end(self, me: asyncio.Task[int]) -> None:
        if not self._ending:  # a second cancellation would break the end of the commands off
            self._ending = True
            me.cancel()

    async def _leave(self, channel: Channel, me: asyncio.Task[int]) -> None:
        with suppress(BrokenChannel, TimeoutError):
            async with asyncio.timeout(self._leave_seconds):
                await channel.send({"leaving": True})
                await self._commands.all_ended()
        self._end(me)

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
        self._channel = channel
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
            self._channel = None
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
