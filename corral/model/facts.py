"""Facts: events of a job, each with a stable kind and a sentence, for the event log and event streams."""

from __future__ import annotations

from typing import Final

import msgspec

TASK_NOTED: Final = "task.noted"
"""The kind of a message of the underlying system about a task, such as why it starts late."""
GUARANTEE_LOST: Final = "job.guarantee-lost"
"""A job runs on without its guaranteed cells; `data.preemptor` names the affinity group that has them."""


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One event of a job or of one of its tasks."""

    kind: str
    """`job.submitted`, `job.placed`, `task.started`, `task.exited`, `job.retried`, `job.completed`, …"""
    message: str
    role: str = ""
    index: int = -1
    attempt: str = ""
    data: dict[str, object] = {}
