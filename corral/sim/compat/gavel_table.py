"""Table C: Gavel's physical cluster and its continuous arrivals; times in hours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

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

POLICIES: Final[dict[str, Callable[[Sequence[int]], Policy]]] = {
    "FIFO": lambda types: Fifo(dict(zip(TYPES, types, strict=True)), TYPES, SEED),
    "LAS": lambda types: MaxMin(types, aware=False),
    "FTF": lambda types: FinishTimeFairness(types, aware=True),
    "Gavel": lambda types: MaxMin(types, aware=True),
    "makespan, Gavel": lambda types: ShortestMakespan(types, aware=True),
    "makespan, agnostic": lambda types: ShortestMakespan(types, aware=False),
}


ROWS: Final = frozenset(POLICIES)
"""The policies that `measure` knows."""


def mean_hours(jobs: Sequence[RoundJob], rounds: Rounds, watched: frozenset[int] | None) -> float:
    """Return the mean completion time of the watched jobs that did not fail, in hours."""
    result = rounds.run(jobs, watched)
    counted = [job for job in jobs if (watched is None or job.number in watched) and job.number not in result.failed]
    return sum(result.ends[job.number] - job.arrival for job in counted) / len(counted) / HOUR


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the columns of one policy: `JCT`, `makespan`, or jobs an hour of continuous arrivals, such as `4.0/h`."""
    return {column: _cell(row, column, lines) for column in columns}


def _cell(row: str, column: str, lines: Callable[[str], Iterable[str]]) -> float:
    if column not in ("JCT", "makespan") and not column.endswith("/h"):
        raise ValueError(f"there is no column {column}.")
    if column.endswith("/h"):
        speeds = read_speeds("\n".join(lines("gavel/simulation_throughputs.json")), TYPES)
        rate = column.removesuffix("/h")
        jobs = read_arrivals(lines(f"gavel/published_continuous_seed{SEED}_rate{rate}.csv.gz"), speeds)
        return mean_hours(jobs, Rounds(CONTINUOUS, RULES, POLICIES[row](CONTINUOUS), seed=SEED), frozenset(WINDOW))
    speeds = read_speeds("\n".join(lines("gavel/physical_cluster_throughputs.json")), TYPES)
    rounds = Rounds(PHYSICAL, RULES, POLICIES[row](PHYSICAL), seed=SEED)
    if column == "makespan":
        return rounds.run(read_trace(lines("gavel/minimize_makespan.trace"), speeds)).end / HOUR
    return mean_hours(read_trace(lines("gavel/max_min_fairness.trace"), speeds), rounds, None)
