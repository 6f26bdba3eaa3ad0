"""Table A: mean job completion time of Muri's traces on 8 nodes of 8 GPUs, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.sim.compat.muri import Order, ShortestFirst, TiresiasL, completions
from corral.sim.compat.muri_jobs import SLOWDOWN, MuriJob, Nodes, read_muri
from corral.sim.compat.muri_sharing import MuriOrder
from corral.sim.compat.muri_themis import Themis

NODES: Final = Nodes(8, 8)

ORDERS: Final[dict[str, Callable[[], Order]]] = {
    "SRTF": lambda: ShortestFirst(by_service=False),
    "SRSF": lambda: ShortestFirst(by_service=True),
    "Tiresias-L": TiresiasL,
    "Themis": Themis,
    "Muri-S": lambda: MuriOrder(durations_known=True),
    "Muri-L": lambda: MuriOrder(durations_known=False),
    "Muri-L, slow groups dissolved": lambda: MuriOrder(durations_known=False, dissolves=True),
}


AS_PROFILED: Final = frozenset({"Themis"})
"""Rows that were printed with iterations of their profiled time: otherwise trace3 could not end by the printed makespan."""

ROWS: Final = frozenset(ORDERS)
"""The policies that `measure` knows."""


def mean_completion(jobs: Sequence[MuriJob], ends: Sequence[float]) -> float:
    """Return the mean time from submission to end, in seconds."""
    return sum(end - job.submitted for end, job in zip(ends, jobs, strict=True)) / len(jobs)


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the mean completion time under the policy `row`, for each trace in `columns`."""
    found = {}
    for trace in columns:
        slowdown = 1.0 if row in AS_PROFILED else SLOWDOWN
        jobs = read_muri(lines(f"muri/{trace}.csv"), NODES, shares=row.startswith("Muri"), slowdown=slowdown)
        ends, _ = completions(jobs, NODES, ORDERS[row]())
        found[trace] = mean_completion(jobs, ends)
    return found
