"""Jobs whose work is a number of steps, and the tables of throughputs that give their time (Gavel, Shockwave)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.sim.files import read_bounded
from corral.sim.trace import Reader, TraceJob

REFERENCE: Final = "v100"
"""The type of GPU that durations in seconds are for."""
SCATTERED: Final = "_unconsolidated"
"""The ending of the types that stand for GPUs on more servers than needed."""
_ENTRY: Final = re.compile(r"\('(.+)', (\d+)\)")


class StepJob(NamedTuple):
    """What a line says of a job."""

    number: int
    kind: str
    """Model and initial batch size."""
    gpus: int
    steps: float
    arrival: float
    """Seconds."""
    duration: str = ""
    """Seconds on the reference GPU, if the line says so."""
    mode: str = ""
    """What changes the batch size: `static`, `gns` or `accordion`."""


def step_job(
    number: str, kind: str, gpus: str, steps: str, arrival: str, *, duration: str = "", mode: str = ""
) -> StepJob | str:
    """Return a job from the texts of its line, or what is wrong with them."""
    try:
        found = StepJob(int(number), kind, int(gpus), float(steps), float(arrival), duration, mode)
    except ValueError:
        return "GPUs, steps or arrival is no number"
    if not (0 < found.steps < float("inf") and found.arrival >= 0 and isfinite(found.arrival)):
        return "steps or arrival is out of range"
    return found


def read_speeds(text: str | bytes, types: Sequence[str]) -> dict[tuple[str, int], tuple[float, ...]]:
    """Return the steps a second on each type of GPU, by kind of job and GPUs, from a table of throughputs (JSON).

    Only jobs that have their GPUs alone count. Raises ValueError if it is no such table.
    """
    found = {}
    try:
        table: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(text)
        for name in table[types[0]]:
            if match := _ENTRY.fullmatch(name):
                found[match[1], int(match[2])] = tuple(float(table[kind][name]["null"]) for kind in types)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"the table of throughputs lacks {problem}.") from None
    return found


def gpu_types(text: str | bytes) -> tuple[str, ...]:
    """Return the types of GPU in a table of throughputs (JSON), the reference first, without those for scattered jobs.

    Raises ValueError if it is no such table.
    """
    table = json.loads(text)
    if not isinstance(table, dict) or REFERENCE not in table:
        raise ValueError(f"the table of throughputs lacks {REFERENCE}.")
    others = sorted(name for name in table if name != REFERENCE and not name.endswith(SCATTERED))
    return (REFERENCE, *others)


Lines = Callable[[Iterable[str]], Iterator[tuple[int, StepJob | str]]]
"""Yields the number of each line of a format with its job, or with what is wrong with it."""


def by_duration(read: Lines) -> Reader:
    """Return a reader of jobs whose lines say how long they take."""
    return lambda lines: _timed(read(lines), _said)


def by_throughput(read: Lines, file: Path) -> Reader:
    """Return a reader that divides a job's steps by its throughput on the reference GPU, from a file of throughputs.

    Jobs also get their speeds on all types of GPU, in seconds of the reference GPU. Raises NotFound if the file is not
    there, and InvalidInput if it is no such file.
    """
    try:
        text = read_bounded(file)
        types = gpu_types(text)
        table = read_speeds(text, types)
    except (ValueError, RecursionError):
        raise InvalidInput(
            "broken-profiles", f"{file} is not a table of throughputs (JSON) with the type {REFERENCE}."
        ) from None

    def seconds(job: StepJob) -> float | str:
        speed, *_ = table.get((job.kind, job.gpus), (0.0,))
        return job.steps / speed if speed > 0 else f"no throughput is known for {job.kind} on {job.gpus} GPUs"

    def speeds(job: StepJob) -> tuple[tuple[str, float], ...]:
        reference, *others = table[job.kind, job.gpus]
        if not others:
            return ()
        return tuple(sorted(zip(types, (1.0, *(speed / reference for speed in others)), strict=True)))

    return lambda lines: _timed(read(lines), seconds, speeds)


def _said(job: StepJob) -> float | str:
    if not job.duration:
        return "the line has no duration; give a table of throughputs (--profiles FILE)"
    try:
        return float(job.duration)
    except ValueError as error:
        return f"a value cannot be read: {error}"


def _timed(
    found: Iterable[tuple[int, StepJob | str]],
    seconds: Callable[[StepJob], float | str],
    speeds: Callable[[StepJob], tuple[tuple[str, float], ...]] = lambda job: (),
) -> Iterator[tuple[int, TraceJob | str]]:
    for line, job in found:
        lasts = job if isinstance(job, str) else seconds(job)
        if isinstance(job, str) or isinstance(lasts, str):
            yield line, str(lasts)
        else:
            yield line, TraceJob(f"job-{job.number}", job.arrival, lasts, job.gpus, speeds=speeds(job))
