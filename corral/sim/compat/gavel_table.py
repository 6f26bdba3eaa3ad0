"""Table C: Gavel's physical cluster and its continuous arrivals; times in hours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.sim.compat.allox import AlloX
from corral.sim.compat.gavel_jobs import TYPES, read_arrivals, read_trace
from corral.sim.compat.gavel_policies import Fifo, FinishTimeFairness, MaxMin, ShortestMakespan
from corral.sim.compat.rounds import Policy, RoundJob, RoundRules, Rounds
from corral.sim.traces.throughputs import read_speeds

HOUR: Final = 3600.0
PHYSICAL: Final = (8, 16, 24)
"""V100, P100 and K80 of the physical cluster."""
CONTINUOUS: Final = (36, 36, 36)
WINDOW: Final = range(4000, 5000)
"""The jobs of continuous arrivals whose completion times count."""
RULES: Final = RoundRules(round_seconds=360.0, reset_gap=1920.0, idle_forces_reset=True)
SEED: Final = 0
"""The seed of the printed figures."""
_ARRIVALS: Final = re.compile(r"(?P<rate>\d+\.\d)/h(, seed (?P<seed>\d+))?")

POLICIES: Final[dict[str, Callable[[Sequence[int], int], Policy]]] = {
    "FIFO": lambda types, seed: Fifo(dict(zip(TYPES, types, strict=True)), TYPES, seed),
    "LAS": lambda types, _: MaxMin(types, aware=False),
    "FTF": lambda types, _: FinishTimeFairness(types, aware=True),
    "Gavel": lambda types, _: MaxMin(types, aware=True),
    "AlloX": lambda types, _: AlloX(dict(zip(TYPES, types, strict=True)), TYPES),
    "makespan, Gavel": lambda types, _: ShortestMakespan(types, aware=True),
    "makespan, agnostic": lambda types, _: ShortestMakespan(types, aware=False),
}


ROWS: Final = frozenset(POLICIES)
"""The policies that `measure` knows."""


def mean_hours(jobs: Sequence[RoundJob], rounds: Rounds, watched: frozenset[int] | None) -> float:
    """Return the mean completion time of the watched jobs that did not fail, in hours."""
    result = rounds.run(jobs, watched)
    counted = [job for job in jobs if (watched is None or job.number in watched) and job.number not in result.failed]
    return sum(result.ends[job.number] - job.arrival for job in counted) / len(counted) / HOUR


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the columns of one policy: `JCT`, `makespan`, or continuous arrivals, such as `4.0/h` and `4.0/h, seed 1`."""
    return {column: _cell(row, column, lines) for column in columns}


def _cell(row: str, column: str, lines: Callable[[str], Iterable[str]]) -> float:
    if arrivals := _ARRIVALS.fullmatch(column):
        rate, seed = arrivals["rate"], int(arrivals["seed"] or SEED)
        speeds = read_speeds("\n".join(lines("gavel/simulation_throughputs.json")), TYPES)
        jobs = read_arrivals(lines(f"gavel/published_continuous_seed{seed}_rate{rate}.csv.gz"), speeds)
        rounds = Rounds(CONTINUOUS, RULES, POLICIES[row](CONTINUOUS, seed), seed=seed)
        return mean_hours(jobs, rounds, frozenset(WINDOW))
    if column not in ("JCT", "makespan"):
        raise ValueError(f"there is no column {column}.")
    speeds = read_speeds("\n".join(lines("gavel/physical_cluster_throughputs.json")), TYPES)
    rounds = Rounds(PHYSICAL, RULES, POLICIES[row](PHYSICAL, SEED), seed=SEED)
    if column == "makespan":
        return rounds.run(read_trace(lines("gavel/minimize_makespan.trace"), speeds)).end / HOUR
    return mean_hours(read_trace(lines("gavel/max_min_fairness.trace"), speeds), rounds, None)
