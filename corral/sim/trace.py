"""A trace: the jobs that a simulation plays, and how a file of jobs is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput

MOST_JOBS: Final = 1_000_000
"""The most jobs of a trace."""
MOST_CHARACTERS: Final = 65_536
"""The most characters of a line."""
LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""The longest time of a trace; also the longest `maxDuration` of a job file."""
MOST_DEVICES: Final = 65_536
"""The most devices of one job."""


class TraceJob(NamedTuple):
    """One job of a trace."""

    name: str
    submitted: float
    """Seconds after the beginning of the trace."""
    seconds: float
    """How long it runs if nothing interrupts it and its devices are close together."""
    devices: int
    user: str = "trace"
    queue: str = "default"
    priority: int = 0


class BrokenLine(NamedTuple):
    """A line that is no job."""

    line: int
    """Counted from 1."""
    problem: str


Reader = Callable[[Iterable[str]], Iterator[TraceJob | BrokenLine]]
"""Reads the lines of one format; `submitted` may count from any time. Raises InvalidInput if the format does not fit."""


class Trace(NamedTuple):
    """Jobs by the time of their submission, the first at 0."""

    jobs: tuple[TraceJob, ...]
    skipped: tuple[BrokenLine, ...] = ()


def read_trace(reader: Reader, lines: Iterable[str], *, skip_broken: bool = False, most: int = MOST_JOBS) -> Trace:
    """Read at most `most` jobs.

    Raises InvalidInput for a broken line, unless `skip_broken` counts it instead, and for a trace without a job.
    """
    jobs: list[TraceJob] = []
    skipped: list[BrokenLine] = []
    for found in reader(_bounded(lines)):
        broken = found if isinstance(found, BrokenLine) else _fault(found, len(jobs))
        if broken is None and isinstance(found, TraceJob):
            jobs.append(found)
            if len(jobs) >= min(most, MOST_JOBS):
                break
        elif broken is not None:
            if not skip_broken:
                raise InvalidInput("broken-trace", f"Line {broken.line} of the trace: {broken.problem}.")
            skipped.append(broken)
    if not jobs:
        raise InvalidInput("empty-trace", "The trace has no job that can be played.")
    jobs.sort(key=lambda job: job.submitted)
    first = jobs[0].submitted
    return Trace(tuple(job._replace(submitted=job.submitted - first) for job in jobs), tuple(skipped))


def largest(jobs: Sequence[TraceJob]) -> int:
    """Return the devices of the largest job."""
    return max((job.devices for job in jobs), default=0)


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > MOST_CHARACTERS:
            raise InvalidInput(
                "broken-trace", f"Line {number} of the trace has more than {MOST_CHARACTERS} characters."
            )
        yield line


def _fault(job: TraceJob | BrokenLine, before: int) -> BrokenLine | None:
    """Return what is wrong with a job that a reader let pass; the line is its place among the jobs."""
    if isinstance(job, BrokenLine):
        return job
    problem = problem_of(job)
    return BrokenLine(before + 1, problem) if problem else None


def problem_of(job: TraceJob) -> str:
    """Return why a job cannot be played; "" if it can."""
    if not (isfinite(job.submitted) and isfinite(job.seconds)):
        return "a time is no finite number"
    if not 0 <= job.seconds <= LONGEST_SECONDS:
        return f"the duration {job.seconds:g} s is not from 0 to {LONGEST_SECONDS:g} s"
    if not 1 <= job.devices <= MOST_DEVICES:
        return f"{job.devices} devices are not from 1 to {MOST_DEVICES}"
    return ""
