"""Machines, parts of the server and tasks as gauges of 1, under the names of a watchdog that rules are written for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.control.core.machines import Machines
from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.metrics.counts import MOST_SERIES
from corral.model.metrics.samples import Value
from corral.model.metrics.service_families import ServiceMetric
from corral.model.states import TaskState
from corral.service.metrics.process import part_of_server

_PRESSURE: Final = "node.kubernetes.io/{}-pressure"
"""The taints that Kubernetes gives a node with too little disk or memory."""
_PHASES: Final[Mapping[TaskState, str]] = {
    TaskState.CREATION_PENDING: "pending",
    TaskState.CREATION_REQUESTED: "pending",
    TaskState.PREPARING: "pending",
    TaskState.RUNNING: "running",
    TaskState.DELETION_PENDING: "running",
    TaskState.ATTEMPT_COMPLETED: "pending",
}
"""The phase of a pod that a task's state is like; ended tasks are not told."""


def node_counts(machines: Machines) -> list[Value]:
    """A gauge for each machine; beyond the bound those that are well are left out first."""
    found = Counter[tuple[str, ...]]()
    well = []
    for name, node in machines.nodes.items():
        labels = _conditions(name, node, cordoned=name in machines.cordons or node.cordoned)
        if labels[1] == "true" and labels[2] == "false":
            well.append(labels)
        else:
            found[labels] += 1
    found.update(well[: max(0, MOST_SERIES - len(found))])
    return [Value(ServiceMetric.NODES, labels, float(count)) for labels, count in found.most_common(MOST_SERIES)]


def service_counts(engines: Iterable[str], away: frozenset[str]) -> Iterator[Value]:
    """A gauge for control and for the connection to each engine; `away` are those that cannot be reached."""
    yield part_of_server("control", ready=True)
    for name in sorted(away.union(engines)):
        yield part_of_server(f"engine-{name}", ready=name not in away)


def task_counts(jobs: Mapping[JobId, Job]) -> list[Value]:
    """Tasks by job, role and state; beyond the bound, tasks that have a place and do not run come first."""
    found = Counter[tuple[str, ...]]()
    for job in jobs.values():
        name = f"{job.user}~{job.summary.name}"
        for (role, state), count in _states(job).items():
            bound = _word(state is TaskState.PREPARING or _PHASES[state] == "running")
            runs = _word(state is TaskState.RUNNING)
            found[name, role, _PHASES[state], bound, bound, runs, runs] += count
    first = sorted(found, key=lambda labels: (labels[2] != "pending", labels[3] != "true"))[:MOST_SERIES]
    return [Value(ServiceMetric.TASKS, labels, float(found[labels])) for labels in first]


def _states(job: Job) -> Counter[tuple[str, TaskState]]:
    return Counter((task.role, task.state) for task in job.tasks.values() if task.state in _PHASES)


def _conditions(name: str, node: Node, *, cordoned: bool) -> tuple[str, ...]:
    taints = {taint.key for taint in node.taints}
    pressed = (_word(_PRESSURE.format(what) in taints) for what in ("disk", "memory"))
    ready = node.ready or node.cordoned
    return (name.partition("/")[2] or name, _word(ready), _word(cordoned), *pressed)


def _word(holds: bool) -> str:
    return "true" if holds else "false"
