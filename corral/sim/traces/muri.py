"""Traces of Muri's artifact (Zhao et al., SIGCOMM 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows

COLUMNS: Final = Columns("muri", frozenset({"job_id", "num_gpu", "submit_time", "iterations", "iteration_time"}))


def read_muri(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read CSV whose times are in milliseconds; a job takes its iterations times their length."""

    def convert(line: int, row: Row) -> TraceJob:
        seconds = int(row["iterations"]) * float(row["iteration_time"]) / 1000
        return TraceJob(f"job-{row['job_id']}", float(row["submit_time"]) / 1000, seconds, int(row["num_gpu"]))

    return read_rows(lines, COLUMNS, convert)
