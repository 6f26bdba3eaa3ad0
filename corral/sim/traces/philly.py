"""The Philly trace (Jeon et al., USENIX ATC 2019), as adaptdl's artifact has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows

COLUMNS: Final = Columns("philly", frozenset({"timestamp", "duration", "num_gpus"}))


def read_philly(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read CSV with durations in seconds; a virtual cluster is a user."""

    def convert(line: int, row: Row) -> TraceJob:
        at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()
        return TraceJob(
            f"job-{line - 1}", at, float(row["duration"]), int(row["num_gpus"]), row.get("cluster") or "trace"
        )

    return read_rows(lines, COLUMNS, convert)
