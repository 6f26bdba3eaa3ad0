"""Series as lines of bars."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.cli.sparkline import BARS, sparkline, squeezed

VALUES = st.lists(st.none() | st.floats(-1e9, 1e9), max_size=200)


def test_bars_stand_for_the_height_and_blanks_for_nothing() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, None, 7], 10) == BARS + " " + BARS[-1]
    assert sparkline([5, 5, 5], 10) == BARS[0] * 3
    assert sparkline([None, None], 10) == "  "
    assert sparkline([], 10) == ""
    assert squeezed([1, 3, None, None, 5, None], 3) == [2, None, 5]


@given(VALUES, st.integers(1, 60))
def test_a_line_is_never_wider_and_has_a_blank_only_where_nothing_is(values: list[float | None], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= {*BARS, " "}
    assert (not line.strip()) == all(each is None for each in values)
