"""What was measured of a role's tasks, from their series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from corral.model.metrics.task_families import TaskMetric
from corral.model.series import SeriesView

FAMILIES: Final = (TaskMetric.CPU, TaskMetric.MEMORY, TaskMetric.DEVICE, TaskMetric.DEVICE_MEMORY)
"""The families that are read."""
USED_PERCENT: Final = 5.0
"""A device was in use if its use ever reached this."""


class Mean(NamedTuple):
    """A mean over steps and tasks, and the greatest value."""

    mean: float
    most: float


class Figures(NamedTuple):
    """The figures of one role; None is what was not measured."""

    tasks: int = 0
    """Tasks of which anything was measured."""
    devices: Mean | None = None
    """Use of a device in percent."""
    devices_in_use: int | None = None
    """The most devices of one task that were ever in use."""
    device_memory: Mean | None = None
    """Memory of a device in percent."""
    cores: Mean | None = None
    """Processors of a task."""
    memory: Mean | None = None
    """Memory of a task in bytes."""


def figures_by_role(series: Iterable[SeriesView]) -> dict[str, Figures]:
    """The figures of each role of one job; all steps of a series count alike, and so do all series."""
    found: dict[str, dict[str, list[SeriesView]]] = defaultdict(lambda: defaultdict(list))
    for each in series:
        found[each.labels.get("role_name", "")][each.family].append(each)
    return {role: _of_role(families) for role, families in found.items()}


def _of_role(families: dict[str, list[SeriesView]]) -> Figures:
    devices = families.get(TaskMetric.DEVICE, [])
    in_use: dict[str, int] = {}
    for each in devices:
        task, used = each.labels.get("task_index", ""), max(_known(each.high), default=0.0) >= USED_PERCENT
        in_use[task] = in_use.get(task, 0) + used
    cores = _mean(families.get(TaskMetric.CPU, []))
    return Figures(
        tasks=len({each.labels.get("task_index", "") for many in families.values() for each in many}),
        devices=_mean(devices),
        devices_in_use=max(in_use.values(), default=None),
        device_memory=_mean(families.get(TaskMetric.DEVICE_MEMORY, [])),
        cores=cores and Mean(cores.mean / 100, cores.most / 100),
        memory=_mean(families.get(TaskMetric.MEMORY, [])),
    )


def _mean(series: Iterable[SeriesView]) -> Mean | None:
    means, most = [], 0.0
    for each in series:
        known = _known(each.mean)
        if known:
            means.append(sum(known) / len(known))
            most = max(most, *_known(each.high))
    return Mean(sum(means) / len(means), most) if means else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [each for each in values if each is not None]
