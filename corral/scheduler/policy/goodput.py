"""The goodput of a job by its size, fitted to what its program reports.

Goodput is throughput times statistical efficiency: the work per second that brings the model as far as work at the
smallest batch would. Source: Pollux (Qiao et al., OSDI 2021), sections 3 and 4.1; the time of a step is a simpler
function of the size here, because programs report the throughput of whole steps only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from corral.scheduler.policy.history import JobHistory

EXPLORED: Final = 2
"""How many times its largest measured size a job may get; beyond that its model knows nothing (Pollux, section 4.1)."""
Size = tuple[int, int]
"""Devices and nodes."""


class StepTime(NamedTuple):
    """Seconds that one device takes for a unit of work: `alone` + `by_device` × devices + `network` on several nodes."""

    alone: float
    by_device: float = 0.0
    network: float = 0.0

    def at(self, devices: int, nodes: int) -> float:
        """Return the seconds at a size; above 0."""
        return self.alone + self.by_device * devices + (self.network if nodes > 1 else 0.0)

    def speed(self, devices: float, widest: int) -> float:
        """Return the work per second; more devices than `widest`, which the largest node has, are on several nodes."""
        whole = max(1, round(devices))
        return devices / self.at(whole, 1 if whole <= widest else 2)


def fit(throughput: Mapping[Size, float]) -> StepTime | None:
    """Return the non-negative coefficients that fit measured throughputs (work/s) best; None without a measurement.

    Least squares of relative errors. Of equally good fits the one with the fewest terms is taken, so one measurement
    promises perfect scaling until another one shows otherwise (Pollux's prior, section 4.1). O(measurements).
    """
    rows = []
    for (devices, nodes), speed in throughput.items():
        if speed > 0 and devices > 0:
            seconds = devices / speed
            rows.append((1 / seconds, devices / seconds, (nodes > 1) / seconds))
    if not rows:
        return None
    best: tuple[float, list[float]] | None = None
    for used in ((0,), (0, 1), (0, 2), (1,), (0, 1, 2), (1, 2)):
        found = _solve([[row[at] for at in used] for row in rows])
        if found is None or min(found) < 0 or not any(found):
            continue
        whole = [0.0, 0.0, 0.0]
        for at, value in zip(used, found, strict=True):
            whole[at] = value
        error = sum((sum(map(float.__mul__, whole, row)) - 1) ** 2 for row in rows)
        if best is None or error < best[0] - 1e-9:
            best = error, whole
    return StepTime(*best[1]) if best is not None else None


def with_profile(history: JobHistory, profile: Sequence[tuple[int, int, float]]) -> JobHistory:
    """Return what a job reported, and where it reported nothing the throughput of its profile, in its reports' unit.

    `profile` has devices, nodes and work per second in any unit. What is reported takes the place of the profile at that
    size, and says how fast the other sizes are in comparison with the profile. O(profile + measurements).
    """
    declared = {(devices, nodes): speed for devices, nodes, speed in profile}
    step = fit(declared)
    if step is None:
        return history
    known = {size: speed for size, speed in history.throughput.items() if size[0] > 0 and speed > 0}
    expected = [declared.get(size, size[0] / step.at(*size)) for size in known]
    if not all(expected):
        return history  # a speed that rounds to 0 has no ratio
    ratios = [speed / by_profile for speed, by_profile in zip(known.values(), expected, strict=True)]
    unit = sum(ratios) / len(ratios) if ratios else 1.0
    merged = {size: speed * unit for size, speed in declared.items() if size not in known}
    if not all(0 < speed < inf for speed in merged.values()):
        return history  # figures so far apart say nothing
    batch = history.batch_size if known else None  # of no known size
    return history._replace(throughput={**merged, **known}, batch_size=batch)


def _solve(rows: Sequence[Sequence[float]]) -> list[float] | None:
    """Return the least-squares solution of rows · x = 1 by the normal equations; None if it is not unique."""
    size = len(rows[0])
    table = [
        [sum(row[i] * row[j] for row in rows) for j in range(size)] + [sum(row[i] for row in rows)] for i in range(size)
    ]
    scale = max(abs(value) for line in table for value in line)
    for at in range(size):
        pivot = max(range(at, size), key=lambda line: abs(table[line][at]))
        table[at], table[pivot] = table[pivot], table[at]
        if abs(table[at][at]) <= 1e-9 * scale:
            return None
        for line in range(size):
            if line != at:
                part = table[line][at] / table[at][at]
                table[line] = [value - part * other for value, other in zip(table[line], table[at], strict=True)]
    return [table[at][size] / table[at][at] for at in range(size)]


def efficiency(noise: float, smallest: float, batch: float) -> float:
    """Return the progress of an example at a batch, relative to one at the smallest batch (Pollux, equation 7).

    `noise` is the gradient noise scale, all in examples: (noise + smallest) / (noise + batch).
    """
    return (noise + smallest) / (noise + batch)


class Goodput:
    """The goodput of one job at each size."""

    def __init__(self, history: JobHistory, least: int, widest: int, step: StepTime) -> None:
        """`least` is the devices of its smallest size, whose batch is the reference of its efficiency.

        More devices than `widest`, which the largest node has, are on several nodes.
        """
        self._step, self._least, self._widest = step, least, widest
        self._noise = history.gradient_noise
        devices, _ = list(history.throughput)[-1]
        self._batch = (history.batch_size or 0.0) / devices
        """Examples of one step of one device; the batch is taken to grow with the size."""
        self.most = max(devices for devices, _ in history.throughput) * EXPLORED
        """The most devices about which the measurements say something."""

    @classmethod
    def of(cls, history: JobHistory, least: int, widest: int) -> Goodput | None:
        """Return the goodput of a job from what it reported; None if it reported no throughput."""
        step = fit(history.throughput)
        return cls(history, least, widest, step) if step is not None else None

    def at(self, devices: int) -> float:
        """Return the goodput on so many devices, in the job's work per second; 0 for no device."""
        return self.on(devices, 1 if devices <= self._widest else 2)

    def on(self, devices: int, nodes: int) -> float:
        """Return the goodput on so many devices of so many nodes; 0 for no device."""
        if devices <= 0:
            return 0.0
        speed = devices / self._step.at(devices, nodes)
        if self._noise is None or not self._batch:
            return speed
        return speed * efficiency(self._noise, self._batch * self._least, self._batch * devices)
