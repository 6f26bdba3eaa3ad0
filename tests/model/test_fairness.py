"""What queues are owed of what was held, Jain's index, percentiles and weeks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.fairness import HOUR, WEEK_HOURS, Entitlement, Hours, jain, owed, percentile, shares, week_of

ONE = Entitlement()


def test_jains_index_is_one_for_equal_ratios_and_a_part_for_one_queue_of_n() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / 42)
    assert jain([]) is None and jain([0.0, 0.0]) is None


@pytest.mark.parametrize(("part", "value"), [(0.5, 3.0), (0.95, 5.0), (0.2, 1.0), (1.0, 5.0)])
def test_percentiles_are_of_the_nearest_rank(part: float, value: float) -> None:
    assert percentile([5.0, 1.0, 4.0, 2.0, 3.0], part) == value
    assert percentile([], part) is None


@pytest.mark.parametrize(
    ("amount", "wanted", "entitled", "due"),
    [
        (12.0, {"a": 9.0, "b": 9.0}, {"a": ONE, "b": ONE}, {"a": 6.0, "b": 6.0}),
        (12.0, {"a": 9.0, "b": 9.0}, {"a": Entitlement(2.0), "b": ONE}, {"a": 8.0, "b": 4.0}),
        (12.0, {"a": 2.0, "b": 99.0}, {"a": ONE, "b": ONE}, {"a": 2.0, "b": 10.0}),
        (12.0, {"a": 9.0, "b": 9.0}, {"a": Entitlement(0.0, 8.0), "b": ONE}, {"a": 8.0, "b": 4.0}),
        (12.0, {"a": 9.0, "b": 9.0}, {"a": Entitlement(1.0, 9.0), "b": Entitlement(1.0, 9.0)}, {"a": 6.0, "b": 6.0}),
        (12.0, {"a": 12.0, "b": 6.0}, {"a": Entitlement(0.0), "b": Entitlement(0.0)}, {"a": 6.0, "b": 6.0}),
        (0.0, {}, {}, {}),
    ],
)
def test_what_is_deserved_comes_first_and_the_rest_by_weight(
    amount: float, wanted: dict[str, float], entitled: dict[str, Entitlement], due: dict[str, float]
) -> None:
    assert shares(amount, wanted, entitled, 1.0) == pytest.approx(due)


@given(
    st.dictionaries(
        st.sampled_from("abcde"),
        st.tuples(st.floats(0.01, 100), st.floats(0, 100), st.floats(0, 5), st.floats(0, 50)),
        min_size=1,
    )
)
def test_shares_divide_all_that_was_held_and_nobody_is_owed_more_than_he_wants(
    queues: dict[str, tuple[float, float, float, float]],
) -> None:
    wanted = {name: want for name, (want, _, _, _) in queues.items()}
    amount = sum(min(want, got) for want, got, _, _ in queues.values())
    entitled = {name: Entitlement(weight, deserved) for name, (_, _, weight, deserved) in queues.items()}
    due = shares(amount, wanted, entitled, 1.0)
    assert sum(due.values()) == pytest.approx(amount, abs=1e-6)
    assert all(0 <= due[name] <= wanted[name] + 1e-6 for name in queues)


def test_owed_is_summed_by_the_hour() -> None:
    greedy, patient = Hours(0.0), Hours(0.0)
    greedy.add(greedy.held, 0.0, 2 * HOUR, 4.0)
    greedy.add(greedy.wanted, 0.0, 2 * HOUR, 4.0)
    patient.add(patient.wanted, 0.5 * HOUR, 1 * HOUR, 8.0)
    patient.add(patient.held, 1e9, 2e9, 8.0)  # after the week
    due = owed({"greedy": greedy, "patient": patient}, {"greedy": ONE, "patient": ONE})
    assert due == {"greedy": 6.0 * HOUR, "patient": 2.0 * HOUR}
    assert sum(patient.held) == 0.0 and len(patient.held) == WEEK_HOURS


def test_a_week_begins_on_monday_in_utc() -> None:
    monday = datetime(2026, 11, 23, tzinfo=UTC).timestamp()
    assert week_of("2026-W48", 0.0) == (monday, monday + 7 * 24 * HOUR)
    assert week_of("", monday + 9 * 24 * HOUR)[0] == monday
    assert week_of("", monday + 7 * 24 * HOUR)[0] == monday
    for bad in ("2026-48", "2026-W60", "W48", "2026-W4x", "1960-W01", "99999-W01", "2026-W48-1", "\u0662026-W48"):
        with pytest.raises(ValueError):
            week_of(bad, 0.0)
