"""The assignment of jobs to places on devices of several models at which their mean completion time is least.

On one machine the last job adds its own time to the sum of completion times, the job before it twice its own time, and
so on (Horn, 1973; Bruno, Coffman and Sethi, 1974). So the least sum is a cheapest matching of jobs to pairs of machine
and position from the end. numpy and scipy are imported only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.float64]


class Planned(NamedTuple):
    """Where a job is to run, and when."""

    start: float
    """Seconds from now until it is to start."""
    job: int
    """Its position among the jobs."""
    model: int
    """The position of its model."""


def least_total(work: Sequence[Sequence[float]], free_in: Sequence[Sequence[float]]) -> list[Planned]:
    """Return where and when each job runs so that the sum of completion times is least, by start and job.

    `work` has the seconds of each job on a device of each model, infinite where it cannot run; each job can run on some
    model that has a device. `free_in` has, for each model, the seconds until each of its devices is free.
    With n jobs, the i-th device of a model to become free needs at most n / i positions: an exchange of all jobs of two
    devices shows that the one that is free earlier has at least as many. So there are O(n log n) positions for each of m
    models, and the matching takes O(n³ m log n).
    """
    jobs = len(work)
    times: Floats = np.array(work)
    models, delays, positions, devices = [], [], [], []
    for model, ready in enumerate(free_in):
        for rank, delay in enumerate(sorted(ready)[:jobs], 1):
            for position in range(1, jobs // rank + 1):
                models.append(model)
                delays.append(delay)
                positions.append(position)
                devices.append(rank)
    cost = times[:, models] * np.array(positions) + np.array(delays)
    rows, columns = linear_sum_assignment(cost)
    queues: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for job, at in zip(rows.tolist(), columns.tolist(), strict=True):
        queues.setdefault((models[at], devices[at]), []).append((positions[at], job, at))
    found = []
    for (model, _), queue in queues.items():
        clock = delays[queue[0][2]]
        for _, job, _ in sorted(queue, reverse=True):
            found.append(Planned(clock, job, model))
            clock += float(times[job, model])
    return _in_order(sorted(found), work)


def _in_order(found: Sequence[Planned], work: Sequence[Sequence[float]]) -> list[Planned]:
    """Return the same plan in which, of jobs that take equally long everywhere, the first one starts first."""
    alike: dict[tuple[float, ...], list[Planned]] = {}
    for planned in found:
        alike.setdefault(tuple(work[planned.job]), []).append(planned)
    return sorted(
        planned._replace(job=job)
        for same in alike.values()
        for planned, job in zip(same, sorted(each.job for each in same), strict=True)
    )
