"""Measure tasks: by their control groups where they have their own, else by the sums over their processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from corral.kernel.ids import AttemptId
from corral.monitor.agent.bounded_files import numbers, read_text
from corral.monitor.agent.control_group import ROOT, GroupFigures, GroupPaths, group_figures, group_paths
from corral.monitor.agent.machine_files import interface_bytes, memory_bytes
from corral.monitor.agent.task_processes import Process, TaskProcesses

MOST_TASKS: Final = 2000
"""Tasks that one round measures; the names of further ones are not told, their number is."""
_KIB: Final = 1024


class TaskFigures(NamedTuple):
    """The figures of one task; None is what this machine does not tell, or what needs a second round."""

    attempt: AttemptId
    pids: tuple[int, ...]
    cpu_seconds: float
    """Since the first round that saw the task, or since it began where a control group counts."""
    cpu_percent: float | None
    """Of one core, since the last round."""
    memory: int | None
    memory_limit: int
    """The machine's memory for a task without a limit."""
    shared: int | None
    read: int | None
    written: int | None
    received_rate: float | None
    """Bytes a second since the last round, of a task with a network of its own."""
    sent_rate: float | None
    threads: int


class _Sums(NamedTuple):
    """Sums over the processes of a task. Of a process that ended, its parent has the figures once it has waited."""

    cpu_seconds: float
    memory: int | None
    shared: int | None
    read: int | None
    written: int | None


class _Seen:
    """What the last rounds saw of a task. Sums fall when a process ends unwaited for, and counters never fall."""

    __slots__ = ("at", "counted", "groups", "last", "network", "own_network")

    def __init__(self, groups: GroupPaths, *, own_network: bool) -> None:
        self.groups, self.own_network = groups, own_network
        self.at: float | None = None
        self.last: dict[str, float] = {}
        self.counted: dict[str, float] = {}
        self.network: tuple[int, int] | None = None

    def count(self, name: str, value: float | None) -> float | None:
        """The counter of a sum; what a round adds to it is never negative."""
        if value is None:
            return self.counted.get(name)
        more = max(0.0, value - self.last.get(name, 0.0))
        self.last[name] = value
        self.counted[name] = self.counted.get(name, 0.0) + more
        return self.counted[name]


class TaskMeter:
    """Measures all tasks of this machine, a round at a time."""

    def __init__(
        self, proc: str = "/proc", groups: str = ROOT, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._proc, self._groups, self._monotonic = proc, groups, monotonic
        self._processes = TaskProcesses(proc)
        self._seen: dict[AttemptId, _Seen] = {}
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._own_network = self._network_of("self")
        self.left_out = 0
        """Tasks beyond the bound in the last round."""

    def measure(self, wanted: Callable[[AttemptId, int], bool] = lambda attempt, pid: True) -> list[TaskFigures]:
        """Return the figures of the tasks that are `wanted`, which is asked with the attempt and its oldest pid."""
        found = {
            attempt: processes
            for attempt, processes in sorted(self._processes.look().items())
            if wanted(attempt, processes[0].pid)
        }
        measured = list(found.items())[:MOST_TASKS]
        self.left_out = len(found) - len(measured)
        self._seen = {attempt: self._seen[attempt] for attempt, _ in measured if attempt in self._seen}
        machine = memory_bytes(read_text(f"{self._proc}/meminfo")).get("MemTotal", 0)
        return [self._task(attempt, processes, machine) for attempt, processes in measured]

    def none(self) -> list[TaskFigures]:
        """Measure where no task runs, which looks at no process."""
        self._seen, self.left_out = {}, 0
        return []

    def _task(self, attempt: AttemptId, processes: Sequence[Process], machine: int) -> TaskFigures:
        seen = self._seen.get(attempt)
        first = processes[0].pid
        if seen is None or not seen.groups:  # the first process enters its group a moment after its start
            groups = group_paths(read_text(f"{self._proc}/{processes[-1].pid}/cgroup"), attempt, self._groups)
            if seen is None:
                network = self._network_of(str(first))
                seen = _Seen(groups, own_network=bool(network) and network != self._own_network)
                self._seen[attempt] = seen
            seen.groups = groups
        now, before = self._monotonic(), seen.at
        seen.at = now
        group = group_figures(seen.groups) if seen.groups else GroupFigures()
        sums = self._sums(processes, group)
        last_cpu = seen.counted.get("cpu", 0.0)
        cpu = seen.count("cpu", sums.cpu_seconds if group.cpu_seconds is None else group.cpu_seconds) or 0.0
        read = seen.count("read", sums.read if group.read is None else group.read)
        written = seen.count("written", sums.written if group.written is None else group.written)
        seconds = None if before is None else now - before
        rates = self._rates(seen, first, seconds)
        return TaskFigures(
            attempt=attempt,
            pids=tuple(process.pid for process in processes),
            cpu_seconds=cpu,
            cpu_percent=100 * (cpu - last_cpu) / seconds if seconds else None,
            memory=sums.memory if group.memory is None else group.memory,
            memory_limit=min(group.memory_limit or machine, machine or 2**62),
            shared=sums.shared if group.shared is None else group.shared,
            read=None if read is None else int(read),
            written=None if written is None else int(written),
            received_rate=rates[0],
            sent_rate=rates[1],
            threads=sum(process.threads for process in processes),
        )

    def _sums(self, processes: Sequence[Process], group: GroupFigures) -> _Sums:
        """The sums over the processes of what the task's groups do not tell."""
        memory = shared = read = written = None
        if group.memory is None:
            told = [self._numbers(each.pid, "status", "RssAnon", "RssShmem") for each in processes]
            shared = max((each.get("RssShmem", 0) * _KIB for each in told), default=0)
            memory = sum(each.get("RssAnon", 0) * _KIB for each in told) + shared
        if group.read is None:
            moved = [self._numbers(each.pid, "io", "read_bytes", "write_bytes") for each in processes]
            if any(moved):
                read = sum(each.get("read_bytes", 0) for each in moved)
                written = sum(each.get("write_bytes", 0) for each in moved)
        ticks = sum(process.ticks for process in processes)
        return _Sums(ticks / self._ticks, memory, shared, read, written)

    def _numbers(self, pid: int, file: str, *names: str) -> dict[str, int]:
        return numbers(read_text(f"{self._proc}/{pid}/{file}", 8192).splitlines(), *names)

    def _rates(self, seen: _Seen, pid: int, seconds: float | None) -> tuple[float | None, float | None]:
        """Bytes a second received and sent; None on the machine's network, which tasks share."""
        if not seen.own_network:
            return None, None
        before = seen.network
        counts = interface_bytes(read_text(f"{self._proc}/{pid}/net/dev")).values()
        seen.network = sum(each[0] for each in counts), sum(each[1] for each in counts)
        if before is None or not seconds:
            return None, None
        received, sent = (max(0, now - then) / seconds for now, then in zip(seen.network, before, strict=True))
        return received, sent

    def _network_of(self, pid: str) -> str:
        try:
            return os.readlink(f"{self._proc}/{pid}/ns/net")
        except OSError:
            return ""
