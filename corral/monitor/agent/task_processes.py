"""Find the processes of tasks: by the variable with the attempt's id that each of them inherits.

Environments are read rarely: once for a process of a task, and for another one three times after it was seen first
(a new process has its parent's environment until it replaces its program), then about once a minute.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.monitor.agent.bounded_files import read_bytes

MARKER: Final = b"CORRAL_ATTEMPT="
MOST_ENVIRONMENT: Final = 4 * 2**20
"""Bytes of an environment that are read; the kernel allows 2 MiB by default."""
MOST_PROCESSES: Final = 30_000
"""Processes that one round looks at; of a machine with more, the youngest are left out."""
_LOOKS: Final = 3
_EVERY: Final = 12


class Process(NamedTuple):
    """One process of a task, as `/proc/PID/stat` shows it."""

    pid: int
    start: int
    """Clock ticks from boot to its start; with the pid it is unique within a boot."""
    ticks: int
    """Clock ticks of processor time, with those of children that it has waited for."""
    threads: int


class TaskProcesses:
    """Remembers which processes belong to a task."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._tasks: dict[int, tuple[int, AttemptId]] = {}
        """Start and attempt by pid."""
        self._others: dict[int, int] = {}
        """How often a process without a marker was seen, by pid."""

    def look(self) -> dict[AttemptId, list[Process]]:
        """Return the living processes of each task, the oldest first."""
        pids = self._pids()
        here = set(pids)
        self._tasks = {pid: known for pid, known in self._tasks.items() if pid in here}
        self._others = {pid: seen for pid, seen in self._others.items() if pid in here}
        found: dict[AttemptId, list[Process]] = {}
        for pid in pids:
            if self._passed_over(pid):
                continue
            process = parse_stat(read_bytes(f"{self._proc}/{pid}/stat", 4096))
            attempt = process and self._attempt_of(process)
            if process and attempt:
                found.setdefault(attempt, []).append(process)
        for processes in found.values():
            processes.sort(key=lambda each: (each.start, each.pid))
        return found

    def _pids(self) -> list[int]:
        try:
            names = os.listdir(self._proc)
        except OSError:
            return []
        return sorted(int(name) for name in names if name.isdigit())[:MOST_PROCESSES]

    def _passed_over(self, pid: int) -> bool:
        """Whether the process was found to belong to no task, and is not to be looked at again in this round."""
        seen = self._others.get(pid)
        if seen is None:
            return False
        self._others[pid] = seen + 1
        return seen >= _LOOKS and (seen + pid) % _EVERY != 0

    def _attempt_of(self, process: Process) -> AttemptId | None:
        known = self._tasks.get(process.pid)
        if known is not None and known[0] == process.start:
            return known[1]
        attempt = marked_attempt(read_bytes(f"{self._proc}/{process.pid}/environ", MOST_ENVIRONMENT))
        if attempt is None:
            self._tasks.pop(process.pid, None)
            self._others.setdefault(process.pid, 1)
            return None
        self._others.pop(process.pid, None)
        self._tasks[process.pid] = process.start, attempt
        return attempt


def marked_attempt(environment: bytes) -> AttemptId | None:
    """Return the attempt that an environment names; None for none, or one that is no attempt's id."""
    text = variable(environment, MARKER)
    try:
        parse_attempt_id(text)
    except ValueError:
        return None
    return AttemptId(text) if len(text) <= 200 else None


def variable(environment: bytes, name: bytes) -> str:
    """Return the value of `NAME=` in an environment as the kernel shows it; "" if it is not there."""
    if environment.startswith(name):
        begin = len(name)
    elif (at := environment.find(b"\0" + name)) >= 0:
        begin = at + 1 + len(name)
    else:
        return ""
    end = environment.find(b"\0", begin)
    return environment[begin : end if end >= 0 else None].decode("utf-8", "replace")


def parse_stat(line: bytes) -> Process | None:
    """Return what a line of `/proc/PID/stat` says (proc(5)); None if it is cut, or the process is dead."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in b"ZXx":
        return None
    try:
        ticks = sum(map(int, fields[11:15]))
        return Process(int(head.partition(b" ")[0]), int(fields[19]), max(0, ticks), int(fields[17]))
    except ValueError:
        return None
