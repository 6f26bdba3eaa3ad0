"""AlloX of tables B and C: its matching against all schedules, its rules by hand, and the printed figures."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.sim.compat import gavel_table
from corral.sim.compat.allox import AlloX, assignment
from corral.sim.compat.rounds import RoundJob
from tests.examples import examples
from tests.sim.compat.published import cells_of, lines_of

TYPES = ("v100", "k80")


def job(number: int, fast: float, slow: float, *, total: float = 100.0, gpus: int = 1, at: float = 0.0) -> RoundJob:
    return RoundJob(number, at, gpus, total, (fast, slow))


def test_table_c_is_within_two_percent_at_four_jobs_an_hour(data_folder: Path) -> None:
    cell = cells_of("C", "AlloX")["4.0/h"]
    ours = gavel_table.measure("AlloX", ["4.0/h"], lines_of(data_folder))["4.0/h"]
    assert cell.bound is not None and cell.anchor is not None
    assert cell.bound.holds(ours, cell.anchor), ours
    # An independent simulator with the anchor's own code gives this figure.
    assert ours == pytest.approx(17.350, abs=0.001)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_no_schedule_has_a_smaller_sum_of_completion_times(jobs: int, places: int, random) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("scipy")
    alone = np.array([[float(random.randint(1, 30)) for _ in range(places)] for _ in range(jobs)])
    rows, columns = assignment(alone, np.zeros(jobs))
    position, place = np.divmod(np.array(columns), places)
    found = float((alone[rows, place] * (position + 1)).sum())

    def total(order: tuple[int, ...], where: tuple[int, ...]) -> float:
        clock, ends = [0.0] * places, 0.0
        for each, at in zip(order, where, strict=True):
            clock[at] += alone[each, at]
            ends += clock[at]
        return ends

    best = min(
        total(order, where) for order in permutations(range(jobs)) for where in product(range(places), repeat=jobs)
    )
    assert found == pytest.approx(best)


def test_each_job_starts_where_all_of_them_end_soonest() -> None:
    pytest.importorskip("scipy")
    policy = AlloX({"v100": 1, "k80": 1}, TYPES)
    # Both are faster on the V100, but only the second one is much slower on the K80.
    assert policy.fractions([job(0, 2.0, 1.5), job(1, 2.0, 0.1)], 0.0) == {0: [0.0, 1.0], 1: [1.0, 0.0]}


def test_a_placed_job_stays_and_the_next_one_waits_for_a_free_gpu() -> None:
    pytest.importorskip("scipy")
    policy = AlloX({"v100": 1, "k80": 0}, TYPES)
    long, short = job(0, 1.0, 1.0, total=1000.0), job(1, 1.0, 1.0, total=10.0)
    assert policy.fractions([long], 0.0)[0] == [1.0, 0.0]
    assert policy.fractions([long, short], 5.0) == {0: [1.0, 0.0], 1: [0.0, 0.0]}
    assert policy.fractions([short], 1000.0) == {1: [1.0, 0.0]}


def test_a_wide_job_is_matched_again_each_time_and_takes_one_place() -> None:
    pytest.importorskip("scipy")
    policy = AlloX({"v100": 2, "k80": 0}, TYPES)
    wide, narrow = job(0, 1.0, 1.0, gpus=2), job(1, 1.0, 1.0)
    for _ in range(2):
        assert policy.fractions([wide, narrow], 0.0) == {0: [0.5, 0.0], 1: [1.0, 0.0]}


def test_only_the_oldest_part_of_the_waiting_jobs_is_looked_at_but_one_for_each_free_gpu() -> None:
    pytest.importorskip("scipy")
    old, new = job(0, 1.0, 1.0, total=1000.0, at=0.0), job(1, 1.0, 1.0, total=1.0, at=10.0)
    assert AlloX({"v100": 1, "k80": 0}, TYPES, 0.2).fractions([new, old], 10.0)[0] == [1.0, 0.0]
    assert AlloX({"v100": 1, "k80": 0}, TYPES).fractions([new, old], 10.0)[1] == [1.0, 0.0], "the shortest one"


def test_without_scipy_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scipy.optimize", None)
    with pytest.raises(InvalidInput, match="needs scipy"):
        assignment(np.ones((1, 1)), np.zeros(1))
