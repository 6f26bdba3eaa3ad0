"""Run commands beside a running task, with the task's user, folder, environment and limits."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from corral.engines.local import processes, reaper
from corral.engines.local.shim import DEFAULTED, nproc_option
from corral.kernel.errors import Unavailable

_CHUNK = 65536
_ENTER = """[ -z "$3" ] || ulimit -NPROC "$3"
for group in $1; do echo 0 >"$group" || exit 126; done; cd -- "$2" && shift 3 && exec "$@"
"""


class LocalSession:
    """A command beside a task, with a terminal or with pipes. Standard output and errors are merged."""

    def __init__(self, pid: int, reader: int, writer: int, *, tty: bool, ended: Callable[[int], None]) -> None:
        self.pid = pid
        self._reader, self._writer = reader, writer
        self._tty = tty
        self._ended = ended
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting: set[asyncio.Event] = set()
        self._handle = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._handle, self._died)

    async def send(self, data: bytes) -> None:
        """Write `data` to the command's standard input. Empty bytes end it (on a terminal: Ctrl-D).

        Raises Unavailable when the command takes no more.
        """
        if not data:
            if self._tty:
                data = b"\x04"
            else:
                self._let_go(self._writer)
                return
        view = memoryview(data)
        while view:
            if self._writer < 0:
                raise Unavailable("session-over", "The command takes no more input; its input was ended.")
            try:
                view = view[os.write(self._writer, view) :]
            except BlockingIOError:
                await self._ready(self._writer, writing=True)
            except OSError as error:
                raise Unavailable("session-over", f"The command takes no more input: {error.strerror}.") from error

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal; no effect without a terminal."""
        if self._tty and self._reader >= 0:
            fcntl.ioctl(self._reader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the command's output until it ends. The command waits while nobody reads."""
        while self._reader >= 0:
            try:
                data = os.read(self._reader, _CHUNK)
            except BlockingIOError:
                await self._ready(self._reader, writing=False)
                continue
            except OSError:  # EIO: the terminal's other side is closed
                return
            if not data:
                return
            yield data

    async def exit_code(self) -> int:
        """Wait for the command's exit code: 128 + signal if a signal ended it."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """End the command if it still runs, with its process group."""
        if not self._code.done():
            processes.kill_group(self.pid, signal.SIGHUP)
            processes.kill_group(self.pid, signal.SIGKILL)
            await self.exit_code()
        self._let_go(self._writer)
        self._let_go(self._reader)

    def _let_go(self, handle: int) -> None:
        """Close a file and wake its waiters.

        The loop must forget the descriptor before another file gets its number.
        """
        if handle < 0:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(handle)
        loop.remove_writer(handle)
        os.close(handle)
        self._reader = -1 if self._reader == handle else self._reader
        self._writer = -1 if self._writer == handle else self._writer
        for ready in self._waiting:
            ready.set()

    async def _ready(self, handle: int, *, writing: bool) -> None:
        """Wait until a file can be read or written, or is closed."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        self._waiting.add(ready)
        (loop.add_writer if writing else loop.add_reader)(handle, ready.set)
        try:
            await ready.wait()
        finally:
            self._waiting.discard(ready)
            if handle in (self._reader, self._writer):
                (loop.remove_writer if writing else loop.remove_reader)(handle)

    def _died(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        processes.kill_group(self.pid, signal.SIGHUP)
        code = reaper.reap(self.pid)
        self._ended(self.pid)
        self._code.set_result(255 if code is None else code if code >= 0 else 128 - code)


def spawn_session(
    argv: Sequence[str],
    env: Mapping[str, str],
    directory: str,
    cgroups: Sequence[str],
    *,
    tty: bool,
    ended: Callable[[int], None],
    nproc: str = "",
) -> tuple[LocalSession, int]:
    """Start a command in its own session. Return it and its pid; `ended` is called with the pid when it ends.

    `nproc` is its user's limit of processes, "" for none.
    Raises Unavailable when it cannot be started.
    """
    groups = " ".join(f"{group}/cgroup.procs" for group in cgroups)
    enter = _ENTER.replace("-NPROC", nproc_option())
    words = ["/bin/sh", "-c", enter, "sh", groups, directory, nproc, *argv]
    try:
        session = _with_terminal(words, env, ended) if tty else _with_pipes(words, env, ended)
        return session, session.pid
    except OSError as error:
        raise Unavailable("exec-failed", f"The command could not be started: {error.strerror}.") from error


def _with_terminal(words: list[str], env: Mapping[str, str], ended: Callable[[int], None]) -> LocalSession:
    master, slave = os.openpty()
    try:
        name = os.ttyname(slave)
        # Opened by the leader of a new session, it becomes that session's controlling terminal.
        actions = [(os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0), *((os.POSIX_SPAWN_DUP2, 0, to) for to in (1, 2))]
        pid = os.posix_spawn(
            words[0], words, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULTED
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return LocalSession(pid, master, master, tty=True, ended=ended)


def _with_pipes(words: list[str], env: Mapping[str, str], ended: Callable[[int], None]) -> LocalSession:
    their_input, writer = os.pipe()
    reader, their_output = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, source, to) for source, to in ((their_input, 0), (their_output, 1), (1, 2))]
        pid = os.posix_spawn(
            words[0], words, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULTED
        )
    except BaseException:
        os.close(writer)
        os.close(reader)
        raise
    finally:
        os.close(their_input)
        os.close(their_output)
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    return LocalSession(pid, reader, writer, tty=False, ended=ended)
