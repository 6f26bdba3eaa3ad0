"""Table E: GPUs of the openb cluster that are allocated when pods have asked for 130 % of them, mean of ten seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.sim.compat.openb import Shape, inflated, read_machines, read_pods, typical_pods
from corral.sim.compat.openb_placing import (
    BestFit,
    Clustering,
    DotProduct,
    FragmentationGradient,
    Packing,
    Score,
    allocated_at,
    allocated_shares,
)

SEEDS: Final = range(42, 52)
"""The seeds of FGD's artifact. Its generator is another one, so that the draws differ."""

SCORES: Final[dict[str, Callable[[Sequence[Shape]], Score | None]]] = {
    "Random": lambda pods: None,
    "DotProd": lambda pods: DotProduct(),
    "Clustering": lambda pods: Clustering(),
    "Packing": lambda pods: Packing(),
    "BestFit": lambda pods: BestFit(),
    "FGD": lambda pods: FragmentationGradient(typical_pods(pods)),
}


ROWS: Final = frozenset(SCORES)
"""The policies that `measure` knows."""


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the percentage allocated under the policy `row`; the columns are levels of demand, such as `130 %`."""
    machines = read_machines(lines("openb/openb_node_list_gpu_node.csv"))
    pods = read_pods(lines("openb/openb_pod_list_default.csv"))
    score = SCORES[row](pods)
    found = {}
    for column in columns:
        percent = int(column.removesuffix(" %"))
        levels = []
        for seed in SEEDS:
            workload = inflated(pods, machines, percent / 100, seed)
            levels.append(allocated_at(percent, *allocated_shares(workload, machines, score, seed)))
        found[column] = 100 * sum(levels) / len(levels)
    return found
