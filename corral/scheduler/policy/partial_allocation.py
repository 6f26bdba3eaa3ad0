"""The partial-allocation auction of Themis: a proportionally fair division with hidden payments.

Sources: Themis (Mahajan et al., NSDI 2020), section 4.2; the mechanism is that of Cole, Gkatzelis and Goel (EC 2013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, log
from typing import NamedTuple

Bid = Mapping[int, float]
"""What a bidder values each number of units at, above 0; numbers that it does not name are not offered to it."""


class Award(NamedTuple):
    """What the auction gives one bidder."""

    fair: int
    """Its units in the proportionally fair division, in which the product of all values is highest."""
    kept: float
    """The part of its value that it keeps, above 0 to 1: what its presence takes from the others is its payment."""


def auction(bids: Sequence[Bid], units: int) -> list[Award]:
    """Return the award of each bidder when `units` equal units are divided; each bid values 0 units.

    A bidder that would get `kept` of the value of its fair units has no reason to bid anything but its values: what it
    keeps is the product of all values, by a factor that its bid does not change. Of equally good divisions the one that
    gives earlier bidders less is taken. O(bidders × units × (sizes + units)) by dynamic programming over the bidders from
    both ends, which also gives the best division without each of them.
    """
    logs = [sorted((size, log(value)) for size, value in bid.items() if size <= units) for bid in bids]
    before, after = _tables(logs, units), _tables(logs[::-1], units)[::-1]
    awards, left = [], units
    whole = after[0][units]
    for at, sizes in enumerate(logs):
        without = max(before[at][taken] + after[at + 1][units - taken] for taken in range(units + 1))
        size, value = next(
            (size, value)
            for size, value in sizes
            if size <= left and value + after[at + 1][left - size] >= after[at][left] - 1e-12
        )
        awards.append(Award(size, min(1.0, exp(whole - value - without))))
        left -= size
    return awards


def _tables(logs: Sequence[Sequence[tuple[int, float]]], units: int) -> list[list[float]]:
    """Return for each number of first bidders, 0 to all, the highest sum of logs with at most so many units."""
    table = [[0.0] * (units + 1)]
    for sizes in logs:
        last, found = table[-1], [-inf] * (units + 1)
        for size, value in sizes:
            for left in range(size, units + 1):
                if (total := last[left - size] + value) > found[left]:
                    found[left] = total
        table.append(found)
    return table
