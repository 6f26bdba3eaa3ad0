"""A report is written as a page, a picture or numbers."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from click.testing import Result as Done

from corral.cli.sim import sim_command
from corral.sim.occupancy import Occupancy, Stay
from corral.sim.results import JobResult, Result, write_result

STAYS = (Stay(0.0, 100.0, "a $x_1$", "$y^2$", 0, (0, 1)), Stay(100.0, 150.0, "", "", 0, (0, 1, 2, 3)))
OCCUPANCY = Occupancy((("a", 4),), STAYS)


def result(seed: int, scatter: float, policy: str = "fifo $z$") -> Result:
    ended = 100.0 + 10 * seed + 100 * scatter
    job = JobResult("a $x_1$", "$y^2$", 4, 100.0, 0.0, 0.0, ended, 0, 0.0, True)
    knobs = {"seed": seed, "scatter": scatter}
    return Result(policy, 4, (job,), 1, ((0.0, ended, 4),), knobs=knobs, occupancy=OCCUPANCY)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Results of two values of a knob with two seeds each."""
    made = []
    for seed in (1, 2):
        for scatter in (0.0, 1.0):
            write_result(result(seed, scatter), tmp_path / f"{seed}-{scatter:g}.json")
            made.append(str(tmp_path / f"{seed}-{scatter:g}.json"))
    return made


def report(*words: str) -> Done:
    return CliRunner().invoke(sim_command, ["report", *words], standalone_mode=False)


def test_numbers_are_those_of_the_page(files: list[str], tmp_path: Path) -> None:
    assert report(*files, "--out", str(tmp_path / "r.json")).exception is None
    found = json.loads((tmp_path / "r.json").read_text())
    assert [(group["name"], group["seeds"]) for group in found["groups"]] == [
        ("fifo $z$, scatter 0", [1, 2]), ("fifo $z$, scatter 1", [1, 2]),
    ]  # fmt: skip
    assert found["groups"][0]["estimates"]["mean_jct"]["mean"] == 115.0
    (swept,) = (chart for chart in found["charts"] if chart["title"] == "Mean completion time")
    assert swept["lines"]["fifo $z$"] == [[0.0, pytest.approx(115 / 3600)], [1.0, pytest.approx(215 / 3600)]]
    assert len(swept["half_widths"]["fifo $z$"]) == 2


def test_a_picture_shows_the_whole_report(files: list[str], tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    sizes = []
    for given in (files, files[:1]):
        assert report(*given, "--out", str(tmp_path / "r.png")).exception is None
        picture = (tmp_path / "r.png").read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        sizes.append(struct.unpack(">II", picture[16:24]))
    assert sizes[0][0] == sizes[1][0] == 1400 and sizes[0][1] > sizes[1][1] > 1000
    told = [str(each.message) for each in recwarn if issubclass(each.category, UserWarning)]  # matplotlib's
    assert not told


def test_the_format_may_be_named(files: list[str], tmp_path: Path) -> None:
    assert report(*files, "--out", str(tmp_path / "page"), "--format", "html").exception is None
    assert (tmp_path / "page").read_text().startswith("<!doctype html>")
    done = report(*files, "--out", str(tmp_path / "page.txt"))
    assert "is none of html, png, json; give --format." in str(done.exception)


def test_a_report_does_not_replace_a_result(files: list[str]) -> None:
    before = Path(files[0]).read_bytes()
    assert "is one of the results" in str(report(*files, "--out", files[0]).exception)
    assert Path(files[0]).read_bytes() == before


def test_a_picture_without_matplotlib_is_refused(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = report(*files, "--out", str(tmp_path / "r.png"))
    assert "A PNG needs matplotlib: pip install 'corral[sim]'." in str(done.exception)
    assert not (tmp_path / "r.png").exists()


def test_a_simulation_of_which_nothing_ended_is_drawn(tmp_path: Path) -> None:
    nothing = msgspec.structs.replace(result(1, 0.0), jobs=(), held=(), occupancy=None)
    write_result(nothing, tmp_path / "r.json")
    for ending in ("html", "png", "json"):
        assert report(str(tmp_path / "r.json"), "--out", str(tmp_path / f"report.{ending}")).exception is None
