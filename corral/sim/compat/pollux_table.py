"""Table D: mean completion time of Pollux' workloads 1 to 6 under its baselines, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.sim.compat.pollux import Optimus, Scheduler, Tiresias, completions, read_workload
from corral.sim.traces.pollux_profiles import KINDS, read_application

POLICIES: Final[dict[str, Callable[[], Scheduler]]] = {
    "Tiresias + tuned": Tiresias,
    "Optimus + oracle + tuned": Optimus,
}


ROWS: Final = frozenset(POLICIES)
"""The policies that `measure` knows."""


def measure(row: str, columns: Sequence[str], lines: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """Return the mean completion time under the policy `row`; the columns are numbers of workloads."""
    applications = {name: read_application(name, lambda file: lines(f"pollux/profiles/{file}")) for name in KINDS}
    found = {}
    for column in columns:
        jobs = read_workload(lines(f"pollux/workloads/workload-{column}.csv"), applications)
        times = completions(jobs, POLICIES[row]())
        found[column] = sum(times) / len(times)
    return found
