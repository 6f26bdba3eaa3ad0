"""Table B: the baselines of Shockwave on 120 jobs and 32 V100, with its measures of time and fairness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from corral.sim.compat.allox import AlloX
from corral.sim.compat.centre import centre_above, most_throughput
from corral.sim.compat.fair_finish import FairFinish
from corral.sim.compat.rounds import Policy, Result, RoundJob, RoundRules, Rounds
from corral.sim.compat.shockwave_jobs import Adaptation, read_alone, read_schedule, read_shockwave, speeds_on

GPUS: Final = 32
RULES: Final = RoundRules(round_seconds=120.0, reset_gap=1000.0, start_overhead=20.0, empty_needs_both=True)
UNFAIR: Final = 1.05
"""A job with a larger ratio of its time to its fair time counts as treated unfairly."""
ALLOX_CONSIDERED: Final = 0.2
"""The part of the waiting jobs that AlloX looks at, the oldest first."""

MAKESPAN_RANGE: Final = (100.0, 1e6)
"""Seconds between which OSSP's makespan is bisected, to 5 %."""


class OneType:
    """A policy on one type of GPU, from a function of the jobs."""

    shuffles_types = False
    skips_zero = False

    def __init__(self, solve: Callable[[Sequence[RoundJob]], Sequence[float]]) -> None:
        self.solve = solve

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return the fraction of time of each job."""
        return {job.number: [x] for job, x in zip(jobs, self.solve(jobs), strict=True)}


def gandiva_fair(jobs: Sequence[RoundJob]) -> list[float]:
    """Gandiva-Fair (Chaudhary et al., EuroSys 2020): equal time for all jobs, whatever their sizes."""
    return [min(1.0, GPUS / len(jobs))] * len(jobs)


def max_min(jobs: Sequence[RoundJob]) -> list[float]:
    """Gavel's max-min fairness (Narayanan et al., OSDI 2020), blind to speeds: the smallest GPU-time is largest."""
    gpus = _gpus(jobs)
    floor = min(float(gpus.min()), GPUS / len(jobs))
    found: list[float] = centre_above(floor / gpus, gpus, GPUS).tolist()
    return found


def max_sum(jobs: Sequence[RoundJob]) -> list[float]:
    """The largest sum of steps a second."""
    found: list[float] = most_throughput(np.array([job.throughput[0] for job in jobs]), _gpus(jobs), GPUS).tolist()
    return found


def shortest_makespan(jobs: Sequence[RoundJob]) -> list[float]:
    """OSSP: fractions with which all jobs end by the earliest possible time, found by bisection to 5 %."""
    gpus = _gpus(jobs)
    alone = np.array([job.remaining / job.throughput[0] for job in jobs])
    low, high = MAKESPAN_RANGE
    best = None
    while best is None or 1.05 * low < high:
        middle = (low + high) / 2
        least = alone / middle
        if float(least.max()) <= 1 and float(gpus @ np.maximum(least, 0)) <= GPUS:
            high, best = middle, least
        elif 1.05 * low >= high:
            low, high = low * 10, high * 10
        else:
            low = middle
    found: list[float] = centre_above(best, gpus, GPUS).tolist()
    return found


def _gpus(jobs: Sequence[RoundJob]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([float(job.gpus) for job in jobs])


POLICIES: Final[dict[str, Callable[[], Policy]]] = {
    "Gandiva-Fair": lambda: OneType(gandiva_fair),
    "Gavel max-min": lambda: OneType(max_min),
    "OSSP": lambda: OneType(shortest_makespan),
    "max-sum throughput": lambda: OneType(max_sum),
    "Themis FTF": lambda: FairFinish(GPUS),
    "AlloX": lambda: AlloX({"v100": GPUS}, ["v100"], ALLOX_CONSIDERED),
}


ROWS: Final = frozenset(POLICIES)
"""The policies that `measure` knows."""


def figures(jobs: Sequence[RoundJob], result: Result, alone: Mapping[int, float]) -> dict[str, float]:
    """Return the columns of the table: seconds, the ratio of time to fair time, percents and the share of busy time."""
    times = np.array([result.ends[job.number] - job.arrival for job in jobs])
    contention = max(1.0, len(jobs) / GPUS)
    ratios = [round(float(time) / (alone[job.number] * contention), 5) for time, job in zip(times, jobs, strict=True)]
    busy = [round(seconds / result.end, 5) for kind in result.busy for seconds in kind]
    return {
        "makespan": result.end,
        "JCT": float(times.mean()),
        "p99": float(np.percentile(times, 99)),
        "worst ρ": max(ratios),
        "ρ > 1.05": 100 * sum(ratio > UNFAIR for ratio in ratios) / len(ratios),
        "utilisation": sum(busy) / len(busy),
    }


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the table's figures under the policy `row`."""
    speeds = speeds_on("\n".join(lines("shockwave/tacc_throughputs.json")), "v100")
    jobs = read_shockwave(lines("shockwave/120_multigpu_dynamic.trace"), speeds)
    adaptation = Adaptation(speeds, read_schedule(lines("shockwave/gns_batch_sizes.csv")))
    rounds = Rounds([GPUS], RULES, POLICIES[row](), after_slice=adaptation.apply, after_round=adaptation.decide)
    alone = read_alone(lines("shockwave/job_profiles_120.csv"))
    if unknown := {job.number for job in jobs} - alone.keys():
        raise ValueError(f"job {min(unknown)} has no profile.")
    found = figures(jobs, rounds.run(jobs), alone)
    if strange := set(columns) - found.keys():
        raise ValueError(f"there is no column {min(strange)}.")
    return {column: found[column] for column in columns}
