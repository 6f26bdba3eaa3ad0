"""Divide the rounds of a horizon among jobs: the market of Shockwave (Zheng et al., NSDI 2023).

The market maximises the Nash social welfare: the sum of the logarithms of the jobs' progress at the end of the horizon. The
longest remaining time counts against it. The paper solves an integer program of which job runs in which round. Here each
job gets a number of rounds, and all of them together fit into the devices and rounds that there are. The rounds are given
one by one, where they gain most welfare for a device; a further round of a job never gains more than the one before. With
equal devices the division is the best one. With unequal ones it may leave room that a large job would need, as every
greedy filling of a knapsack (`tests/scheduler/test_the_market_divides_rounds.py` measures the gap).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log
from typing import Final, NamedTuple

_POINTS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Fractions of the work between which the logarithm is taken to be linear, as in the paper's program."""
_LEAST: Final = 1e-6
"""Stands for no progress in the logarithm."""
_LOGS: Final = tuple(log(max(point, _LEAST)) for point in _POINTS)


class Trader(NamedTuple):
    """A job in the market."""

    devices: int
    done: float
    """The fraction of its work that is done, from 0 to 1."""
    left: float
    """The seconds of service that it is predicted to need, above 0."""
    weight: float = 1.0
    """By what its welfare counts."""
    least: int = 0
    """The rounds that it must have, for its own finish time to be fair."""


class Market(NamedTuple):
    """What is divided: the devices of all machines in each of so many rounds."""

    devices: float
    rounds: int
    round_seconds: float
    makespan_weight: float
    """By what each second of the longest remaining time counts, against the mean welfare of a job and round."""

    def division(self, traders: Sequence[Trader]) -> list[int] | None:
        """Return the rounds of each job; None if the jobs' least rounds do not fit.

        The longest remaining time is tried in steps of a round. O(jobs × rounds × log(jobs × rounds)).
        """
        most = [self.most_rounds(trader) for trader in traders]
        bids = self._bids(traders, most)
        shortest = max(
            (max(0.0, t.left - n * self.round_seconds) for t, n in zip(traders, most, strict=True)), default=0.0
        )
        best, best_value = None, 0.0
        for step in range(self.rounds + 1):
            bound = shortest + step * self.round_seconds
            least = [max(t.least, ceil((t.left - bound) / self.round_seconds - 1e-9)) for t in traders]
            found = self._filled(traders, bids, least, most)
            if found is None:
                continue
            value = self.value(traders, found)
            if best is None or value > best_value + 1e-12:
                best, best_value = found, value
            elif value < best_value:
                break
        return best

    def most_rounds(self, trader: Trader) -> int:
        """Return the rounds that a job can use."""
        if trader.devices > self.devices:
            return 0
        return min(self.rounds, ceil(trader.left / self.round_seconds))

    def welfare(self, trader: Trader, rounds: int) -> float:
        """Return the weighted logarithm of a job's progress after so many rounds, linear between `_POINTS`."""
        part = min(1.0, rounds * self.round_seconds / trader.left)
        done = min(1.0, trader.done + (1 - trader.done) * part)
        at = min(int(done * 5), 4)
        at -= done < _POINTS[at]
        inside = (done - _POINTS[at]) / (_POINTS[at + 1] - _POINTS[at])
        return trader.weight * (_LOGS[at] + inside * (_LOGS[at + 1] - _LOGS[at]))

    def value(self, traders: Sequence[Trader], division: Sequence[int]) -> float:
        """Return what the market maximises."""
        welfare = sum(self.welfare(trader, rounds) for trader, rounds in zip(traders, division, strict=True))
        longest = max(
            (max(0.0, t.left - n * self.round_seconds) for t, n in zip(traders, division, strict=True)), default=0.0
        )
        return welfare / (max(1, len(traders)) * self.rounds) - self.makespan_weight * longest

    def _bids(self, traders: Sequence[Trader], most: Sequence[int]) -> list[tuple[float, int, int]]:
        """Return each further round of each job, the highest gain for a device first."""
        bids = []
        for at, (trader, rounds) in enumerate(zip(traders, most, strict=True)):
            before = self.welfare(trader, 0)
            for number in range(rounds):
                after = self.welfare(trader, number + 1)
                bids.append((-(after - before) / trader.devices, number, at))
                before = after
        bids.sort()
        return bids

    def _filled(
        self,
        traders: Sequence[Trader],
        bids: Sequence[tuple[float, int, int]],
        least: Sequence[int],
        most: Sequence[int],
    ) -> list[int] | None:
        """Return the least rounds of all, and beyond them the best bids that fit; None if the least do not fit."""
        if any(low > high for low, high in zip(least, most, strict=True)):
            return None
        found = [max(0, rounds) for rounds in least]
        room = self.devices * self.rounds - sum(n * t.devices for n, t in zip(found, traders, strict=True))
        if room < 0:
            return None
        for _, number, at in bids:
            if number == found[at] and traders[at].devices <= room:
                found[at] += 1
                room -= traders[at].devices
        return found
