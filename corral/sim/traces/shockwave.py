"""Shockwave's traces (Zheng et al., NSDI 2023): twelve fields between tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from corral.sim.traces.rows import split_tabs
from corral.sim.traces.throughputs import StepJob, step_job

FIELDS: Final = 12


def fits(first: str) -> bool:
    """Return whether the first line of a trace is one of Shockwave's."""
    return first.count("\t") == FIELDS - 1


def shockwave_jobs(lines: Iterable[str]) -> Iterator[tuple[int, StepJob | str]]:
    """Yield the number of each line with its job, or with what is wrong with it.

    Durations hold for the initial batch size.
    """
    for line, fields in split_tabs(lines, FIELDS):
        if isinstance(fields, str):
            yield line, fields
            continue
        kind, steps, gpus, mode, duration, arrival = (fields[at] for at in (0, 5, 6, 7, 10, 11))
        yield line, step_job(str(line - 1), kind, gpus, steps, arrival, duration=duration, mode=mode)
