"""The file of tables, its bounds, and `corral sim tables`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.cli.main import run
from corral.kernel.errors import InvalidInput
from corral.sim.tables import Bound, parse_tables
from tests.sim.compat.published import TABLES

KEYS = {"table", "mode", "row", "policy", "column", "unit", "ours", "anchor", "bound", "holds", "seconds"}


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
    assert all(cell.anchor is None or cell.anchor > 0 for cell in cells)
    unprinted = {(cell.table, cell.mode, cell.column) for cell in cells if cell.anchor is None}
    seeds = {("C", "compat", f"{rate}/h, seed {seed}") for rate in ("4.0", "5.2") for seed in (1, 2)}
    muri = {("A", "compat", trace) for trace in ("trace3", "trace3_pr")}
    assert unprinted == {*seeds, *muri, ("C", "honest", "JCT")}


@pytest.mark.parametrize(
    "text",
    [
        "table = 3",
        "[[table]]\nname = 'A'",
        "[[table",
        "[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='x'\nanchor={a='b'}",
        "[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='x'\ndigits=0\npercent=1\nanchor={a=1}",
        "[[table]]\nname='A'\nmode='compat'\nunit='s'\n[[table.row]]\nname='x'\nunprinted=['a']\nanchor={a=1}",
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


def refused(tmp_path: Path, table: str, row: str, column: str, *, name: str, text: bytes) -> int:
    """The exit code for a data folder with one broken file."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    tables = tmp_path / "tables.toml"
    tables.write_text(f"[[table]]\nname='{table}'\nmode='compat'\nunit='s'\n[[table.row]]\nname='{row}'\n"
                      f"anchor={{{column}=5}}\n")  # fmt: skip
    return run(["sim", "tables", "--tables-file", str(tables), "--data", str(tmp_path)])


@pytest.mark.parametrize(
    ("table", "row", "name", "text", "words"),
    [
        ("A", "SRTF", "muri/JCT.csv", b"num_gpu,submit_time\n1,0\n", "line 2: the column iterations is missing"),
        ("A", "SRTF", "muri/JCT.csv", b"\xff\xfe", "cannot be decoded"),
        ("A", "lottery", "muri/JCT.csv", b"", "Nothing measures the row lottery of table A"),
        ("Q", "SRTF", "muri/JCT.csv", b"", "Nothing measures the row SRTF of table Q"),
        ("B", "OSSP", "shockwave/tacc_throughputs.json", b"{}", "lacks 'v100'"),
        ("C", "LAS", "gavel/physical_cluster_throughputs.json", b"[", "cannot be measured"),
    ],
)
def test_a_broken_file_or_row_is_named_in_one_sentence(
    table: str, row: str, name: str, text: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(tmp_path, table, row, "JCT", name=name, text=text) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert words in told
