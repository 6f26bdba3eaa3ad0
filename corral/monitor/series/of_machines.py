"""What is kept over time of another machine's figures: fewer series than it tells, because there are many machines."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from corral.devices.figures.device_figures import Held
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TASK_FAMILIES, TaskMetric
from corral.monitor.agent.machine_files import SERVER_SYSTEMS

_OWN: Final = frozenset({TaskMetric.TASKS, TaskMetric.COLLECTIONS, TaskMetric.FAILURES, TaskMetric.COST})
"""Families of the collector itself, of which nobody makes pictures."""
_OF_TASKS: Final = frozenset(each.name for each in TASK_FAMILIES) - _OWN
_OF_MACHINES: Final = frozenset(
    {
        DeviceMetric.USE, DeviceMetric.MEMORY_USED, DeviceMetric.MEMORY, DeviceMetric.TEMPERATURE, DeviceMetric.POWER,
        DeviceMetric.XID, DeviceMetric.ECC_DBE, DeviceMetric.PCIE_REPLAY, DeviceMetric.SM_CLOCK,
        DeviceMetric.ECC, DeviceMetric.REPLAYS, DeviceMetric.CLOCK, DeviceMetric.HELD_DOWN,
        NodeMetric.CPU, NodeMetric.MEMORY_TOTAL, NodeMetric.MEMORY_AVAILABLE, NodeMetric.DISK_READ,
        NodeMetric.DISK_WRITTEN, NodeMetric.FILE_SYSTEM, NodeMetric.FILE_SYSTEM_AVAILABLE, NodeMetric.NETWORK_IN,
        NodeMetric.NETWORK_OUT, NodeMetric.PORT_IN, NodeMetric.PORT_OUT, NodeMetric.PORT_DOWNED, NodeMetric.PORT_ERRORS,
        NodeMetric.CLOCK, NodeMetric.CLOCK_IN_STEP,
    }
)  # fmt: skip
_HELD: Final = frozenset({Held.HEAT, Held.PROCHOT, Held.UNKNOWN})
"""Reasons of clocks that are held down which are signs of health, too; limits of power and current are not kept."""
MOST_SERVERS: Final = 8
"""File systems of servers of a machine that are kept: most machines have the same."""
ALL: Final = "all"
"""The processor of which the sum over all processors is kept."""


def kept_of_machine(samples: Samples) -> tuple[Samples, Samples]:
    """The series of tasks, which need no node, and those of the machine: its processors are summed by mode."""
    tasks, machine = [], []
    modes = defaultdict[str, float](float)
    servers: set[tuple[str, ...]] = set()
    for value in samples.values:
        if value.family in _OF_TASKS:
            tasks.append(value)
        elif value.family == NodeMetric.CPU:
            modes[value.labels[1]] += value.value
        elif value.family in _OF_MACHINES and _is_kept(value, servers):
            machine.append(value)
    machine += (Value(NodeMetric.CPU, (ALL, mode), seconds) for mode, seconds in modes.items())
    return Samples(tuple(tasks)), Samples(tuple(machine))


def _is_kept(value: Value, servers: set[tuple[str, ...]]) -> bool:
    """Whether a series of a machine is kept; `servers` are the file systems of servers that are."""
    labels = value.labels
    if value.family == DeviceMetric.HELD_DOWN:
        return labels[4] in _HELD
    if value.family in (NodeMetric.FILE_SYSTEM, NodeMetric.FILE_SYSTEM_AVAILABLE) and labels[1] in SERVER_SYSTEMS:
        if len(servers) < MOST_SERVERS:
            servers.add(labels)
        return labels in servers
    return True
