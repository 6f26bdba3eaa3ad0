"""The market of Shockwave (Zheng et al., NSDI 2023) over the next rounds: what finish times are worth, and who must run.

Its Nash social welfare is the product of the jobs' fair over planned finish times, each to the power of the job's weight;
its logarithm falls by `weight x log(finish time)` of each job. Beside it counts the makespan. The paper solves an integer
program with a commercial solver. Here two parts of it are solved by themselves:

- The makespan decides which jobs must run in how many of the next rounds. The remaining time after them is at least the
  remaining work over the devices. The least bound on it is taken for which these rounds fit.
- The rest is served by the gain of the welfare for a second: the weight over finish time and remaining time. It is
  Smith's rule (1956) for the derivative of the logarithm. Devices do not count, as in the paper's program that orders the
  rounds of a job: a wide job would else wait for all narrow ones. `tests/scheduler/test_the_market_orders_jobs.py`
  measures the gap to the integer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple


class Trader(NamedTuple):
    """A job in the market; times in seconds."""

    devices: int
    age: float
    """Since its submission."""
    left: float
    """The service that it still needs, above 0."""
    weight: float = 1.0

    @property
    def gain(self) -> float:
        """Return by how much welfare rises for each second that the job needs no more, if it runs from now on."""
        return self.weight / ((self.age + self.left) * self.left)


class Market(NamedTuple):
    """The devices of all machines in each of the next rounds."""

    devices: float
    rounds: int
    round_seconds: float

    def needed_rounds(self, traders: Sequence[Trader]) -> list[int]:
        """Return the rounds that each job must have for the shortest makespan; O(jobs log rounds).

        No job has more than a bound of seconds left after them. The bound is as low as the machines allow, in steps of a
        round. Jobs that are larger than the machines need none.
        """
        able = [trader for trader in traders if trader.devices <= self.devices]
        horizon = self.rounds * self.round_seconds
        work = sum(each.left * each.devices for each in able) / self.devices if able else 0.0
        least = max([0.0, work - horizon, *(each.left - horizon for each in able)])
        low, high = 0, self.rounds
        while low < high:
            middle = (low + high) // 2
            if self._fits(able, least + middle * self.round_seconds):
                high = middle
            else:
                low = middle + 1
        bound = least + low * self.round_seconds
        return [self._rounds(each, bound) if each.devices <= self.devices else 0 for each in traders]

    def _fits(self, traders: Sequence[Trader], bound: float) -> bool:
        needed = sum(self._rounds(each, bound) * each.devices for each in traders)
        return needed <= self.devices * self.rounds

    def _rounds(self, trader: Trader, bound: float) -> int:
        """Return the rounds after which a job has at most so many seconds left; a rounding error asks for none."""
        return max(0, ceil((trader.left - bound) / self.round_seconds - 1e-9))
