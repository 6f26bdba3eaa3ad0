"""Pollux' workloads (Qiao et al., OSDI 2021), whose jobs take the time that measured profiles give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.sim.files import read_bounded
from corral.sim.trace import Reader, TraceJob, TraceProblem
from corral.sim.traces.pollux_profiles import KINDS, MOST_NODES, Application, Placement, read_application
from corral.sim.traces.pollux_speed import Paces, PolluxProfile
from corral.sim.traces.pollux_split import NODE_GPUS, filled, split
from corral.sim.traces.rows import Columns, Row, read_rows

COLUMNS: Final = Columns("pollux", frozenset({"time", "application", "num_replicas", "batch_size"}))


class PolluxLine(NamedTuple):
    """What a line says of a job."""

    name: str
    application: str
    submitted: int
    """Seconds."""
    replicas: int
    size: int
    """The batch size of all replicas."""

    def suits(self, application: Application) -> bool:
        """Return whether the batch size is one of the application's."""
        return application.kind.smallest <= self.size <= application.kind.largest


OUT_OF_RANGE: Final = "time, replicas or batch size is out of range"


def pollux_lines(lines: Iterable[str]) -> Iterator[tuple[int, PolluxLine | str]]:
    """Yield the number of each line with its job, or with what is wrong with it.

    Raises TraceProblem if a column is missing.
    """

    def convert(line: int, row: Row) -> PolluxLine | str:
        try:
            submitted, replicas, size = int(row["time"]), int(row["num_replicas"]), int(row["batch_size"])
        except ValueError:
            return "a number is missing or no whole number"
        if submitted < 0 or not 1 <= replicas <= MOST_NODES * NODE_GPUS:
            return OUT_OF_RANGE
        return PolluxLine(row.get("name") or f"job-{line - 1}", row["application"], submitted, replicas, size)

    return read_rows(lines, COLUMNS, convert)


def read_pollux(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Refuse a workload without profiles: its lines do not say how long jobs take."""
    raise InvalidInput("no-profiles", "Workloads of Pollux say no durations; give the folder of profiles (--profiles).")


def pollux_with(folder: Path) -> Reader:
    """Return the reader that takes jobs' times and speeds from a folder of profiles, with a folder for each application.

    The reader raises NotFound or InvalidInput for a profile.
    """

    @cache
    def profile(name: str) -> Application:
        return _application(name, folder)

    @cache
    def paces(name: str) -> Paces:
        return Paces(profile(name))

    @cache
    def seconds(application: str, replicas: int, size: int) -> float | str:
        try:
            return seconds_alone(profile(application), replicas, size)
        except InvalidInput as error:
            if error.code != "pollux-profile":
                raise
            return error.message.rstrip(".")

    def read(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
        for line, job in pollux_lines(lines):
            yield line, job if isinstance(job, str) else _timed(job, paces, seconds)

    return read


def _timed(
    job: PolluxLine, paces: Callable[[str], Paces], seconds: Callable[[str, int, int], float | str]
) -> TraceJob | str:
    if job.application not in KINDS:
        return f"{job.application} is no known application"
    known = paces(job.application)
    if not job.suits(known.application):
        return OUT_OF_RANGE
    lasts = seconds(job.application, job.replicas, job.size)
    if isinstance(lasts, str):
        return lasts
    profile = PolluxProfile(known, job.size, job.replicas)
    return TraceJob(job.name, job.submitted, lasts, job.replicas, profile=profile)


def _application(name: str, folder: Path) -> Application:
    opened = folder

    def lines(name: str) -> Iterable[str]:
        nonlocal opened
        opened = folder / name
        return read_bounded(opened).decode(errors="replace").splitlines()

    try:
        return read_application(name, lines)
    except TraceProblem as problem:
        raise InvalidInput("broken-profiles", f"{opened}, line {problem.line}: {problem.reason}.") from None


def seconds_alone(application: Application, replicas: int, size: int) -> float:
    """Return how long a job takes without interruption on nodes that are filled one after the other.

    Raises InvalidInput `pollux-profile` where nothing like it was profiled.
    """
    placement = filled(replicas)
    atomic, passes = split(size, replicas, application, accumulate=size > application.kind.smallest)
    total = 0.0
    for epoch in range(application.kind.epochs):
        work = max(0.0, application.progress(epoch + 1) - application.progress(epoch))
        total += work / progress_rate(application, placement, atomic, passes, epoch)
    if not isfinite(total):
        raise InvalidInput("pollux-profile", f"On {placement} the profile gives no finite time.")
    return total


def progress_rate(application: Application, placement: Placement, atomic: int, passes: int, epoch: int) -> float:
    """Return the progress a second, in steps at the smallest batch size, of a job whose batch is split like this."""
    size = sum(placement) * atomic * (passes + 1)
    step, sync = application.step_times(placement, atomic)
    sqr, var = application.gradient(size, epoch)
    gain = (var + sqr) / (var / (size / application.kind.smallest) + sqr)
    return gain / (step + (step - sync) * passes)
