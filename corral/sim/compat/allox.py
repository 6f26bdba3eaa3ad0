"""AlloX as the simulators of Gavel and Shockwave have it, for tables B and C.

AlloX (Le et al., EuroSys 2020) matches waiting jobs to places on the GPUs of several types, so that the mean completion
time is least. simulators.md, section 2.8, has the rules of the two simulators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from corral.kernel.errors import InvalidInput
from corral.sim.compat.rounds import RoundJob

Floats = NDArray[np.float64]

SLOWEST = 1e-10
"""Steps a second that stand for a type on which a job cannot run."""


class AlloX:
    """Jobs keep a GPU until they end; waiting ones are matched to the free GPUs, and to positions in their queues.

    A job in the last position of a GPU's queue adds its own time to the sum of completion times, the job before it twice
    its own time, and so on. scipy solves the assignment of n jobs to n × (free GPUs) positions in O(n³ × free GPUs). Which
    of many optima it returns decides the figures. A GPU counts as one place, whatever the width of a job: a job of s GPUs
    gets the fraction 1 / s, so it never counts as placed, and it is matched again each time.
    """

    shuffles_types = False
    skips_zero = False

    def __init__(self, types: Mapping[str, int], order: Sequence[str], considered: float = 1.0) -> None:
        """`order` are the types as in a job's fractions; `considered` is the part of waiting jobs, oldest first."""
        self.types = dict(types)
        self.order = tuple(order)
        self.considered = considered
        self.before: dict[int, list[float]] = {}

    def fractions(self, jobs: Sequence[RoundJob], now: float) -> Mapping[int, Sequence[float]]:
        """Return a fraction of 1 / GPUs on one type for jobs that have a place, and 0 otherwise."""
        placed = {job.number for job in jobs if sum(self.before.get(job.number, ())) == 1.0}
        places = self._free(placed)
        waiting = sorted((job for job in jobs if job.number not in placed), key=lambda job: job.arrival)
        waiting = waiting[: max(int(self.considered * len(waiting)), len(places))]
        given = {job.number: self.before.get(job.number, [0.0] * len(self.order)) for job in jobs}
        if waiting and places:
            for job, kind in self._heads(waiting, places, now):
                given[job.number] = list(given[job.number])
                given[job.number][kind] = 1.0 / job.gpus
        self.before = given
        return given

    def _free(self, placed: set[int]) -> list[int]:
        """Return the type of each free GPU, types in alphabetical order."""
        free = []
        for name in sorted(self.types):
            kind = self.order.index(name)
            taken = sum(self.before[number][kind] == 1.0 for number in placed)
            free += [kind] * (self.types[name] - taken)
        return free

    def _heads(self, waiting: Sequence[RoundJob], places: Sequence[int], now: float) -> list[tuple[RoundJob, int]]:
        """Return the first job of each place's queue, with the type of the place."""
        speeds = np.array([[job.throughput[kind] or SLOWEST for kind in places] for job in waiting])
        alone = np.array([[float(job.remaining)] for job in waiting]) / speeds
        rows, columns = assignment(alone, np.array([now - job.arrival for job in waiting]))
        last: dict[int, tuple[int, int]] = {}
        for row, column in zip(rows, columns, strict=True):
            position, place = divmod(column, len(places))
            last[place] = max(last.get(place, (-1, -1)), (position, row))
        return [(waiting[row], places[place]) for place, (_, row) in sorted(last.items())]


def assignment(alone: Floats, age: Floats) -> tuple[list[int], list[int]]:
    """Return the jobs and their columns in the cheapest matching; column k × places + p is the k-th last position of p.

    `alone` has the seconds of each job at each place. The age of a job, in seconds, changes only how ties are broken.
    Raises InvalidInput if scipy is not installed.
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise InvalidInput("no-scipy", "AlloX needs scipy: pip install 'corral[sim]'.") from None
    cost = np.hstack([position * alone for position in range(1, len(alone) + 1)]) + age[:, None]
    rows, columns = linear_sum_assignment(cost)
    return rows.tolist(), columns.tolist()
