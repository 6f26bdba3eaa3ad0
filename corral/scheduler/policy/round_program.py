"""Shockwave's integer programs (Zheng et al., NSDI 2023) over a window of rounds, solved by HiGHS.

The first program says how many of the rounds each job gets. It maximises the Nash social welfare, the sum of the
logarithms of what is done of each job after the window, less a price for the longest remaining time. The logarithm is
linear between fifths of the work. It is concave, so it needs no binary variables. The second program says which rounds
these are: each job's mean round is early, by the weight of the job.

Which rounds a job gets does not count in the first program. So it is solved without rounds first: a whole number for each
job, and the devices of all rounds together. If the rounds can be packed, that is the optimum with the devices of each
round, too. Otherwise the program with a binary variable for each job and round is solved.

The order imports this module, and with it numpy and scipy, when it makes its first plan. Effort is bounded by nodes of the
search, not by seconds: the same question must get the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, exp, inf, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from corral.scheduler.policy.highs_threads import one_thread

MAKESPAN_PRICE: Final = 1e-3
"""What a second of the longest remaining time costs, in units of welfare."""
LATE_POWER: Final = 12.0
LAST_POWER: Final = 100.0
"""The power of rho by which a late job counts; the second one for a job that ends within a round."""
MOST_WEIGHT: Final = 1e4
"""The most that a late job counts: larger numbers would drown the others in the solver's tolerance."""
_POINTS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LOGARITHMS: Final = tuple(log(max(point, 1e-6)) for point in _POINTS)


class _Effort(NamedTuple):
    """How long is searched."""

    nodes: int
    gap: float
    """By what part of itself the optimum may be missed."""


_USUAL: Final = _Effort(500, 1e-5)
"""Most of these programs need one node."""
_BY_ROUND: Final = _Effort(100, 1e-3)
"""For the program with a binary variable for each job and round; the gap is the authors' own. 64 jobs took up to 1.5 s."""


class Bidder(NamedTuple):
    """A job that may run in the window; times in seconds."""

    devices: int
    done: float
    """The part of its work that is done, from 0 to 1."""
    left: float
    """The service that the rest needs, above 0 and at most some years."""
    rho: float = 1.0
    """Its finish time on an equal share from now on, over its fair one."""
    fair_in: float = inf
    """From now to its fair finish; below 0: it has passed."""
    share: float = 1.0
    """The part of the time for which an equal share lets it run, above 0 to 1."""


class Window(NamedTuple):
    """The devices of all machines in each of the next rounds."""

    devices: int
    rounds: int
    round_seconds: float

    def useful(self, bidder: Bidder) -> int:
        """Return in how many rounds a job has work to do; 0 for a job that is larger than the machines."""
        if bidder.devices > self.devices:
            return 0
        return max(1, min(self.rounds, ceil(bidder.left / self.round_seconds - 1e-9)))

    def fair(self, bidder: Bidder) -> float:
        """Return the fewest rounds with which a job can still end fairly, if it has its share after the window.

        It is infinite if the fair finish is within the window, as in the authors' program. A job that is larger than the
        machines needs none.
        """
        if bidder.devices > self.devices:
            return 0
        spare = bidder.fair_in - self.rounds * self.round_seconds
        if spare < 0:
            return inf
        return ceil(max(0.0, (bidder.left - bidder.share * spare) / self.round_seconds - 1e-9))

    def worth(self, bidder: Bidder, rounds: int) -> float:
        """Return the logarithm of what is done of a job after so many rounds, as the program has it."""
        gained = min(1.0, rounds * self.round_seconds / bidder.left)
        return float(np.interp(bidder.done + (1 - bidder.done) * gained, _POINTS, _LOGARITHMS))

    def weight(self, bidder: Bidder) -> float:
        """Return how much a job counts where not all can end fairly; 1 if it is not late."""
        if bidder.rho <= 1:
            return 1.0
        power = LAST_POWER if bidder.left < self.round_seconds else LATE_POWER
        return exp(min(log(MOST_WEIGHT), power * log(bidder.rho)))


def planned_rounds(bidders: Sequence[Bidder], window: Window) -> list[int]:
    """Return the rounds in which each job runs, as bits: bit r is round r. No round has more jobs than fit.

    All jobs end fairly where that can be; otherwise late ones count more. Up to eight searches of at most 500 nodes, of
    programs with jobs x rounds binary variables.
    """
    useful = [window.useful(each) for each in bidders]
    if sum(each.devices for each in bidders) <= window.devices:
        return [(1 << count) - 1 for count in useful]
    least, equal = [window.fair(each) for each in bidders], [1.0] * len(bidders)
    if all(count <= most for count, most in zip(least, useful, strict=True)):
        found = _planned(bidders, window, [int(count) for count in least], equal)
        if found is not None:
            return found
    weights = [window.weight(each) for each in bidders]
    found = _planned(bidders, window, [0] * len(bidders), weights)
    return found if found is not None else first_fit(bidders, window, useful, weights)


def _planned(
    bidders: Sequence[Bidder], window: Window, least: Sequence[int], weights: Sequence[float]
) -> list[int] | None:
    """Return the rounds of each job, which has at least so many; None if that cannot be, or was not found."""
    counts, _ = _welfare(bidders, window, least, weights, by_round=False)
    if counts is None:
        return None
    packed = _packed(bidders, window, counts, weights)
    if packed is not None:
        return packed
    counts, bits = _welfare(bidders, window, least, weights, by_round=True)
    return None if counts is None else _packed(bidders, window, counts, weights) or bits


def _welfare(
    bidders: Sequence[Bidder], window: Window, least: Sequence[int], weights: Sequence[float], *, by_round: bool
) -> tuple[list[int] | None, list[int]]:
    """Return how many rounds each job gets, and, `by_round`, which ones; None where no answer was found."""
    program, scale = _Program(), 1 / (len(bidders) * window.rounds)
    longest = program.column(MAKESPAN_PRICE * window.round_seconds)
    counts = []
    for each, low, weight in zip(bidders, least, weights, strict=True):
        most = window.useful(each)
        count, worth = program.column(0.0, low, most, whole=True), program.column(-weight * scale, -inf, 0.0)
        counts.append(count)
        for slope, base in _lines([window.worth(each, rounds) for rounds in range(most + 1)]):
            program.row([(worth, 1.0), (count, -slope)], high=base)
        program.row([(longest, 1.0), (count, 1.0)], low=each.left / window.round_seconds)
    sizes = [each.devices for each in bidders]
    program.row(zip(counts, sizes, strict=True), high=window.devices * window.rounds)
    wide = [count for count, size in zip(counts, sizes, strict=True) if 2 * size > window.devices]
    program.row([(count, 1.0) for count in wide], high=window.rounds)
    cells: list[list[int]] = []
    if by_round:
        cells = [[program.column(0.0, 0.0, 1.0, whole=True) for _ in range(window.rounds)] for _ in bidders]
        for count, row in zip(counts, cells, strict=True):
            program.row([(count, -1.0), *((cell, 1.0) for cell in row)], low=0.0, high=0.0)
        _limit_each_round(program, cells, sizes, window)
    found = program.solved(_BY_ROUND if by_round else _USUAL)
    if found is None:
        return None, []
    return [round(found[count]) for count in counts], [_bits(found[row]) for row in cells]


def _packed(
    bidders: Sequence[Bidder], window: Window, counts: Sequence[int], weights: Sequence[float]
) -> list[int] | None:
    """Return which rounds each job gets if it gets so many; None if they were not found, or there are none."""
    program, cells = _Program(), list[list[int]]()
    for count, weight in zip(counts, weights, strict=True):
        cost = weight / count if count else 0.0
        row = [program.column(cost * at, 0.0, float(count > 0), whole=True) for at in range(window.rounds)]
        program.row([(cell, 1.0) for cell in row], low=count, high=count)
        cells.append(row)
    _limit_each_round(program, cells, [each.devices for each in bidders], window)
    found = program.solved(_USUAL)
    return None if found is None else [_bits(found[row]) for row in cells]


def first_fit(bidders: Sequence[Bidder], window: Window, counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Return rounds without a solver: the first ones with room, up to so many for each job, the heaviest job first."""
    room, found = [window.devices] * window.rounds, [0] * len(bidders)
    for at in sorted(range(len(bidders)), key=lambda at: (-weights[at], bidders[at].left, at)):
        left = counts[at]
        for number in range(window.rounds):
            if left and room[number] >= bidders[at].devices:
                room[number] -= bidders[at].devices
                found[at] |= 1 << number
                left -= 1
    return found


def _limit_each_round(program: _Program, cells: Sequence[Sequence[int]], sizes: Sequence[int], window: Window) -> None:
    for number in range(window.rounds):
        taken = [(row[number], float(size)) for row, size in zip(cells, sizes, strict=True)]
        program.row(taken, high=window.devices)


def _lines(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return slope and base of the lines through neighbours of a concave sequence, each once."""
    found: list[tuple[float, float]] = []
    for at, (low, high) in enumerate(pairwise(values)):
        slope = high - low
        if not found or slope < found[-1][0] - 1e-12:
            found.append((slope, low - slope * at))
    return found


def _bits(cells: Iterable[float]) -> int:
    return sum(1 << at for at, value in enumerate(cells) if value > 0.5)


class _Program:
    """A mixed-integer program, as its columns and rows are added; columns are told by their numbers."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._columns: list[tuple[float, float, bool]] = []
        self._rows: list[tuple[float, float]] = []
        self._parts: list[tuple[float, int, int]] = []

    def column(self, cost: float, least: float = 0.0, most: float = inf, *, whole: bool = False) -> int:
        """Add a variable between two bounds."""
        self._costs.append(cost)
        self._columns.append((least, most, whole))
        return len(self._costs) - 1

    def row(self, parts: Iterable[tuple[int, float]], low: float = -inf, high: float = inf) -> None:
        """Add bounds on a sum of columns, each with its factor."""
        self._parts.extend((factor, len(self._rows), column) for column, factor in parts)
        self._rows.append((low, high))

    def solved(self, effort: _Effort) -> NDArray[np.float64] | None:
        """Return the columns at which the sum of the costs is least; None if there is no solution, or none was found."""
        values, rows, columns = (np.array(each) for each in zip(*self._parts, strict=True))
        shape = (len(self._rows), len(self._costs))
        least, most, whole = (np.array(each) for each in zip(*self._columns, strict=True))
        low, high = (np.array(each) for each in zip(*self._rows, strict=True))
        one_thread()
        found = milp(
            self._costs,
            integrality=whole.astype(np.int64),
            bounds=Bounds(least, most),
            constraints=LinearConstraint(coo_array((values, (rows, columns)), shape).tocsc(), low, high),
            options={"node_limit": effort.nodes, "mip_rel_gap": effort.gap},
        )
        x: NDArray[np.float64] | None = found.x
        return x
