"""Quantiles are corrected by how far earlier ones missed: outwards, inwards, or both ends to one side."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.estimate_correction import (
    FEWEST,
    LATEST,
    UNCORRECTED,
    Correction,
    Outcome,
    Quantiles,
    correction,
)

HORIZON = 86_400.0
TOLD: Quantiles = (100.0, 200.0, 400.0)
END = st.none() | st.floats(0, HORIZON)


def outcome(waited: float, raw: Quantiles = TOLD) -> Outcome:
    return Outcome(waited, raw, HORIZON)


def test_few_outcomes_correct_nothing() -> None:
    assert correction([outcome(9000.0)] * (FEWEST - 1)) == UNCORRECTED
    assert UNCORRECTED.applied(TOLD) == pytest.approx(TOLD)


def test_jobs_that_start_later_than_told_move_all_quantiles() -> None:
    found = correction([outcome(1000.0)] * 20)
    assert found.applied(TOLD) == pytest.approx((1000.0, 1000.0, 1000.0))
    p10, p50, p90 = found.applied((50.0, 200.0, 800.0))
    assert p10 is not None and p50 is not None and p90 is not None
    assert p10 < 999 and p50 == pytest.approx(1000.0) and p90 > 1001


def test_four_fifths_of_like_waits_fall_between_the_corrected_ends() -> None:
    draw = Random(7)
    past = [outcome(draw.lognormvariate(7, 1.5)) for _ in range(LATEST)]
    low, _, high = correction(past).applied(TOLD)
    assert low is not None and high is not None
    later = [draw.lognormvariate(7, 1.5) for _ in range(2000)]
    assert 0.7 < sum(low <= each <= high for each in later) / len(later) < 0.95


def test_intervals_that_are_too_wide_become_narrower() -> None:
    low, middle, high = correction([outcome(200.0)] * 20).applied((0.0, 200.0, 9000.0))
    assert low is not None and high is not None
    assert middle == pytest.approx(200.0) and high - low < 9000.0


def test_an_end_after_the_horizon_stays_there() -> None:
    assert correction([outcome(50.0)] * 20).applied((100.0, None, None))[1:] == (None, None)


def test_the_latest_outcomes_count() -> None:
    found = correction([outcome(9.0)] * 100 + [outcome(1000.0)] * LATEST)
    assert found == correction([outcome(1000.0)] * LATEST)


@given(st.tuples(END, END, END), st.builds(Correction, *[st.floats(-9, 9)] * 3))
def test_corrected_quantiles_are_in_order(raw: Quantiles, by: Correction) -> None:
    ordered = sorted(float("inf") if each is None else each for each in raw)
    told: Quantiles = tuple(None if each == float("inf") else each for each in ordered)  # type: ignore[assignment]
    corrected = [float("inf") if each is None else each for each in by.applied(told)]
    assert corrected == sorted(corrected) and corrected[0] >= 0.0
