"""Make samples of the figures of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from corral.devices.figures.device_figures import DeviceFigures
from corral.model.metrics.samples import Value
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.task_figures import TaskFigures
from corral.monitor.agent.task_names import TaskNames


def task_values(task: TaskFigures, names: TaskNames, devices: Sequence[DeviceFigures]) -> Iterator[Value]:
    """Yield the series of one task; `devices` are those of the machine. What was not measured has no series."""
    labels = names.labels
    percent = None if task.memory is None or not task.memory_limit else 100 * task.memory / task.memory_limit
    figures: tuple[tuple[TaskMetric, float | None], ...] = (
        (TaskMetric.CPU, task.cpu_percent),
        (TaskMetric.CPU_SECONDS, task.cpu_seconds),
        (TaskMetric.MEMORY, task.memory),
        (TaskMetric.MEMORY_LIMIT, task.memory_limit or None),
        (TaskMetric.MEMORY_PERCENT, percent),
        (TaskMetric.SHARED_MEMORY, task.shared),
        (TaskMetric.BLOCK_IN, task.read),
        (TaskMetric.BLOCK_OUT, task.written),
        (TaskMetric.NETWORK_IN, task.received_rate),
        (TaskMetric.NETWORK_OUT, task.sent_rate),
        (TaskMetric.PROCESSES, len(task.pids)),
        (TaskMetric.THREADS, task.threads),
    )
    for name, value in figures:
        if value is not None:
            yield Value(name, labels, float(value))
    for device in devices_of(task, names, devices):
        by_device = (*labels, str(device.number))
        if device.use is not None:
            yield Value(TaskMetric.DEVICE, by_device, device.use)
        if device.memory_percent is not None:
            yield Value(TaskMetric.DEVICE_MEMORY, by_device, device.memory_percent)


def power_values(tasks: Iterable[tuple[TaskFigures, TaskNames]], devices: Sequence[DeviceFigures]) -> Iterator[Value]:
    """Yield the power of each task's devices, where all of these tell it; that of a shared device in equal parts."""
    held = [(names, devices_of(task, names, devices)) for task, names in tasks]
    holders = Counter((each.vendor, each.index) for _, own in held for each in own)
    for names, own in held:
        told = [(each.power, holders[each.vendor, each.index]) for each in own]
        if told and all(power is not None for power, _ in told):
            watts = sum(power / count for power, count in told if power is not None)
            yield Value(TaskMetric.POWER, names.labels, watts)


def devices_of(task: TaskFigures, names: TaskNames, devices: Sequence[DeviceFigures]) -> list[DeviceFigures]:
    """Return the devices that a task was given, and those that its processes use."""
    pids = frozenset(task.pids)
    return [each for each in devices if each.id in names.devices or not pids.isdisjoint(each.processes or ())]
