"""An interior-point method for the allocation problems of Gavel on several types of GPU (table C).

The problem is: maximise t subject to value_j . x_j >= t for each job j, x >= 0, sum over types x_j <= 1, and for each type
sum over jobs gpus_j x_j <= capacity. Its optimum is rarely unique, and the anchor's figures are those of an interior-point
solver (ECOS), which ends near the analytic centre of the optimal set; so does this one. The matrix of a step is a block of
types x types a job, bordered by the capacities and t. O(jobs types^3) a step, about 20 steps a solution.

Method: Mehrotra's predictor and corrector (SIAM J. Optimization 2, 1992) from an infeasible start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 60
TOLERANCE = 1e-8
"""Largest residual of a constraint, where data are about 1 (the tolerance of ECOS)."""
GAP = 1e-7
"""Mean product of slack and dual at which a solution counts as optimal; only centring steps follow."""
CENTRED = 0.01
"""Largest relative difference between products of slack and dual at the analytic centre."""
REGULARISATION = 1e-14
"""Part of a block's trace that is added to its diagonal, so that it can be inverted."""
BACK_OFF = 0.99
"""Part of the way to the boundary that a step may go."""


@dataclass
class _Rows:
    """One number a constraint, in the four groups of the problem."""

    value: Floats
    sum: Floats
    capacity: Floats
    sign: Floats

    def groups(self) -> tuple[Floats, Floats, Floats, Floats]:
        return (self.value, self.sum, self.capacity, self.sign)

    def count(self) -> int:
        return sum(group.size for group in self.groups())


class _Problem:
    def __init__(self, value: Floats, gpus: Floats, capacity: Floats, goal: float | None) -> None:
        self.value, self.gpus, self.capacity = value, gpus, capacity
        self.goal = goal
        self.objective = 1.0 if goal is None else 0.0

    def slack(self, x: Floats, t: float) -> _Rows:
        """Return the slack of each constraint."""
        return _Rows(
            (self.value * x).sum(axis=1) - t, 1 - x.sum(axis=1), self.capacity - self.gpus @ x, x
        )  # fmt: skip

    def change(self, dx: Floats, dt: float) -> _Rows:
        """Return the change of the slacks."""
        return _Rows((self.value * dx).sum(axis=1) - dt, -dx.sum(axis=1), -(self.gpus @ dx), dx)

    def gradient(self, rows: _Rows) -> tuple[Floats, float]:
        """Return the transposed constraints applied to a number a row: the part of x, and that of t."""
        part = (
            self.value * rows.value[:, None]
            - rows.sum[:, None]
            - self.gpus[:, None] * rows.capacity[None, :]
            + rows.sign
        )
        return part, -float(rows.value.sum())


class _Factors:
    """The matrix of one step, factorised: blocks of the jobs, then the border of capacities and t."""

    def __init__(self, problem: _Problem, weight: _Rows) -> None:
        self.problem, types = problem, len(problem.capacity)
        blocks = weight.value[:, None, None] * problem.value[:, :, None] * problem.value[:, None, :]
        blocks += weight.sum[:, None, None]
        trace = np.einsum("jww->j", blocks)[:, None]
        blocks[:, np.arange(types), np.arange(types)] += weight.sign + REGULARISATION * trace
        self.inverse = np.linalg.inv(blocks)
        self.free = problem.goal is None
        border = np.zeros((*problem.value.shape, types + self.free))
        border[:, np.arange(types), np.arange(types)] = problem.gpus[:, None]
        if self.free:
            border[:, :, types] = -weight.value[:, None] * problem.value
        self.border = border
        self.solved = self.inverse @ border
        corner = np.zeros((types + self.free, types + self.free))
        corner[np.arange(types), np.arange(types)] = -1 / weight.capacity
        if self.free:
            corner[types, types] = weight.value.sum()
        self.schur = corner - np.einsum("jwa,jwb->ab", border, self.solved)

    def solve(self, part: Floats, part_t: float) -> tuple[Floats, float]:
        """Return the change of x and t for a right-hand side."""
        first = (self.inverse @ part[:, :, None])[:, :, 0]
        right = np.zeros(len(self.schur))
        if self.free:
            right[-1] = part_t
        right -= np.einsum("jwa,jw->a", self.border, first)
        edge = np.linalg.solve(self.schur, right)
        return first - self.solved @ edge, float(edge[-1]) if self.free else 0.0


def fairest(value: Floats, gpus: Floats, capacity: Floats, goal: float | None = None) -> tuple[Floats, float]:
    """Return the fractions x (jobs by types) and t, the smallest value_j . x_j.

    With a `goal`, t is that and the analytic centre of what reaches it is returned; it must be reachable with room to
    spare. Raises ValueError when the method does not converge.
    """
    unit = float(value.max(axis=1).min()) if goal is None else goal
    if unit <= 0:
        raise ValueError("A job runs on no type of GPU.")
    problem = _Problem(value / unit, gpus, capacity, None if goal is None else 1.0)
    x = np.minimum(1 / (2 * len(capacity)), capacity / (2 * gpus.sum()))[None, :].repeat(len(value), axis=0)
    t = 1.0 if goal is not None else float((problem.value * x).sum(axis=1).min()) / 2
    slack = _Rows(*(np.maximum(group, 1e-2) for group in problem.slack(x, t).groups()))
    dual = _Rows(*(1 / group for group in slack.groups()))
    feasible, gap = False, 1.0
    for _ in range(MOST_STEPS):
        gap = _dot(slack, dual) / slack.count()
        lacking = _minus(problem.slack(x, t), slack)
        rest, rest_t = problem.gradient(dual)
        rest_t += problem.objective
        feasible = max(float(np.abs(group).max()) for group in lacking.groups()) < TOLERANCE
        closed = goal is not None or gap < GAP
        if feasible and closed and _spread(slack, dual) < CENTRED:
            return np.clip(x, 0.0, 1.0), t * unit
        weight = _Rows(*(d / s for d, s in zip(dual.groups(), slack.groups(), strict=True)))
        factors = _Factors(problem, weight)
        target = _target(problem, factors, slack, dual, lacking, (rest, rest_t), gap) if not closed else None
        step = _direction(problem, factors, slack, dual, lacking, (rest, rest_t), target or (gap, None))
        dx, dt, dslack, ddual = step
        length = min(_longest(slack, dslack), _longest(dual, ddual))
        x, t = x + length * dx, t + length * dt
        slack, dual = _plus(slack, dslack, length), _plus(dual, ddual, length)
    if feasible and gap < 100 * GAP:
        return np.clip(x, 0.0, 1.0), t * unit
    raise ValueError("The interior-point method does not converge.")


_Step = tuple[Floats, float, _Rows, _Rows]


def _target(
    problem: _Problem, factors: _Factors, slack: _Rows, dual: _Rows, lacking: _Rows,
    rest: tuple[Floats, float], gap: float,
) -> tuple[float, _Rows]:  # fmt: skip
    """Return Mehrotra's target of the gap and the second-order term, from a step towards a gap of 0."""
    _, _, dslack, ddual = _direction(problem, factors, slack, dual, lacking, rest, (0.0, None))
    ahead = _dot(_plus(slack, dslack, _longest(slack, dslack)), _plus(dual, ddual, _longest(dual, ddual)))
    ratio = ahead / slack.count() / gap
    second = _Rows(*(a * b for a, b in zip(dslack.groups(), ddual.groups(), strict=True)))
    return gap * ratio**3, second


def _direction(
    problem: _Problem, factors: _Factors, slack: _Rows, dual: _Rows, lacking: _Rows,
    rest: tuple[Floats, float], target: tuple[float, _Rows | None],
) -> _Step:  # fmt: skip
    """Return the Newton step towards dual * slack = target."""
    goal, second = target
    seconds: tuple[Floats | float, ...] = second.groups() if second is not None else (0.0, 0.0, 0.0, 0.0)
    # The change of the dual is target / slack - dual - weight * (change of the slack).
    aimed = [
        (goal - extra) / s - d - d / s * less
        for s, d, less, extra in zip(slack.groups(), dual.groups(), lacking.groups(), seconds, strict=True)
    ]
    pull, pull_t = problem.gradient(_Rows(*aimed))
    dx, dt = factors.solve(rest[0] + pull, rest[1] + pull_t)
    change = problem.change(dx, dt)
    dslack = _Rows(*(less + moved for less, moved in zip(lacking.groups(), change.groups(), strict=True)))
    ddual = _Rows(
        *(
            (goal - extra) / s - d - d / s * moved
            for s, d, moved, extra in zip(slack.groups(), dual.groups(), dslack.groups(), seconds, strict=True)
        )
    )
    return dx, dt, dslack, ddual


def _dot(a: _Rows, b: _Rows) -> float:
    return sum(float((x * y).sum()) for x, y in zip(a.groups(), b.groups(), strict=True))


def _plus(a: _Rows, b: _Rows, length: float) -> _Rows:
    return _Rows(*(x + length * y for x, y in zip(a.groups(), b.groups(), strict=True)))


def _minus(a: _Rows, b: _Rows) -> _Rows:
    return _Rows(*(x - y for x, y in zip(a.groups(), b.groups(), strict=True)))


def _longest(at: _Rows, step: _Rows) -> float:
    """Return the longest step, 1 at most, that keeps all rows positive."""
    longest = 1.0
    for value, change in zip(at.groups(), step.groups(), strict=True):
        falling = change < 0
        if falling.any():
            longest = min(longest, BACK_OFF * float((value[falling] / -change[falling]).min()))
    return longest


def _spread(slack: _Rows, dual: _Rows) -> float:
    """Return how unequal the products of slack and dual are, relative to their mean."""
    products = np.concatenate([(s * d).ravel() for s, d in zip(slack.groups(), dual.groups(), strict=True)])
    return float(np.abs(products / products.mean() - 1).max())
