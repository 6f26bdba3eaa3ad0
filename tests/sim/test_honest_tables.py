"""Mode honest of the published tables: rows that play Corral's scheduler, their bounds, and figures that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.cli.main import run
from corral.kernel.errors import InvalidInput
from corral.sim.tables import Bound, parse_tables
from tests.sim.compat.published import TABLES

TRACE = "job_id,num_gpu,submit_time,iterations,iteration_time\n1,8,0,1000,36000\n2,64,0,1000,3600\n3,8,1000,1000,3600\n"


def tables(tmp_path: Path, must_be: str, anchor: float, policy: str = "srsf+order") -> list[str]:
    """A folder with one trace and a file with one honest row; returns the arguments of the command."""
    (tmp_path / "muri").mkdir(exist_ok=True)
    (tmp_path / "muri" / "tiny.csv").write_text(TRACE)
    file = tmp_path / "tables.toml"
    file.write_text(f"[[table]]\nname='A'\nmode='honest'\nunit='s'\n[[table.row]]\nname='ours'\npolicy='{policy}'\n"
                    f"must_be='{must_be}'\nanchor={{tiny={anchor}}}\n")  # fmt: skip
    return ["sim", "tables", "--tables-file", str(file), "--data", str(tmp_path), "--processes", "1", "-o", "json"]


def record(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 1
    return dict(found[0])


@pytest.mark.parametrize(
    ("kind", "ours", "holds"),
    [("below", 9.9, True), ("below", 10, False), ("above", 10.1, True), ("above", 10, False), ("at most", 10, True)],
)
def test_a_bound_of_mode_honest_asks_for_a_better_figure(kind: str, ours: float, holds: bool) -> None:
    assert Bound(kind).holds(ours, 10) is holds
    assert Bound(kind).words() == kind


def test_an_honest_row_plays_its_policy_and_must_be_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tables(tmp_path, "below", 20_000)) == 0
    found = record(capsys)
    assert (found["mode"], found["policy"], found["bound"], found["holds"]) == ("honest", "srsf+order", "below", True)
    assert run(tables(tmp_path, "below", 10_000)) == 1
    assert record(capsys)["holds"] is False


def test_kept_figures_are_used_again_for_the_same_question_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    keep = ["--results", str(results)]
    assert run([*tables(tmp_path, "below", 20_000), *keep]) == 0
    measured = record(capsys)["ours"]
    assert measured != 5.0
    (file,) = results.iterdir()
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "values": {"tiny": 5.0}}))
    assert run([*tables(tmp_path, "below", 20_000), *keep, "--resume"]) == 0
    assert record(capsys)["ours"] == 5.0
    other = tables(tmp_path, "below", 20_000, policy="srtf+order")
    assert run([*other, *keep, "--resume"]) == 0
    assert record(capsys)["ours"] not in (5.0, measured)


def test_a_file_of_tables_names_a_policy_for_every_honest_row() -> None:
    cells = parse_tables(TABLES.read_text())
    assert all(bool(cell.policy) is (cell.mode == "honest") for cell in cells)
    with pytest.raises(InvalidInput):
        parse_tables("[[table]]\nname='A'\nmode='honest'\nunit='s'\n[[table.row]]\nname='x'\nanchor={a=1}")


def test_resume_needs_a_folder_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "tables", "--resume"]) == 2
    assert "--results" in capsys.readouterr().err
