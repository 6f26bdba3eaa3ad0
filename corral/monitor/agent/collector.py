"""Collect the figures of a node in rounds, each part on its own: one that fails leaves its series out, and is counted."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.reader import DeviceReader, find_reader
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.control_group import ROOT
from corral.monitor.agent.device_samples import device_values, external_processes
from corral.monitor.agent.job_labels import NO_FOLDERS, JobLabels, LabelFolders
from corral.monitor.agent.machine_samples import MachineReader
from corral.monitor.agent.task_figures import TaskFigures, TaskMeter
from corral.monitor.agent.task_names import TaskNames
from corral.monitor.agent.task_samples import devices_of, power_values, task_values

_log = logging.getLogger(__name__)
NameTask = Callable[[AttemptId, int], TaskNames | None]
"""Names a task by its attempt and the pid of its oldest process; None leaves it out."""
PARTS: Final = ("devices", "tasks", "machine")
"""What can be collected. A part that another exporter has already is left out."""
_LABELS: Final = "labels"
"""Not collected: the files with which vendors' exporters label their series."""


class Collector:
    """Collects everything of this machine. `collect` blocks for some milliseconds: call it in a thread."""

    def __init__(
        self,
        *,
        parts: Collection[str] = PARTS,
        find: Callable[[], DeviceReader | None] = find_reader,
        machine: Callable[[], Sequence[Value]] | None = None,
        proc: str = "/proc",
        groups: str = ROOT,
        host: str = "",
        labels: LabelFolders = NO_FOLDERS,
        has_tasks: Callable[[], bool] = lambda: True,
    ) -> None:
        """`find` finds the devices in the first round; `machine` reads the machine's own figures, None: from the kernel's
        files; `host` is the machine's name in labels. Where `has_tasks` says that none runs, no process is looked at.

        Raises InvalidInput if files of jobs are to be written to `labels`, and tasks are not collected.
        """
        self._find, self._found = find, False
        self._reader: DeviceReader | None = None
        self._own_machine = MachineReader(proc)
        self._machine = machine or self._own_machine.read
        self._meter = TaskMeter(proc, groups)
        self._has_tasks = has_tasks
        self._host = host or socket.gethostname()
        self._labels = JobLabels(labels)
        self._parts = tuple(part for part in PARTS if part in parts)
        if self._labels:
            if "tasks" not in self._parts:
                raise InvalidInput(
                    "labels-without-tasks",
                    "Files of jobs for a vendor's exporter need the part `tasks` of the metrics.",
                )
            self._parts += (_LABELS,)
        self._devices: tuple[DeviceFigures, ...] = ()
        self._devices_read = False
        """Whether they were read in this round."""
        self._tasks: list[tuple[TaskFigures, TaskNames]] | None = None
        """Those of this round; None if they could not be measured."""
        self._configured: int | None = None
        self._rounds = dict.fromkeys(self._parts, 0)
        self._failures = dict.fromkeys(self._parts, 0)
        self._cost = dict.fromkeys(self._parts, 0.0)
        self._failing: set[str] = set()

    def collect(self, name_task: NameTask) -> Samples:
        """Measure everything once."""
        measures: dict[str, Callable[[], Sequence[Value]]] = {
            "devices": self._measured_devices,
            "tasks": lambda: self._measured_tasks(name_task),
            "machine": self._machine,
            _LABELS: self._labelled,
        }
        self._devices, self._devices_read, self._tasks = (), False, None
        values = [value for part in self._parts for value in self._part(part, measures[part])]
        once = {(each.family, each.labels): each for each in values}  # a page with a series twice is refused as a whole
        return Samples((*once.values(), *self._own()))

    def close(self) -> None:
        """Release the devices, and remove the files of jobs."""
        try:
            self._labels.close()
        except OSError as error:
            _log.warning("files of jobs for a vendor's exporter are left: %s", error)
        self._own_machine.close()
        if self._reader is not None:
            self._reader.close()

    def _part(self, part: str, measure: Callable[[], Sequence[Value]]) -> Sequence[Value]:
        """The series of one part; none if it fails, which is logged once until it works again."""
        begun = time.thread_time()
        self._rounds[part] += 1
        try:
            found = measure()
            self._failing.discard(part)
        except Exception as error:
            found = ()
            self._failures[part] += 1
            if part not in self._failing:
                _log.warning("figures of the %s are missing: %s: %s", part, type(error).__name__, error)
            self._failing.add(part)
        self._cost[part] += time.thread_time() - begun
        return found

    def _read_devices(self) -> None:
        if not self._found:
            self._reader, self._found = self._find(), True
        if self._reader is not None:
            self._devices = self._reader.read()
        self._devices_read = True

    def _measured_devices(self) -> list[Value]:
        self._read_devices()
        if self._reader is None:
            return [Value(DeviceMetric.CONFIGURED, (), 0.0)]
        if self._configured is None:
            self._configured = len(self._devices)
        found = [Value(DeviceMetric.CONFIGURED, (), float(self._configured))]
        for device in self._devices:
            found += device_values(device, self._host)
        return found

    def _measured_tasks(self, name_task: NameTask) -> list[Value]:
        names: dict[AttemptId, TaskNames] = {}

        def wanted(attempt: AttemptId, pid: int) -> bool:
            named = name_task(attempt, pid)
            if named is not None:
                names[attempt] = named
            return named is not None

        tasks = self._meter.measure(wanted) if self._has_tasks() else self._meter.none()
        found: list[Value] = []
        for task in sorted(tasks, key=_attempts):  # of two attempts of a task, the later one's figures are told
            found += task_values(task, names[task.attempt], self._devices)
        self._tasks = [(task, names[task.attempt]) for task in tasks]
        found += power_values(self._tasks, self._devices)
        found += external_processes(self._devices, _pids(tasks))
        found.append(Value(TaskMetric.TASKS, ("measured",), float(len(tasks))))
        found.append(Value(TaskMetric.TASKS, ("left-out",), float(self._meter.left_out)))
        return found

    def _labelled(self) -> Sequence[Value]:
        """Write which jobs hold the devices; while that is unknown, the files stay as they are."""
        if "devices" not in self._parts:
            self._read_devices()
        if self._tasks is None or not self._devices_read:
            return ()
        holders: dict[tuple[str, int], list[TaskNames]] = {}
        for task, names in self._tasks:
            for device in devices_of(task, names, self._devices):
                holders.setdefault((device.vendor, device.index), []).append(names)
        self._labels.write(holders)
        return ()

    def _own(self) -> list[Value]:
        parts = self._parts
        return [
            *(Value(TaskMetric.COLLECTIONS, (part,), float(self._rounds[part])) for part in parts),
            *(Value(TaskMetric.FAILURES, (part,), float(self._failures[part])) for part in parts),
            *(Value(TaskMetric.COST, (part,), self._cost[part]) for part in parts),
        ]


def _attempts(task: TaskFigures) -> tuple[int, int]:
    key = parse_attempt_id(task.attempt)
    return key.job_attempt, key.task_attempt


def _pids(tasks: Iterable[TaskFigures]) -> set[int]:
    return {pid for task in tasks for pid in task.pids}
