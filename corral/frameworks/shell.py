"""Why: most programs need no framework: their command runs as it was written, with who and where it is beside it."""

from __future__ import annotations

from corral.frameworks.base import Framework, Gang
from corral.model.placement import TaskPlacement


class Shell(Framework):
    """`jobType: shell`: the command is never wrapped; it may name its peers by reference."""

    job_type = "shell"


class External(Framework):
    """`jobType: external`: Corral schedules and writes the targets; someone's own controller starts the tasks."""

    job_type = "external"

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """Nothing is started."""
        return ()
