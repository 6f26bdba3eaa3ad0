"""Results are written, read and drawn as a page that needs no other file."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from corral.cli.sim import sim_command
from corral.kernel.errors import InvalidInput, NotFound
from corral.sim.charts import Chart
from corral.sim.curves import BINS, cumulative, devices_in_use, jobs_that_wait, mean_over_time, over_time
from corral.sim.report import report_of
from corral.sim.report_page import report_page
from corral.sim.results import JobResult, Result, percentile, read_result, write_result


def job(name: str, submitted: float, started: float, ended: float, devices: int = 1) -> JobResult:
    return JobResult(name, "ada", devices, ended - started, submitted, started, ended, 0, 0.0, True)


RESULT = Result(
    "fifo", 4, (job("a", 0.0, 0.0, 100.0, 4), job("b", 0.0, 100.0, 200.0, 2)), 2, ((0.0, 100.0, 4), (100.0, 200.0, 2))
)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_result(RESULT, tmp_path / "fifo.json")
    read = read_result(tmp_path / "fifo.json")
    assert read == RESULT and read.digest == RESULT.digest
    assert json.loads((tmp_path / "fifo.json").read_text())["jobs"][1]["started"] == 100.0


NO_DEVICES = '{"policy": "a", "devices": 0, "jobs": [], "submitted": 0, "held": []}'


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"policy": 1}', "\x00", NO_DEVICES])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(InvalidInput, match="does not hold a result of a simulation"):
        read_result(tmp_path / "file")
    with pytest.raises(NotFound):
        read_result(tmp_path / "nothing")


def test_devices_in_use_and_waiting_jobs_follow_the_runs() -> None:
    used = mean_over_time([devices_in_use(RESULT)], RESULT.makespan)
    assert {round(part, 9) for _, part in used} == {1.0, 0.5}
    assert sum(part for _, part in used) / len(used) == pytest.approx(RESULT.utilisation)
    assert over_time(jobs_that_wait(RESULT), RESULT.makespan) == pytest.approx([1.0] * 100 + [0.0] * 100)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 64)), max_size=20), st.floats(1, 1e6))
def test_a_curve_over_time_keeps_the_whole_amount(found: list[tuple[float, float, int]], until: float) -> None:
    spans = [(min(pair), max(pair), float(amount)) for *pair, amount in found]
    whole = sum((min(end, until) - min(begin, until)) * amount for begin, end, amount in spans)
    parts = over_time(spans, until)
    assert len(parts) == BINS and sum(parts) / BINS * until == pytest.approx(whole, rel=1e-6, abs=1e-3)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=1000))
def test_the_cumulative_curve_rises_to_one_and_agrees_with_the_percentiles(values: list[float]) -> None:
    points = cumulative(values)
    assert points[-1] == (max(values), 1.0) and len(points) <= 400
    assert list(points) == sorted(points)
    assert percentile(sorted(values), 1.0) == max(values)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e6)), max_size=20), st.booleans())
def test_every_point_of_a_chart_is_inside_it(points: list[tuple[float, float]], logarithmic: bool) -> None:
    svg = Chart("title & more", "x", "y", {"<line>": sorted(points)}, logarithmic).svg()
    (line,) = (each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("polyline"))
    for x, y in (pair.split(",") for pair in line.attrib["points"].split()):
        assert 0 <= float(x) <= 640 and 0 <= float(y) <= 300


def test_a_page_escapes_names_and_needs_no_other_file() -> None:
    page = report_page(report_of([RESULT, Result("<b>", 4, (), 0, ()), RESULT]))
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert "fifo (2)" in page
    assert "src=" not in page and "href=" not in page


def test_the_command_writes_results_and_draws_them(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submitted,seconds,devices\n0,1000,4\n1,10,4\n")
    words = [
        "run",
        "--trace",
        str(trace),
        "--cluster",
        "1x4",
        "--policy",
        "fifo",
        "--results",
        str(tmp_path / "r.json"),
    ]
    assert CliRunner().invoke(sim_command, words, catch_exceptions=False).exit_code == 0
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        sim_command, ["report", str(tmp_path / "r.json"), "--out", str(page)], catch_exceptions=False
    )
    assert done.exit_code == 0 and page.read_text().count("<svg") == 7
