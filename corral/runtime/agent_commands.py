"""Commands that an agent runs in its task; they end with the agent and report a shell's exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence

from corral.runtime.agent import UNREACHABLE

KILL_AFTER_SECONDS = 5.0


class Command:
    """One command in a process group of its own, so that it can be ended with all its children."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, argv: Sequence[str], env: Mapping[str, str]) -> Command:
        """Start `argv` with the agent's own output, which is the task's log. Raises OSError."""
        return cls(await asyncio.create_subprocess_exec(*argv, env=dict(env), process_group=0))

    async def wait(self) -> int:
        """Wait for the end; the exit code, or 128 + signal."""
        code = await self._process.wait()
        return 128 - code if code < 0 else code

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if it still exists."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    async def end(self) -> int:
        """Send SIGTERM to the group, SIGKILL after `KILL_AFTER_SECONDS`; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), KILL_AFTER_SECONDS)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self.wait()


class Commands:
    """The remote commands that run in this task, by the sender's number."""

    def __init__(self) -> None:
        self._running: dict[int, Command] = {}
        self._none = asyncio.Event()
        self._none.set()

    @property
    def none_run(self) -> bool:
        """Whether no command runs."""
        return not self._running

    async def all_ended(self) -> None:
        """Wait until no command runs."""
        await self._none.wait()

    async def run(self, number: int, text: str) -> int:
        """Run shell text with this task's own environment and folder; its exit code."""
        try:
            with tempfile.TemporaryDirectory(prefix="corral-mpi-", ignore_cleanup_errors=True) as own:
                env = dict(os.environ, CORRAL_TASK_DIR=os.getcwd())
                # Open MPI's daemons of one job on one machine would create the same folder at once, and one of them
                # would fail
                env.setdefault("OMPI_MCA_orte_tmpdir_base", own)
                return await self._run(number, text, env)
        except OSError as error:
            print(f"corral agent: {error}", flush=True)
            return UNREACHABLE

    async def _run(self, number: int, text: str, env: Mapping[str, str]) -> int:
        command = await Command.start(("/bin/sh", "-c", text), env)
        self._running[number] = command
        self._none.clear()
        try:
            return await command.wait()
        finally:
            command.signal(signal.SIGTERM)
            del self._running[number]
            if not self._running:
                self._none.set()

    async def end(self, number: int) -> None:
        """End one command, which may have ended already."""
        command = self._running.get(number)
        if command is not None:
            await command.end()

    async def end_all(self) -> None:
        """End every command."""
        await asyncio.gather(*(command.end() for command in list(self._running.values())))
