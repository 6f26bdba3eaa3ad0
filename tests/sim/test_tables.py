"""The file of tables, its bounds, and `corral sim tables`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.cli.main import run
from corral.kernel.errors import InvalidInput
from corral.sim.tables import Bound, parse_tables
from tests.sim.compat.published import TABLES

KEYS = {"table", "mode", "row", "column", "unit", "ours", "anchor", "bound", "holds", "seconds"}


@pytest.mark.parametrize(
    ("bound", "ours", "anchor", "holds"),
    [
        (Bound("digits", 0), 193_081.8, 193_082, True),
        (Bound("digits", 0), 193_082.6, 193_082, False),
        (Bound("digits", 2), 3469.694, 3469.69, True),
        (Bound("percent", 1), 101.0, 100, True),
        (Bound("percent", 1), 101.1, 100, False),
        (Bound("points", 0.2), 87.6, 87.47, True),
        (Bound("points", 0.2), 87.2, 87.47, False),
    ],
)
def test_a_bound_holds_up_to_its_amount(bound: Bound, ours: float, anchor: float, holds: bool) -> None:
    assert bound.holds(ours, anchor) is holds


def test_every_cell_of_the_file_has_an_anchor_and_rows_are_not_repeated() -> None:
    cells = parse_tables(TABLES.read_text())
    assert len({(cell.table, cell.mode, cell.row, cell.column) for cell in cells}) == len(cells)
    assert all(cell.anchor > 0 for cell in cells)


@pytest.mark.parametrize(
    "text",
    [
        "table = 3",
        "[[table]]\nname = 'A'",
        "[[table",
        "[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='x'\nanchor={a='b'}",
        "[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='x'\ndigits=0\npercent=1\nanchor={a=1}",
    ],
)
def test_a_file_that_is_not_one_of_tables_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_tables(text)


def test_the_command_prints_a_record_a_cell(data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "tables", "--table", "A", "--row", "SRSF", "--data", str(data_folder), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(record["column"], record["holds"]) for record in found] == [
        ("trace1", True), ("trace3", True), ("trace3_pr", True),
    ]  # fmt: skip
    assert all(set(record) == KEYS for record in found)


def test_a_bound_that_does_not_hold_is_told_by_the_exit_code(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tables.toml"
    file.write_text("[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='SRTF'\npercent=1\n"
                    "anchor={trace3=5}\n")  # fmt: skip
    assert run(["sim", "tables", "--tables-file", str(file), "--data", str(data_folder)]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "no"


def test_what_is_not_there_is_named_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "tables", "--table", "Z"]) == 3
    assert "the tables are A" in capsys.readouterr().err
    assert run(["sim", "tables", "--table", "A", "--data", str(tmp_path)]) == 3
    assert "set CORRAL_DATA" in capsys.readouterr().err
    assert run(["sim", "tables", "--tables-file", str(tmp_path / "none.toml")]) == 3
    assert "--tables-file" in capsys.readouterr().err
