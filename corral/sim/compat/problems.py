"""What the readers of this package raise for a line that they cannot read."""

from __future__ import annotations

from corral.kernel.errors import InvalidInput


class TraceProblem(InvalidInput):
    """A line of a trace that cannot be read; the message names the line, counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__("trace-line", f"Line {line} of the trace: {reason}.", line=line)
        self.line = line
        self.reason = reason
