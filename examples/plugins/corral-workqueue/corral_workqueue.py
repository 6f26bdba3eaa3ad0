"""Example of a framework plugin: a work queue in the leading task, workers in the others.

The program calls `multiprocessing.managers.BaseManager` with values from its environment. Corral provides the command,
the ranks, the ports and the addresses.
"""

from __future__ import annotations

from corral.frameworks.base import Framework, Gang
from corral.frameworks.references import host_of, port_of, secret
from corral.model.placement import TaskPlacement


class WorkQueue(Framework):
    """`jobType: workqueue`: workers may come and go, the queue stays."""

    job_type = "workqueue"

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The queue's port, on the leading task."""
        return ("queue",) if task.key == gang.leader else ()

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The queue's address and key, and whether this task holds the queue."""
        return {
            "QUEUE_HOST": host_of(gang.leader),
            "QUEUE_PORT": port_of(gang.leader, "queue"),
            "QUEUE_KEY": secret("workqueue"),
            "QUEUE_ROLE": "queue" if task.key == gang.leader else "worker",
        }
