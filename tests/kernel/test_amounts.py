"""The table of amounts is complete: names are unique, and what is proposed can be written and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.amounts import AMOUNTS, BYTES, COLUMNS, Amount, amount_named, names_for

ROWS = pytest.mark.parametrize("row", AMOUNTS, ids=lambda row: row.name)


def test_names_codes_and_columns_are_unique() -> None:
    for values in (
        [row.name for row in AMOUNTS],
        [row.code for row in AMOUNTS],
        [row.job_path for row in AMOUNTS],
        [row.column for row in COLUMNS],
        [name for row in AMOUNTS for name in row.engine_names.items()],
    ):
        assert len(set(values)) == len(values)


@ROWS
@given(size=st.integers(1, 9_999_999))
def test_a_written_amount_reads_as_the_same(row: Amount, size: int) -> None:
    assert row.unit.parse(str(row.unit.written(size))) == size


@ROWS
@given(size=st.integers(1, 2**50))
def test_steps_are_positive_and_never_below_what_a_document_may_state(row: Amount, size: int) -> None:
    step = row.unit.step(size)
    assert step >= max(1, row.unit.least)


def test_a_resource_without_a_row_counts_pieces_under_its_own_name() -> None:
    licences = amount_named("licences")
    assert (licences.code, licences.job_path) == ("not-enough-resource", "resources.other.licences")
    assert (licences.word, licences.after_figure, licences.unit.written(3)) == ("licences", "of licences", 3)


def test_an_engine_finds_amounts_by_its_own_names() -> None:
    assert names_for("kubernetes")["ephemeral-storage"].name == "disk"
    assert names_for("kubernetes")["ephemeral-storage"].unit is BYTES
    assert names_for("no such engine") == {}
