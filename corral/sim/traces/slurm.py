"""Slurm's accounting, as `sacct` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows

COLUMNS: Final = Columns("slurm", frozenset({"JobID", "Submit", "ElapsedRaw", "AllocTRES"}), "|")


def read_slurm(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read what Slurm's accounting prints: `sacct --parsable2 -o JobID,User,Submit,ElapsedRaw,AllocTRES`.

    Steps of jobs are left out. Times of submission have no zone and are taken as UTC, so they are right but for a change
    to or from summer time.
    """

    def convert(line: int, row: Row) -> TraceJob | str | None:
        if "." in row["JobID"]:
            return None
        if not row["AllocTRES"]:
            return "the job never started"
        devices = _gpus(row["AllocTRES"])
        if not devices:
            return "the job held no GPU"
        at = datetime.fromisoformat(row["Submit"]).replace(tzinfo=UTC).timestamp()
        return TraceJob(f"job-{row['JobID']}", at, float(row["ElapsedRaw"]), devices, row.get("User") or "trace")

    return read_rows(lines, COLUMNS, convert)


def _gpus(resources: str) -> int:
    """Return the GPUs of a list such as `cpu=8,gres/gpu=2,gres/gpu:a100=2`: the total, else the sum over models."""
    named = [each.partition("=") for each in resources.split(",")]
    counts = {name: count for name, _, count in named if name.startswith("gres/gpu")}
    if "gres/gpu" in counts:
        return int(counts["gres/gpu"])
    return sum(int(count) for name, count in counts.items() if name.startswith("gres/gpu:"))
