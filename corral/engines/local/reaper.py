"""Find and end what is left of an attempt: processes hide in other groups and sessions, under init, without variables.

Four nets, cheapest first. The process group is killed while the shim's zombie still holds its number. The attempt's
control group has everything that it ever started; where there are none, the shim is a subreaper and ends what it
inherits itself. The server is a *subreaper* too, so what left a session, or a killed shim, becomes its child: one read
of `children` a batch of exits finds it by its marker, or by the attempt's folder that it runs in. What a killed server
left behind carries the attempt's marker in its environment: one pass over `/proc` a batch, only for adopted attempts.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable, Collection, Iterable

from corral.engines.local import cgroups, processes
from corral.engines.local.processes import Stat

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Have orphans of our descendants become our children.

    Raises OSError when the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) was refused")


class Orphans:
    """The children that this process inherited: which attempt each belongs to, and the zombies nobody else reaps."""

    def __init__(self, attempts: str) -> None:
        """`attempts` is the folder of the engine's attempts: who runs in one of theirs, and shows no marker, is of that."""
        self._attempts = attempts
        self._session = os.getsid(0)
        self._seen: dict[tuple[int, int], str] = {}

    def find(self, known: Collection[int]) -> dict[str, list[int]]:
        """Living inherited children by attempt id; `known` are the children that this process spawned itself.

        A zombie that was met before, is not of our own session and still not reaped, is reaped here.
        """
        found: dict[str, list[int]] = {}
        seen: dict[tuple[int, int], str] = {}
        for pid in processes.children().difference(known):
            child = processes.stat(pid)
            if child is None or child.session == self._session:
                continue
            key = (pid, child.start)
            if child.state == "Z":
                if key in self._seen:
                    reap(pid)
                else:
                    seen[key] = ""
                continue
            attempt = self._seen.get(key) or processes.marker(pid) or processes.folder_in(pid, self._attempts)
            seen[key] = attempt
            if attempt:
                found.setdefault(attempt, []).append(pid)
        self._seen = seen
        return found

    @property
    def waiting(self) -> bool:
        """Whether some were met that will have to be looked at again."""
        return bool(self._seen)


def survivors(group: int, start: int, everything: Iterable[Stat]) -> list[Stat]:
    """What of a shim's group and session is still there, the shim itself left out.

    A number is not given again while a group or session of it exists: so when another process has it, ours is empty.
    Number 0 is that of no shim, but of the kernel's own processes.
    """
    if not group:
        return []
    members = [process for process in everything if group in (process.pid, process.group, process.session)]
    if any(process.pid == group and process.start != start for process in members):
        return []
    return [process for process in members if process.pid != group and process.present]


def of_attempt(attempt: str, group: int, start: int, control_groups: Iterable[str] = ()) -> list[Stat]:
    """Everything that an attempt still runs, wherever it hides, its shim (`group`, `start`) left out; one pass."""
    inside = cgroups.members(control_groups)
    everything = processes.everything()
    found = {process.pid: process for process in survivors(group, start, everything)}
    for process in everything:
        if not process.present or process.pid == group:
            continue
        if process.pid in inside or processes.marker(process.pid) == attempt:
            found[process.pid] = process
    return list(found.values())


async def end_all(
    attempt: str, group: int, start: int, sessions: Iterable[int] = (), control_groups: Iterable[str] = ()
) -> None:
    """Kill what is left of an attempt whose shim is gone, and wait until all of it is dead.

    `sessions` are process groups of it that may show no marker: without variables, or becoming another program just now.
    """
    for session in sessions:
        processes.kill_group(session, signal.SIGKILL)
    while left := of_attempt(attempt, group, start, control_groups):
        await asyncio.gather(*(_kill_and_wait(process) for process in left))


async def end_inherited(find: Callable[[], Collection[int]]) -> None:
    """Kill what this process has inherited of an attempt, and what it inherits by that, until `find` finds no more.

    Its children only: they may show no marker, so that no look at all processes finds them.
    """
    while left := [found for pid in find() if (found := processes.stat(pid)) is not None and found.present]:
        await asyncio.gather(*(_kill_and_wait(process) for process in left))


def reap(pid: int) -> int | None:
    """Collect a dead child of ours: its exit code, negative for a signal; None when someone else has."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if done else None


async def gone(handle: int) -> None:
    """Wait until the process behind a pidfd is dead, and close it."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def _kill_and_wait(process: Stat) -> None:
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    now = processes.stat(process.pid)
    if now is None or now.start != process.start:
        os.close(handle)
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    await gone(handle)
    reap(process.pid)
