"""The frameworks `shell` and `external`, which add nothing to a task but its identity."""

from __future__ import annotations

from typing import Final

from corral.frameworks.base import Framework, Gang
from corral.model.placement import TaskPlacement


class Shell(Framework):
    """`jobType: shell`: the command is never wrapped; it may refer to its peers."""

    job_type = "shell"


_HOLD: Final = ("tail", "-f", "/dev/null")
"""Waits without cost until it is stopped, in every image; some images do not know `sleep infinity`."""


class External(Framework):
    """`jobType: external`: Corral schedules and writes the targets; another controller starts the tasks.

    Each task is an idle process, which holds the task's placement until the job is scaled or stopped.
    """

    job_type = "external"

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The idle command; the controller runs the role's own command, if any."""
        return _HOLD
