"""What a simulation found: each job's times, and the figures of the whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.kernel.errors import InvalidInput
from corral.kernel.quantile import quantile
from corral.sim.fairness import UNFAIR, finish_time_ratios
from corral.sim.files import read_bounded
from corral.sim.occupancy import Occupancy, fragments
from corral.sim.trace import LONGEST_SECONDS

_HIGHEST_COUNT: Final = 10**9
"""The most devices or interruptions of a job that is read."""


class JobResult(msgspec.Struct, frozen=True, gc=False):
    """One job that has ended; times in seconds after the beginning of the trace."""

    name: str
    user: str
    devices: int
    seconds: float
    """Its work."""
    submitted: float
    started: float
    """When it started first; when it ended, if it never did."""
    ended: float
    interruptions: int
    lost: float
    """Seconds of work that interruptions cost."""
    finished: bool
    """Whether its work was done; else it was ended before."""

    @property
    def completion_seconds(self) -> float:
        """Return the job completion time (JCT): from its submission to its end."""
        return self.ended - self.submitted

    @property
    def queueing_seconds(self) -> float:
        """Return the time from its submission to its first start."""
        return self.started - self.submitted


class Result(msgspec.Struct, frozen=True, dict=True):
    """A simulation that was played to its end, or as far as it came."""

    policy: str
    devices: int
    """The devices of all machines."""
    jobs: tuple[JobResult, ...]
    """Those that have ended, by submission."""
    submitted: int
    """All jobs of the trace."""
    held: tuple[tuple[float, float, int | float], ...]
    """Begin, end and devices of each run, by time; a part of a device is a fraction."""
    question: str = ""
    """The hash of everything that was asked, where the result may be used again; the digest does not depend on it."""
    knobs: dict[str, float] = msgspec.field(default_factory=dict)
    """What was assumed beside trace, machines and policy, by the names of the options, with the seed."""
    occupancy: Occupancy | None = None
    """Which devices each run held, where the simulation was asked to keep it."""

    @cached_property
    def makespan(self) -> float:
        """Return the seconds from the beginning to the last end."""
        return max((job.ended for job in self.jobs), default=0.0)

    @cached_property
    def utilisation(self) -> float:
        """Return the part of all device-seconds until the makespan that jobs held, from 0 to 1."""
        used = sum((end - begin) * devices for begin, end, devices in self.held)
        return used / (self.makespan * self.devices) if self.makespan else 0.0

    @cached_property
    def ratios(self) -> list[float]:
        """Return the finish-time fairness rho of each job that has finished."""
        return finish_time_ratios(self.jobs, self.devices)

    @cached_property
    def fragmentation(self) -> float | None:
        """Return the part of all device-seconds that were free on nodes of which other devices were in use.

        None where placements are not known.
        """
        if self.occupancy is None:
            return None
        until = self.makespan if self.occupancy.until is None else self.occupancy.until
        free = sum((min(end, until) - begin) * devices for begin, end, devices in fragments(self.occupancy))
        return free / (until * self.devices) if until else 0.0

    @property
    def digest(self) -> str:
        """Return a hash of all times: two equal simulations have the same."""
        return blake2b(msgspec.json.encode([self.policy, self.jobs, self.held]), digest_size=16).hexdigest()

    def figures(self) -> Mapping[str, Any]:
        """Return the figures of the whole; times in seconds."""
        return self._figures

    @cached_property
    def _figures(self) -> dict[str, Any]:
        completion = sorted(job.completion_seconds for job in self.jobs)
        queueing = sorted(job.queueing_seconds for job in self.jobs)
        return {
            "policy": self.policy,
            "knobs": self.knobs,
            "jobs": self.submitted,
            "ended": len(self.jobs),
            "unfinished": sum(1 for job in self.jobs if not job.finished),
            "mean_jct": _mean(completion),
            "median_jct": percentile(completion, 0.5),
            "p99_jct": percentile(completion, 0.99),
            "mean_queueing": _mean(queueing),
            "p99_queueing": percentile(queueing, 0.99),
            "makespan": self.makespan,
            "utilisation": self.utilisation,
            "interruptions": sum(job.interruptions for job in self.jobs),
            "lost_device_seconds": sum(job.lost * job.devices for job in self.jobs),
            "worst_rho": max(self.ratios, default=0.0),
            "unfair": _mean([float(ratio > UNFAIR) for ratio in self.ratios]),
            **({} if self.fragmentation is None else {"fragmentation": self.fragmentation}),
            "digest": self.digest,
        }


def write_result(result: Result, file: Path) -> None:
    """Write a result as JSON, for `read_result`; an interrupt leaves the whole file or none."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_bytes(msgspec.json.encode(result))
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read_result(file: Path) -> Result:
    """Read a written result; raises NotFound, or InvalidInput if the file has none."""
    content = read_bounded(file)
    try:
        result = msgspec.json.decode(content, type=Result)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput("no-result", f"{file} does not hold a result of a simulation: {error}.") from error
    if not _is_in_range(result):
        raise InvalidInput("no-result", f"{file} does not hold a result of a simulation: a figure is out of range.")
    return result


def _is_in_range(result: Result) -> bool:
    jobs = result.jobs
    times = [time for job in jobs for time in (job.submitted, job.started, job.ended, job.seconds)]
    times += [time for begin, end, _ in result.held for time in (begin, end)]
    counts: list[int | float] = [count for job in jobs for count in (job.devices, job.interruptions)]
    counts += [devices for _, _, devices in result.held]
    return (
        result.devices >= 1
        and all(0 <= time <= LONGEST_SECONDS * 2 for time in times)
        and all(0 <= count <= _HIGHEST_COUNT for count in counts)
        and all(job.submitted <= job.started <= job.ended for job in jobs)
        and (result.occupancy is None or result.occupancy.is_sound(LONGEST_SECONDS * 2))
    )


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value of sorted `values` that this part of them does not exceed (nearest rank); 0 of none."""
    return quantile(values, part) if values else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
