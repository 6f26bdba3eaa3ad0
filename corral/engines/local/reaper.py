"""Find and end all processes of an attempt, also in other groups or sessions, under init, or without variables.

Four searches, cheapest first. The process group is killed while the shim's zombie still holds its number. The attempt's
control group has every process that it started; without control groups the shim is a subreaper and ends the processes
it inherits. The server is a *subreaper* too, so orphans of a session or of a killed shim become its children. One read
of `children` per batch of exits finds them by their marker, or by the attempt's folder in which they run. Processes
left by a killed server have the attempt's marker in their environment: one pass over `/proc` per batch, for adopted
attempts only.
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
    """Make orphaned descendants our children.

    Raises OSError when the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) was refused")


class OrphanProcesses:
    """The children that this process inherited: the attempt of each, and the zombies that nobody else reaps."""

    def __init__(self, attempts: str) -> None:
        """`attempts` is the folder of the engine's attempts.

        A child without a marker belongs to the one in whose folder it runs.
        """
        self._attempts = attempts
        self._session = os.getsid(0)
        self._seen: dict[tuple[int, int], str] = {}

    def find(self, known: Collection[int]) -> dict[str, list[int]]:
        """Return living inherited children by attempt id. `known` are the children that this process spawned itself.

        A zombie of another session that was already seen in the previous call is reaped here.
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
        """Whether some inherited children have to be looked at again."""
        return bool(self._seen)


def survivors(group: int, start: int, everything: Iterable[Stat]) -> list[Stat]:
    """Return the remaining processes of a shim's group and session, without the shim itself.

    A number is not reused while a group or session of it exists. So if another process has it, our group is empty.
    Number 0 belongs to the kernel's own processes, not to a shim.
    """
    if not group:
        return []
    members = [process for process in everything if group in (process.pid, process.group, process.session)]
    if any(process.pid == group and process.start != start for process in members):
        return []
    return [process for process in members if process.pid != group and process.present]


def of_attempt(attempt: str, group: int, start: int, control_groups: Iterable[str] = ()) -> list[Stat]:
    """Return every process of an attempt, wherever it is, except its shim (`group`, `start`); one pass over `/proc`."""
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
    """Kill the remaining processes of an attempt whose shim is gone, and wait until all are dead.

    `sessions` are its process groups that may show no marker: without variables, or in the middle of an exec.
    """
    for session in sessions:
        processes.kill_group(session, signal.SIGKILL)
    while left := of_attempt(attempt, group, start, control_groups):
        await asyncio.gather(*(_kill_and_wait(process) for process in left))


async def end_inherited(find: Callable[[], Collection[int]]) -> None:
    """Kill this process's inherited children of an attempt, and those inherited thereby, until `find` finds none.

    They may show no marker, so a search over all processes does not find them.
    """
    while left := [found for pid in find() if (found := processes.stat(pid)) is not None and found.present]:
        await asyncio.gather(*(_kill_and_wait(process) for process in left))


def reap(pid: int) -> int | None:
    """Reap a dead child and return its exit code, negative for a signal; None if it lives or was reaped elsewhere."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if done else None


async def gone(handle: int) -> None:
    """Wait until the process of a pidfd is dead, and close the pidfd."""
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
