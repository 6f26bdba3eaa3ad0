"""The leading agent: runs the launcher, and passes its remote commands to the agents of other tasks.

It waits for the members, makes a folder with `ssh`, `rsh` and `hosts` programs and a host file, runs the launcher
there, and tells the members to leave when it has ended.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import shlex
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corral.runtime.agent import UNREACHABLE
from corral.runtime.agent_channel import MAX_LINE, BrokenChannel, Channel, accept
from corral.runtime.agent_commands import Command, Commands
from corral.runtime.agent_hosts import Hosts

WAIT_SECONDS = 600.0
"""Seconds within which all members must join."""
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_BARE = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_SIOCGIFADDR = 0x8915
_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class _Joined:
    channel: Channel
    answers: dict[int, asyncio.Future[int]] = field(default_factory=dict)


class Leader:
    """The agent of the leading task: knows the members, and passes commands to them."""

    def __init__(self, name: str, slots: int, secret: str, folder: Path) -> None:
        self._name, self._secret = name, secret
        self._folder = folder
        self._hosts = Hosts(name, slots)
        self._members: dict[str, _Joined] = {}
        self._changed = asyncio.Event()
        self._own = Commands()
        self._numbers = itertools.count(1)
        self._serving: set[asyncio.Future[None]] = set()
        self._fewest = 0
        self._idle_since = 0.0

    async def run(
        self, argv: Sequence[str], host: str, port: int, *, wait_for: int, bare: bool, idle_seconds: float | None
    ) -> int:
        """Serve members and ssh replacements while `argv` runs; its exit code.

        With `idle_seconds`, a launcher that for so long has no process anywhere, though `wait_for` tasks are there, is
        ended with exit code 1: Horovod's driver may wait forever for a process that it takes for running.
        """
        self._fewest = wait_for
        joining = await asyncio.start_server(self._begin(self._welcome), host, port, limit=MAX_LINE)
        door = str(self._folder / "socket")
        asking = await asyncio.start_unix_server(self._begin(self._stand_in), door, limit=MAX_LINE)
        try:
            if not await self._all_here(wait_for):
                here = ", ".join(self._hosts.staying)
                print(
                    f"corral agent: {wait_for} tasks were expected in {WAIT_SECONDS:g} s, here are {here}", flush=True
                )
                return 1
            self._write_programs()
            return await self._launch(argv, _environment(self._folder, host, bare=bare), wait_for, idle_seconds)
        finally:
            joining.close()
            asking.close()
            await self._own.end_all()
            for member in list(self._members.values()):
                with suppress(BrokenChannel):  # a member that is gone has left already
                    await member.channel.send({"do": "leave"})

    def _begin(self, serve: _Serve) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(serve(reader, writer))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        return connected

    async def _launch(self, argv: Sequence[str], env: dict[str, str], wait_for: int, idle_seconds: float | None) -> int:
        loop, early = asyncio.get_running_loop(), list[int]()
        for number in _FORWARDED:
            loop.add_signal_handler(number, early.append, number)
        try:
            command = await Command.start(argv, env)
        except OSError as error:
            print(f"corral agent: cannot start {argv[0]}: {error.strerror}", flush=True)
            return 127 if isinstance(error, FileNotFoundError) else 126
        for number in _FORWARDED:
            loop.add_signal_handler(number, command.signal, number)
        for came in early:
            command.signal(came)
        if idle_seconds is None:
            return await command.wait()
        ended = asyncio.ensure_future(command.wait())
        idle = asyncio.ensure_future(self._idle_for(idle_seconds, wait_for))
        await asyncio.wait((ended, idle), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            idle.cancel()
            return ended.result()
        print(f"corral agent: no process has run for {idle_seconds:g} s; {argv[0]} is ended", flush=True)
        await command.end()
        return 1

    async def _idle_for(self, seconds: float, wait_for: int) -> None:
        """Return once `wait_for` tasks have been there, and no command has run in any of them, for `seconds`."""
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        while (left := self._idle_since + seconds - loop.time()) > 0:
            await asyncio.sleep(min(left, 1))
            if self._hosts.running or len(self._hosts.staying) < wait_for:
                self._idle_since = loop.time()

    async def _all_here(self, wait_for: int) -> bool:
        async def enough() -> None:
            while len(self._members) + 1 < wait_for:
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(enough(), WAIT_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one member, from joining to leaving."""
        try:
            channel = await accept(reader, writer, self._secret)
            hello = await channel.receive()
        except BrokenChannel:
            return
        name, member = str(hello.get("name", "")), _Joined(channel)
        self._members[name] = member
        self._hosts.join(name, int(hello.get("slots", 1)))
        self._changed.set()
        try:
            while True:
                answer = await channel.receive()
                if answer.get("leaving") is True and self._members.get(name) is member:
                    await self._let_leave(name, channel)
                future = member.answers.pop(int(answer.get("number", 0)), None)
                if future is not None and not future.done():
                    future.set_result(int(answer.get("exit", UNREACHABLE)))
        except BrokenChannel:
            if self._members.get(name) is member:
                del self._members[name]
                self._hosts.remove(name)
            for future in member.answers.values():
                if not future.done():
                    future.set_result(UNREACHABLE)
        finally:
            channel.close()

    async def _let_leave(self, name: str, channel: Channel) -> None:
        """Take a task off the list, so that the launcher goes on without it; at once where too few would be left."""
        self._hosts.leave(name)
        if len(self._hosts.staying) < self._fewest:
            await channel.send({"do": "leave"})

    async def _stand_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request: run a command, or list the hosts. If the requesting process ends, its command is ended."""
        try:
            asked = json.loads(await reader.readline())
            if "command" not in asked:
                answer: dict[str, object] = {"hosts": self._hosts.listed(asyncio.get_running_loop().time())}
            else:
                work = asyncio.ensure_future(self._remote(str(asked["host"]), str(asked["command"])))
                left = asyncio.ensure_future(reader.read())
                await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    work.cancel()
                    await asyncio.wait((work,))
                    return
                left.cancel()
                answer = {"exit": work.result()}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except OSError:
            return  # the requesting process was killed: nobody waits for the answer
        finally:
            writer.close()

    async def _remote(self, host: str, command: str) -> int:
        loop, task, code = asyncio.get_running_loop(), self._hosts.task_of(host), UNREACHABLE
        where = self._hosts.begin(task, loop.time())
        try:
            code = await self._run_in(task, command)
        finally:
            self._hosts.end(task, where, code, loop.time())
            self._idle_since = loop.time()
        return code

    async def _run_in(self, host: str, command: str) -> int:
        number = next(self._numbers)
        if host == self._name:
            try:
                return await self._own.run(number, command)
            except asyncio.CancelledError:
                await self._own.end(number)
                raise
        member = self._members.get(host)
        if member is None:
            print(f"corral agent: no task {host} has joined", flush=True)
            return UNREACHABLE
        future = member.answers[number] = asyncio.get_running_loop().create_future()
        try:
            await member.channel.send({"do": "run", "number": number, "command": command})
            return int(await future)
        except BrokenChannel:
            return UNREACHABLE
        except asyncio.CancelledError:
            with suppress(BrokenChannel):  # the command ends with its agent anyway
                await member.channel.send({"do": "end", "number": number})
            raise

    def _write_programs(self) -> None:
        runtime = f"{shlex.quote(sys.executable)} {shlex.quote(os.path.abspath(sys.argv[0]))} agent"
        for name, mode in (("ssh", "remote"), ("rsh", "remote"), ("hosts", "hosts")):
            path = self._folder / name
            path.write_text(f'#!/bin/sh\nexec {runtime} {mode} {shlex.quote(str(self._folder / "socket"))} "$@"\n')
            path.chmod(0o700)
        lines = (entry.rpartition(":") for entry in self._ordered())
        (self._folder / "hostfile").write_text("".join(f"{name} slots={slots}\n" for name, _, slots in lines))

    def _ordered(self) -> list[str]:
        """Hosts in the rank order of CORRAL_AGENT_ORDER; members join in any order."""
        order = {name: rank for rank, name in enumerate(os.environ.get("CORRAL_AGENT_ORDER", "").split(","))}
        return sorted(self._hosts.staying, key=lambda entry: order.get(entry.rpartition(":")[0], len(order)))


def make_leader(name: str, slots: int, secret: str) -> tuple[Leader, tempfile.TemporaryDirectory[str]]:
    """Create a leader and its folder, private to this uid, which the caller removes."""
    folder = tempfile.TemporaryDirectory(prefix="corral-agent-")
    return Leader(name, slots, secret, Path(folder.name)), folder


def _environment(folder: Path, host: str, *, bare: bool) -> dict[str, str]:
    kept = dict(os.environ)
    if bare:
        kept = {
            name: kept[name] for name in kept if name in _BARE or name.startswith(("HOROVOD_", "PYTHON", "VIRTUAL_"))
        }
    kept["PATH"] = f"{folder}{os.pathsep}{kept.get('PATH', os.defpath)}"
    interface = interface_of(host)
    kept |= {"CORRAL_AGENT_DIR": str(folder), "CORRAL_AGENT_INTERFACE": interface}
    kept |= {
        "OMPI_MCA_plm_rsh_agent": str(folder / "rsh"),
        "OMPI_MCA_orte_default_hostfile": str(folder / "hostfile"),
    }
    if host.startswith("127."):  # Open MPI ignores the loopback interface unless it is named
        kept |= {"OMPI_MCA_btl": "self,tcp"}
        kept |= {"OMPI_MCA_btl_tcp_if_include": interface, "OMPI_MCA_oob_tcp_if_include": interface}
    return kept


def interface_of(host: str) -> str:
    """The network interface with the address of `host`; "lo" for all of 127.0.0.0/8, "" if there is none."""
    address = socket.gethostbyname(host)
    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # an interface without an address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return ""
