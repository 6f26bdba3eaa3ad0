"""The market of `shockwave`: needed rounds and gains by hand, and how near its order comes to an integer program."""

from __future__ import annotations

import random
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.scheduler.policy.market import Market, Trader
from tests.examples import examples

SMALL = Market(devices=2, rounds=10, round_seconds=100.0)


def test_only_jobs_that_the_makespan_waits_for_need_rounds() -> None:
    """The horizon is 1,000 s. The longest job leaves 2,000 s after it, which no other job needs to end later than."""
    jobs = [Trader(1, 0.0, 3000.0), Trader(1, 0.0, 2500.0), Trader(1, 0.0, 2000.0)]
    assert SMALL.needed_rounds(jobs) == [3, 0, 0], "all work takes 7,500 / 2 s, so 2,750 s are left in any case"
    assert SMALL.needed_rounds(jobs[:2]) == [10, 5]
    assert SMALL.needed_rounds([Trader(2, 0.0, 3000.0), Trader(1, 0.0, 3000.0)]) == [0, 0]
    assert SMALL.needed_rounds([Trader(4, 0.0, 9000.0), Trader(1, 0.0, 150.0)]) == [0, 2], "four devices are too many"
    assert SMALL.needed_rounds([]) == []


TRADERS = st.lists(st.builds(Trader, st.integers(1, 10), st.just(0.0), st.floats(1.0, 1e6)), max_size=12)
MARKETS = st.builds(Market, st.integers(1, 8), st.integers(1, 30), st.floats(10.0, 1e3))


@settings(max_examples=examples(200))
@given(MARKETS, TRADERS)
def test_needed_rounds_fit_and_leave_an_equal_bound(market: Market, traders: list[Trader]) -> None:
    needed = market.needed_rounds(traders)
    assert sum(n * job.devices for n, job in zip(needed, traders, strict=True)) <= market.devices * market.rounds
    assert all(0 <= rounds <= market.rounds for rounds in needed)
    left = [job.left - n * market.round_seconds for n, job in zip(needed, traders, strict=True)]
    told = [each for each, n in zip(left, needed, strict=True) if n]
    able = [each for each, job in zip(left, traders, strict=True) if job.devices <= market.devices]
    assert not told or max(able) - min(told) <= market.round_seconds * (1 + 1e-6)


def test_a_second_is_worth_most_for_who_ends_soon_and_is_late() -> None:
    assert Trader(1, 100.0, 100.0).gain == pytest.approx(1 / (200 * 100))
    short, long, late = Trader(1, 0.0, 100.0), Trader(4, 0.0, 1000.0), Trader(1, 500.0, 1000.0, weight=10.0)
    assert short.gain > late.gain > long.gain


def list_schedule(jobs: list[Trader], devices: int) -> float:
    """The sum of weight x log(finish time) where jobs start in order of gain as soon as they fit, in whole seconds."""
    free, total = [devices] * 400, 0.0
    for job in sorted(jobs, key=lambda each: -each.gain):
        length = int(job.left)
        start = next(at for at in range(300) if min(free[at : at + length]) >= job.devices)
        for at in range(start, start + length):
            free[at] -= job.devices
        total += job.weight * log(job.age + start + length)
    return total


def optimum(jobs: list[Trader], devices: int) -> float:
    """The least such sum, by a time-indexed integer program (HiGHS)."""
    optimize = pytest.importorskip("scipy.optimize")
    span = sum(int(job.left) for job in jobs)
    starts = [(at, begin) for at, job in enumerate(jobs) for begin in range(span - int(job.left) + 1)]
    costs = [jobs[at].weight * log(jobs[at].age + begin + int(jobs[at].left)) for at, begin in starts]
    rows = [[float(owner == at) for owner, _ in starts] for at in range(len(jobs))]
    low, high = [1.0] * len(jobs), [1.0] * len(jobs)
    for second in range(span):
        rows.append([jobs[at].devices * (begin <= second < begin + int(jobs[at].left)) for at, begin in starts])
        low, high = [*low, 0.0], [*high, float(devices)]
    solved = optimize.milp(
        costs,
        constraints=optimize.LinearConstraint(rows, low, high),
        integrality=[1] * len(costs),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return float(solved.fun)


@pytest.mark.parametrize(("sizes", "devices", "mean", "worst"), [([1], 2, 0.002, 0.01), ([1, 2], 2, 0.01, 0.05)])
def test_the_order_by_gain_is_near_the_integer_program(
    sizes: list[int], devices: int, mean: float, worst: float
) -> None:
    """The gap is the mean of log(finish time) over the jobs: 0.01 are finish times that are 1 % longer."""
    draw, gaps = random.Random(23), []
    for _ in range(12):
        jobs = [
            Trader(
                draw.choice(sizes), float(draw.randint(0, 15)), float(draw.randint(1, 9)), draw.choice([1.0, 1.5, 2.0])
            )
            for _ in range(5)
        ]
        weights = sum(job.weight for job in jobs)
        gaps.append((list_schedule(jobs, devices) - optimum(jobs, devices)) / weights)
    assert min(gaps) >= -1e-7
    assert sum(gaps) / len(gaps) <= mean and max(gaps) <= worst
