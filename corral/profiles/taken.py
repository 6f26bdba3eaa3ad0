"""What one process of a task gave to a profile, unread."""

from __future__ import annotations

from typing import NamedTuple


class Taken(NamedTuple):
    """What one process of a task gave: `text` or `trace`, or the `problem` in one sentence."""

    task: str
    process: int
    command: str = ""
    text: str = ""
    problem: str = ""
    cut: bool = False
    trace: bytes = b""
    """A Chrome trace, compressed with gzip."""

    @property
    def rank(self) -> str:
        """The process as people call it."""
        return f"{self.task} process {self.process}" if self.process else self.task

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.text) + len(self.trace)
