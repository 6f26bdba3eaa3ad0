"""Gavel's traces (Narayanan et al., OSDI 2020): ten fields between tabs, or generated arrivals as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from corral.sim.traces.rows import Columns, Row, read_rows, split_tabs
from corral.sim.traces.throughputs import StepJob, step_job

FIELDS: Final = 10
COLUMNS: Final = Columns("gavel", frozenset({"job_id", "arrival_s", "job_type", "scale_factor", "total_steps"}))


def fits(first: str) -> bool:
    """Return whether the first line of a trace is one of Gavel's."""
    return first.count("\t") == FIELDS - 1 or COLUMNS.fit(first)


def gavel_jobs(lines: Iterable[str]) -> Iterator[tuple[int, StepJob | str]]:
    """Read either form of a trace: yield the number of each line with its job, or with what is wrong with it.

    Raises TraceProblem if a column is missing.
    """
    rest = iter(lines)
    first = next(rest, "")
    return (read_physical if "\t" in first else read_generated)(chain((first,), rest))


def read_physical(lines: Iterable[str]) -> Iterator[tuple[int, StepJob | str]]:
    """Read the form of the traces for the physical cluster, which say no durations."""
    for line, fields in split_tabs(lines, FIELDS):
        if isinstance(fields, str):
            yield line, fields
        else:
            yield line, step_job(str(line - 1), fields[0], fields[6], fields[5], fields[9])


def read_generated(lines: Iterable[str]) -> Iterator[tuple[int, StepJob | str]]:
    """Read the form of generated arrivals; its durations (`duration_s`) are for the reference GPU."""

    def convert(line: int, row: Row) -> StepJob | str:
        texts = (row[name] for name in ("job_id", "job_type", "scale_factor", "total_steps", "arrival_s"))
        return step_job(*texts, duration=row.get("duration_s") or "")

    return read_rows(lines, COLUMNS, convert)
