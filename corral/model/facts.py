"""Why: what happened is told to people as sentences with a stable kind; the event log and streams are made of these."""

from __future__ import annotations

from typing import Final

import msgspec

GUARANTEE_LOST: Final = "job.guarantee-lost"
"""A job runs on without the cells that it had a right to; `data` names the affinity group that has them, `preemptor`."""


class Fact(msgspec.Struct, frozen=True):
    """One thing that happened to a job or one of its tasks."""

    kind: str
    """`job.submitted`, `job.placed`, `task.started`, `task.exited`, `job.retried`, `job.completed`, …"""
    message: str
    role: str = ""
    index: int = -1
    attempt: str = ""
    data: dict[str, object] = {}
