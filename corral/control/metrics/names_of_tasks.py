"""The names of tasks in the labels of their series."""

from __future__ import annotations

from typing import Final

from corral.control.core.world import Job
from corral.control.loop import Control
from corral.kernel.ids import TaskKey
from corral.model.runs import TaskRun
from corral.monitor.agent.task_names import TaskNames

_SEPARATOR: Final = "~"
"""Between user and job in the label `job_name`, whose values are known in this form."""


def task_names(control: Control, job: Job, key: TaskKey, task: TaskRun) -> TaskNames:
    """The names of a task that has a place, with the devices that it was given."""
    assert task.placement is not None
    node = control.machines.nodes.get(task.placement.node)
    given = frozenset(task.placement.devices)
    devices = () if node is None else node.devices
    return TaskNames(
        user=job.user,
        job=f"{job.user}{_SEPARATOR}{job.summary.name}",
        role=key.role,
        number=str(key.index),
        instance=job.id,
        queue=job.terms.queue,
        devices=frozenset(each.id for each in devices if each.index in given and not each.described),
    )
