"""The columns of an answer are those of a plain sum over the values of each step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.monitor.series.grid import COARSE, FINE, PER_COARSE
from corral.monitor.series.reading import FineValues, Summed, columns

FIRST = 40 * 3_000_000
"""A fine step with which a coarse one begins."""
STEPS = 120
VALUES = st.integers(-1000, 1000).map(float)


@given(
    begin=st.integers(-60, 200),
    steps=st.sets(st.integers(0, 239), min_size=1).map(sorted) | st.integers(1, 240).map(lambda n: list(range(n))),
)
def test_values_outside_of_what_is_asked_for_are_left_out(begin: int, steps: list[int]) -> None:
    fine = FineValues(FIRST, [None] * STEPS)
    fine.put(FIRST + begin, steps, [float(each) for each in steps])
    expected = {begin + step: float(step) for step in steps if 0 <= begin + step < STEPS}
    assert fine.values == [expected.get(at) for at in range(STEPS)]


@given(
    known=st.dictionaries(st.integers(0, STEPS - 1), VALUES),
    coarse=st.dictionaries(st.integers(-1, STEPS // PER_COARSE), st.tuples(VALUES, VALUES, VALUES)),
    each=st.sampled_from([1, 4, 20, 40, 80]),
)
def test_each_step_tells_the_mean_the_least_and_the_most(
    known: dict[int, float], coarse: dict[int, tuple[float, float, float]], each: int
) -> None:
    """A coarse sum counts only where no single value is."""
    fine = FineValues(FIRST, [known.get(at) for at in range(STEPS)])
    begin = FIRST * FINE.seconds
    assert begin % COARSE.seconds == 0
    sums = [(FIRST // PER_COARSE + at, Summed(1, *three)) for at, three in coarse.items()]
    steps = -(-STEPS // each)
    mean, low, high = columns(fine, sums, begin, each * FINE.seconds, steps)
    for at in range(steps):
        said = [(value, value, value) for step, value in known.items() if step // each == at]
        for place, three in coarse.items():
            covered = any(step // PER_COARSE == place for step in known)
            if place * PER_COARSE // each == at and 0 <= place * PER_COARSE < steps * each and not covered:
                said.append(three)
        if not said:
            assert (mean[at], low[at], high[at]) == (None, None, None)
            continue
        found = mean[at]
        assert found is not None and abs(found - sum(one for one, _, _ in said) / len(said)) < 1e-9
        assert (low[at], high[at]) == (min(low for _, low, _ in said), max(high for _, _, high in said))
