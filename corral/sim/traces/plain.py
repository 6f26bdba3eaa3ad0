"""Corral's own format of traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows

COLUMNS: Final = Columns("plain", frozenset({"submitted", "seconds", "devices"}))


def read_plain(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read Corral's own CSV: `submitted,seconds,devices`, and optionally `name,user,queue,priority`."""

    def convert(line: int, row: Row) -> TraceJob:
        return TraceJob(
            row.get("name") or f"job-{line - 1}",
            float(row["submitted"]),
            float(row["seconds"]),
            int(row["devices"]),
            row.get("user") or "trace",
            row.get("queue") or "default",
            int(row.get("priority") or 0),
        )

    return read_rows(lines, COLUMNS, convert)
