"""A trace: the jobs that a simulation plays, and how a file of jobs is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from math import isfinite
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.scheduler import Regime
from corral.sim.profiled import Profile

MOST_JOBS: Final = 1_000_000
"""The most jobs of a trace."""
MOST_CHARACTERS: Final = 65_536
"""The most characters of a line."""
LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""The longest time of a trace; also the longest `maxDuration` of a job file."""
MOST_DEVICES: Final = 65_536
"""The most devices of one job."""
WHOLE: Final = 1000
"""Thousandths of a whole device."""
FASTEST: Final = 1e6
"""The highest speed of a job on a model."""
_MOST_MODELS: Final = 100
_LONGEST_MODEL: Final = 63
_LATEST: Final = 1e10
"""Seconds from 1970 to the latest submission: some three centuries."""
_HIGHEST_PRIORITY: Final = 1_000_000
_MOST_CPU_MILLIS: Final = 1_000_000_000
_MOST_BYTES: Final = 1 << 60


class TraceJob(NamedTuple):
    """One job of a trace."""

    name: str
    submitted: float
    """Seconds after the beginning of the trace."""
    seconds: float
    """How long it runs if nothing interrupts it, its devices are close together, and their model has the speed 1."""
    devices: int
    """0: it uses processors only, and says how many."""
    user: str = "trace"
    queue: str = "default"
    priority: int = 0
    part: int = WHOLE
    """Thousandths that it needs of its device, in whole percents; a job of several devices needs all of each."""
    cpu_millis: int = 0
    """Thousandths of processors of all its tasks; 0: one processor for each task."""
    memory_bytes: int = 0
    """Of all its tasks; 0: no limit."""
    regimes: tuple[Regime, ...] = ()
    """Its work by batch size, in order; all of their seconds make `seconds`. Empty: its speed never changes."""
    speeds: tuple[tuple[str, float], ...] = ()
    """How many seconds of its work a second on each model does, sorted by model; 0: it cannot run there; unnamed: 1."""
    profile: Profile | None = None
    """Its speed by placement; without it all placements that are as narrow as can be have the speed 1."""

    def speed_on(self, models: Collection[str]) -> float:
        """Return the speed on devices of these models together, which is the lowest one."""
        known = dict(self.speeds)
        return min((known.get(model, 1.0) for model in models), default=1.0)


class TraceProblem(InvalidInput):
    """A line of a trace that cannot be read; the message names the line, counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__("broken-trace", f"Line {line} of the trace: {reason}.", line=line)
        self.line = line
        self.reason = reason


class BrokenLine(NamedTuple):
    """A line that is no job."""

    line: int
    """Counted from 1."""
    problem: str


Reader = Callable[[Iterable[str]], Iterator[tuple[int, TraceJob | str]]]
"""Reads the lines of one format: yields the number of a line with its job, or with what is wrong with it.

`submitted` may count from any time. Raises InvalidInput or TraceProblem if the format does not fit.
"""


class Trace(NamedTuple):
    """Jobs by the time of their submission, the first at 0."""

    jobs: tuple[TraceJob, ...]
    skipped: tuple[BrokenLine, ...] = ()


def read_trace(
    reader: Reader,
    lines: Iterable[str],
    *,
    skip_broken: bool = False,
    most: int = MOST_JOBS,
    most_characters: int = MOST_CHARACTERS,
) -> Trace:
    """Read at most `most` jobs, from lines of at most `most_characters`.

    Raises TraceProblem for a broken line, unless `skip_broken` counts it instead, and InvalidInput for a trace without a
    job.
    """
    jobs: list[TraceJob] = []
    skipped: list[BrokenLine] = []
    for line, found in reader(_bounded(lines, most_characters)):
        problem = found if isinstance(found, str) else problem_of(found)
        if not problem and not isinstance(found, str):
            jobs.append(found)
            if len(jobs) >= min(most, MOST_JOBS):
                break
        elif skip_broken:
            skipped.append(BrokenLine(line, problem))
        else:
            raise TraceProblem(line, problem)
    if not jobs:
        raise InvalidInput("empty-trace", "The trace has no job that can be played.")
    jobs.sort(key=lambda job: job.submitted)
    first = jobs[0].submitted
    return Trace(tuple(job._replace(submitted=job.submitted - first) for job in jobs), tuple(skipped))


def _bounded(lines: Iterable[str], most: int) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > most:
            raise InvalidInput("broken-trace", f"Line {number} of the trace has more than {most} characters.")
        yield line


def problem_of(job: TraceJob) -> str:
    """Return why a job cannot be played; "" if it can."""
    if not (isfinite(job.submitted) and isfinite(job.seconds)):
        return "a time is no finite number"
    if abs(job.submitted) > _LATEST:
        return f"the time of submission {job.submitted:g} s is not within {_LATEST:g} s of 1970"
    if not 0 <= job.seconds <= LONGEST_SECONDS:
        return f"the duration {job.seconds:g} s is not from 0 to {LONGEST_SECONDS:g} s"
    least = 0 if job.cpu_millis else 1
    if not least <= job.devices <= MOST_DEVICES:
        return f"{job.devices} devices are not from {least} to {MOST_DEVICES}"
    if problem := _problem_of_part(job):
        return problem
    if not (0 <= job.cpu_millis <= _MOST_CPU_MILLIS and 0 <= job.memory_bytes <= _MOST_BYTES):
        return "its processors or its memory are out of range"
    if abs(job.priority) > _HIGHEST_PRIORITY:
        return f"the priority {job.priority} is not within {_HIGHEST_PRIORITY} of 0"
    if any(not (isfinite(speed) and 0 <= speed <= FASTEST) for _, speed in job.speeds):
        return f"a speed is not from 0 to {FASTEST:g}"
    if len(job.speeds) > _MOST_MODELS or any(not 0 < len(model) <= _LONGEST_MODEL for model, _ in job.speeds):
        return f"speeds are for at most {_MOST_MODELS} models with names of 1 to {_LONGEST_MODEL} characters"
    return ""


def _problem_of_part(job: TraceJob) -> str:
    """Return why a job cannot have the part of a device that it asks for; "" if it can."""
    if job.part == WHOLE:
        return ""
    if job.devices != 1:
        return f"a part of {job.devices} devices cannot be had, only of one"
    if not 0 < job.part < WHOLE or job.part % 10:
        return f"{job.part} thousandths of a device are no whole percents from 1 to 100"
    return ""
