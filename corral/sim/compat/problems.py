"""Lines of traces: what the readers of this package raise for one that they cannot read, and fields between tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corral.kernel.errors import InvalidInput


class TraceProblem(InvalidInput):
    """A line of a trace that cannot be read; the message names the line, counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__("trace-line", f"Line {line} of the trace: {reason}.", line=line)
        self.line = line
        self.reason = reason


def tabbed(lines: Iterable[str], count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line, from 1, with its `count` tab-separated fields. Raises TraceProblem."""
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\n").split("\t")
        if len(fields) != count:
            raise TraceProblem(number, f"it has {len(fields)} fields instead of {count}")
        yield number, fields
