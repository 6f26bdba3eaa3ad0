"""T4 of scheduling.md: the partial-allocation auction of Themis, its hidden payments, and that lies do not pay."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from corral.scheduler.policy.partial_allocation import Award, Bid, auction


def by_hand(bids: Sequence[Bid], units: int) -> tuple[float, list[tuple[int, ...]]]:
    """The highest product of values, and all divisions that have it."""
    best = -1.0
    found: list[tuple[int, ...]] = []
    for division in itertools.product(*bids):
        if sum(division) > units:
            continue
        product = math.prod(bid[size] for bid, size in zip(bids, division, strict=True))
        if product > best * (1 + 1e-9):
            best, found = product, []
        if product >= best * (1 - 1e-9):
            found.append(division)
    return best, found


def test_two_equal_bidders_share_evenly_and_pay_what_they_take_from_each_other() -> None:
    linear = {units: 1.0 + units for units in range(5)}
    awards = auction([linear, linear], 4)
    assert [award.fair for award in awards] == [2, 2]
    assert [award.kept for award in awards] == pytest.approx([3 / 5, 3 / 5]), "alone, the other would have all four: 5"


def test_three_bidders_by_hand() -> None:
    """Values 1, 2 and 4 a unit beyond 1; two units.

    The products are 1·2·... : (0,1,1) gives 1·3·5 = 15, (0,0,2) 1·1·9 = 9, (1,0,1) 2·1·5 = 10, (0,2,0) 5, so 0, 1, 1.
    Without the third the best is (0,2) or (1,1): 5 or 6; with its award the others have 1·3 = 3: it keeps 3/6.
    Without the second the best is (0,2) or (1,1): 9 or 10; with its award the others have 1·5 = 5: it keeps 5/10.
    """
    bids = [{size: 1.0 + rate * size for size in range(3)} for rate in (1.0, 2.0, 4.0)]
    awards = auction(bids, 2)
    assert [award.fair for award in awards] == [0, 1, 1]
    assert [award.kept for award in awards] == pytest.approx([1.0, 0.5, 0.5])


def test_what_nobody_else_wants_is_kept_whole() -> None:
    assert auction([{0: 1.0, 4: 2.0}, {0: 1.0}], 4) == [Award(4, 1.0), Award(0, 1.0)]
    assert auction([], 4) == []


def some_bid(draw: random.Random, units: int) -> Bid:
    """A bid whose values rise with the units, for some of the sizes."""
    values, value = {0: draw.uniform(0.1, 1.0)}, 0.0
    for size in range(1, units + 1):
        value += draw.uniform(0.0, 1.0)
        if draw.random() < 0.7:
            values[size] = values[0] + value
    return values


@pytest.mark.parametrize("seed", range(10))
def test_the_division_has_the_highest_product_of_all(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        units = draw.randint(1, 5)
        bids = [some_bid(draw, units) for _ in range(draw.randint(1, 4))]
        awards = auction(bids, units)
        best, divisions = by_hand(bids, units)
        fair = tuple(award.fair for award in awards)
        assert fair in divisions
        for at, award in enumerate(awards):
            others = bids[:at] + bids[at + 1 :]
            without = by_hand(others, units)[0] if others else 1.0
            assert award.kept == pytest.approx(best / bids[at][award.fair] / without)
            assert 0 < award.kept <= 1


def test_a_thousand_lies_never_help() -> None:
    draw = random.Random(4)
    for _ in range(1000):
        units = draw.randint(1, 6)
        bids = [some_bid(draw, units) for _ in range(3)]
        truth, lie = bids[0], some_bid(draw, units)
        honest = auction(bids, units)[0]
        lying = auction([lie, *bids[1:]], units)[0]
        worth = truth.get(lying.fair)
        if worth is not None:
            assert lying.kept * worth <= honest.kept * truth[honest.fair] * (1 + 1e-9)
