"""Why: most programs need no framework: their command runs as it was written, with who and where it is beside it."""

from __future__ import annotations

from typing import Final

from corral.frameworks.base import Framework, Gang
from corral.model.placement import TaskPlacement


class Shell(Framework):
    """`jobType: shell`: the command is never wrapped; it may name its peers by reference."""

    job_type = "shell"


_HOLD: Final = ("tail", "-f", "/dev/null")
"""Waits until it is ended, in every image and at no cost; `sleep infinity` is not known everywhere."""


class External(Framework):
    """`jobType: external`: Corral schedules and writes the targets; someone's own controller starts the tasks.

    Each task is a process that does nothing: it holds the task's place until the job is scaled or stopped.
    """

    job_type = "external"

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """What holds the place; a command of the role is the controller's to run."""
        return _HOLD
