"""Why: an example of a framework that Corral does not know: a queue of work in the leading task, workers in the others.

The program calls `multiprocessing.managers.BaseManager` with what stands in its environment. Nothing else is needed: the
command, the ranks, the ports and the addresses are Corral's.
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
        """Where the queue is, what opens it, and whether this task is the one that has it."""
        return {
            "QUEUE_HOST": host_of(gang.leader),
            "QUEUE_PORT": port_of(gang.leader, "queue"),
            "QUEUE_KEY": secret("workqueue"),
            "QUEUE_ROLE": "queue" if task.key == gang.leader else "worker",
        }
