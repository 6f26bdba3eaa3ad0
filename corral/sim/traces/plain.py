"""Corral's own format of traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows

SPEED: Final = "speed:"
"""What the column of a model begins with."""
COLUMNS: Final = Columns("plain", frozenset({"submitted", "seconds", "devices"}))


def read_plain(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read Corral's own CSV: `submitted,seconds,devices`, and optionally `name,user,queue,priority`.

    A column `speed:MODEL` says how many seconds of work a second on that model does; an empty value is not said.
    """

    def convert(line: int, row: Row) -> TraceJob:
        return TraceJob(
            row.get("name") or f"job-{line - 1}",
            float(row["submitted"]),
            float(row["seconds"]),
            int(row["devices"]),
            row.get("user") or "trace",
            row.get("queue") or "default",
            int(row.get("priority") or 0),
            speeds=tuple(
                sorted((name[len(SPEED) :], float(said)) for name, said in row.items() if _is_speed(name) and said)
            ),
        )

    return read_rows(lines, COLUMNS, convert)


def _is_speed(column: str | None) -> bool:
    return column is not None and column.startswith(SPEED) and len(column) > len(SPEED)
