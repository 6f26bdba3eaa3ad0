"""What one account may have waiting, running and kept."""

from __future__ import annotations

from typing import NamedTuple


class Allowance(NamedTuple):
    """The bounds of every account; 0 is no limit."""

    tasks: int = 0
    """Waiting and running."""
    code_bytes: int = 0
    """Uploaded and kept."""
    log_bytes: int = 0
    """Of each stream of a task's log: the newest are kept."""
    folder_bytes: int = 0
    """Of the working folder that a task of this machine is given, or of all that a pod writes to its node."""


UNBOUNDED = Allowance()
