"""The linear programs of Gavel (Narayanan et al., OSDI 2020, section 4): fractions of time by job and model.

In all of them a fraction is from 0 to 1, the fractions of a job add up to at most 1, and the jobs on a model take at most
its devices: sum of devices x fraction <= capacity. The optimum of such a program is often not unique. Of all optima the
one with the most work of all jobs together is taken: sum of devices x speed x fraction. Equal jobs get equal fractions.

HiGHS solves them (scipy, imported only for that). One program of n different jobs and m models has n m variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corral.scheduler.policy.gavel.linear_program import solve

Floats = NDArray[np.float64]
Rows = tuple[tuple[float, ...], ...]
SLACK: Final = 1e-7
"""By what part of itself the best value may be missed by the optimum with the most work."""


def max_min(
    speeds: Sequence[Sequence[float]], devices: Sequence[int], weights: Sequence[float], capacity: Sequence[int]
) -> Floats:
    """Return the fractions at which the smallest normalised throughput is largest (section 4.1).

    It is devices x throughput / (weight x throughput on an equal share of each model): least attained service, by what a
    device of a model is worth to a job. Speeds are by job and model, in any unit for each job. Two programs.
    """
    share = np.array(capacity, dtype=np.float64) / max(1, sum(capacity))
    asked = [(tuple(row), count, weight) for row, count, weight in zip(speeds, devices, weights, strict=True)]
    of_kind = {}
    for row, count, weight in dict.fromkeys(asked):
        equal = float(np.dot(row, share)) or 1.0
        of_kind[row, count, weight] = tuple([count * speed / (weight * equal) for speed in row])
    values = [of_kind[kind] for kind in asked]
    return fairest(values, speeds, devices, capacity)[0]


def shortest_makespan(
    speeds: Sequence[Sequence[float]], devices: Sequence[int], left: Sequence[float], capacity: Sequence[int]
) -> Floats:
    """Return the fractions at which the last of all jobs ends soonest (section 4.2); `left` is in seconds at speed 1."""
    values = [tuple(speed / rest for speed in row) for row, rest in zip(speeds, left, strict=True)]
    return fairest(values, speeds, devices, capacity)[0]


def finish_time_fairness(
    speeds: Sequence[Sequence[float]],
    devices: Sequence[int],
    ages: Sequence[float],
    done: Sequence[float],
    left: Sequence[float],
    capacity: Sequence[int],
) -> Floats:
    """Return the fractions at which the worst finish-time fairness rho is best, to a thousandth (section 4.2).

    rho is (age + left / throughput) / (all work / throughput on 1/n of each model), after Themis. Of a given rho a program
    finds whether it can be reached: bisection, some ten programs.
    """
    table, count = np.array(speeds), len(devices)
    share = np.array(capacity)[None, :] / (count * np.array(devices)[:, None])
    share = share / np.maximum(share.sum(axis=1, keepdims=True), 1.0)
    rest, age = np.array(left), np.array(ages)
    alone = (np.array(done) + rest) / np.maximum((table * share).sum(axis=1), 1e-12)

    def values(rho: float) -> list[tuple[float, ...]]:
        needed = rest / np.maximum(rho * alone - age, 1e-9)
        return [tuple(row) for row in (table / needed[:, None]).tolist()]

    def reached(rho: float) -> bool:
        asked = list(zip(values(rho), map(tuple, speeds), devices, strict=True))
        classes, counts, _ = _classes(asked)
        return _Fairest(classes, counts, capacity).least >= 1 - 1e-6

    low = high = float(((age + rest / table.max(axis=1)) / alone).max()) * (1 + 1e-9)
    while not reached(high):
        low, high = high, high * 2
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return fairest(values(high), speeds, devices, capacity)[0]


def cheapest(
    speeds: Sequence[Sequence[float]], devices: Sequence[int], prices: Sequence[float], capacity: Sequence[int]
) -> Floats:
    """Return the fractions with the most work for the money (section 4.2), and of those the ones with the most work.

    The ratio of work to price, both over all jobs, is linear-fractional; its programs are linear after Charnes and Cooper
    (1962). Prices are by model, in any unit of money per device and time. Two programs.
    """
    classes, counts, back = _classes([(tuple(row), count) for row, count in zip(speeds, devices, strict=True)])
    rows = np.array([row for row, _ in classes])
    takes = np.array([float(count) for _, count in classes])[:, None] * np.array(counts)[:, None] * np.ones_like(rows)
    model = _Model(rows > 0, takes, capacity)
    worth, costs = (rows * takes).ravel(), (takes * np.array(prices, dtype=np.float64)[None, :]).ravel()
    scaled = np.vstack([np.hstack([model.table, -model.bounds[:, None]])])
    best = _solve(
        np.append(-worth, 0.0), scaled, np.zeros(len(model.bounds)), [*model.limits, (0.0, None)], np.append(costs, 0.0)
    )
    ratio = float(np.dot(worth, best[:-1]))
    gain = np.vstack([model.table, ratio * costs * (1 - SLACK) - worth])
    x = _solve(-worth, gain, np.append(model.bounds, 0.0), model.limits)
    return np.clip(x.reshape(rows.shape), 0.0, 1.0)[back]


def fairest(
    values: Sequence[Sequence[float]],
    speeds: Sequence[Sequence[float]],
    devices: Sequence[int],
    capacity: Sequence[int],
) -> tuple[Floats, float]:
    """Return the fractions at which the smallest sum of value x fraction of a job is largest, and that sum."""
    asked = [(tuple(value), tuple(row), count) for value, row, count in zip(values, speeds, devices, strict=True)]
    classes, counts, back = _classes(asked)
    x, least = _fairest(tuple(classes), tuple(counts), tuple(capacity))
    return x[back], least


def _classes(rows: Sequence[Any]) -> tuple[list[Any], list[int], list[int]]:
    """Return the different rows, how often each is there, and for each row the position of its like."""
    at: dict[Any, int] = {}
    back = [at.setdefault(row, len(at)) for row in rows]
    counts = [0] * len(at)
    for position in back:
        counts[position] += 1
    return list(at), counts, back


@lru_cache(256)
def _fairest(
    classes: tuple[tuple[tuple[float, ...], tuple[float, ...], int], ...],
    counts: tuple[int, ...],
    capacity: tuple[int, ...],
) -> tuple[Floats, float]:
    """Solve it for classes of equal jobs; the same question is asked at each plan until a job comes or goes."""
    first = _Fairest(classes, counts, capacity)
    answer = first.most_work()
    answer.setflags(write=False)
    return answer, first.least


class _Fairest:
    """The program of the largest smallest sum of value x fraction, for classes of equal jobs."""

    def __init__(
        self,
        classes: Sequence[tuple[tuple[float, ...], tuple[float, ...], int]],
        counts: Sequence[int],
        capacity: Sequence[int],
    ) -> None:
        values = np.array([value for value, _, _ in classes])
        self._speeds = np.array([row for _, row, _ in classes])
        ones = np.ones_like(self._speeds)
        self._takes = np.array([float(count) for _, _, count in classes])[:, None] * np.array(counts)[:, None] * ones
        self._model = model = _Model(self._speeds > 0, self._takes, capacity)
        n, m = values.shape
        scale = float(values.max())
        self._sums = np.zeros((n, n * m))
        for row in range(n):
            self._sums[row, row * m : (row + 1) * m] = -values[row] / scale
        table = np.vstack([np.hstack([model.table, np.zeros((n + m, 1))]), np.hstack([self._sums, np.ones((n, 1))])])
        goal = np.append(np.zeros(n * m), -1.0)
        found = _solve(goal, table, np.append(model.bounds, np.zeros(n)), [*model.limits, (0.0, None)])
        self._least = float(found[-1])
        self.least = self._least * scale
        """The largest smallest sum."""

    def most_work(self) -> Floats:
        """Return, of all fractions at which the smallest sum is largest, the ones with the most work, by class."""
        model, count = self._model, len(self._speeds)
        table = np.vstack([model.table, self._sums])
        bounds = np.append(model.bounds, np.full(count, -self._least * (1 - SLACK)))
        x = _solve(-(self._speeds * self._takes).ravel(), table, bounds, model.limits)
        return np.clip(x.reshape(self._speeds.shape), 0.0, 1.0)


class _Model:
    """What all programs share: rows of at most 1, columns of at most the capacity, and fractions that must be 0."""

    def __init__(self, may: NDArray[np.bool_], takes: Floats, capacity: Sequence[int]) -> None:
        n, m = may.shape
        self.table = np.zeros((n + m, n * m))
        for row in range(n):
            self.table[row, row * m : (row + 1) * m] = 1.0
        for column in range(m):
            self.table[n + column, column::m] = takes[:, column]
        self.bounds = np.append(np.ones(n), np.array(capacity, dtype=np.float64))
        self.limits: list[tuple[float, float | None]] = [(0.0, None if each else 0.0) for each in may.ravel()]


def _solve(
    costs: Floats,
    table: Floats,
    bounds: Floats,
    limits: Sequence[tuple[float, float | None]],
    normal: Floats | None = None,
) -> Floats:
    """Return the x with table · x <= bounds, and normal · x = 1 if that is given, at which costs · x is smallest."""
    low = np.full(len(bounds), -np.inf)
    if normal is not None:
        table, low, bounds = np.vstack([table, normal[None, :]]), np.append(low, 1.0), np.append(bounds, 1.0)
    most = np.array([np.inf if high is None else high for _, high in limits])
    return solve(costs, table, low, bounds, most)
