"""A Gantt chart has a bar for each stay, stays within its bounds, and says what it leaves out."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from corral.cli.sim import sim_command
from corral.sim import gantt as module
from corral.sim.gantt import LOST, OTHER, Bar, By, Gantt, colours_of, key
from corral.sim.occupancy import Occupancy, Stay
from corral.sim.report import report_of
from corral.sim.report_page import report_page
from corral.sim.results import JobResult, Result

OCCUPANCY = Occupancy(
    (("node-a", 4), ("node-b", 2)),
    (
        Stay(0.0, 3600.0, "one", "ada", 0, (0, 1, 3)),
        Stay(0.0, 7200.0, "two", "bob", 1, (0, 1)),
        Stay(3600.0, 7200.0, "", "", 0, (0, 1, 2, 3)),
    ),
)


def drawn(occupancy: Occupancy, makespan: float, by: By = "user") -> Gantt:
    return Gantt("Devices", occupancy, makespan, colours_of([occupancy], by), by)


def elements(svg: str, name: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith(name)]


def test_neighbouring_devices_of_a_job_are_one_bar() -> None:
    gantt = drawn(OCCUPANCY, 7200.0)
    one, two = gantt.colours["ada"], gantt.colours["bob"]
    first = "one of ada: node-a, devices 0-1, 3, 0.00 to 1.00 h"
    assert list(gantt.bars()) == [
        Bar(0.0, 1.0, 0, 2, one, first),
        Bar(0.0, 1.0, 3, 1, one, first),
        Bar(0.0, 2.0, 4, 2, two, "two of bob: node-b, devices 0-1, 0.00 to 2.00 h"),
        Bar(1.0, 2.0, 0, 4, LOST, "failed: node-a, devices 0-3, 1.00 to 2.00 h"),
    ]
    assert gantt.key == {"bob": two, "ada": one, "failed node": LOST} and not gantt.note


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 1), st.sets(st.integers(0, 1), min_size=1)),
        max_size=20,
    )
)
def test_every_bar_is_inside_the_chart(found: list[tuple[float, float, int, set[int]]]) -> None:
    stays = [
        Stay(begin, begin + length, f"j{at}", f"u{at}", node, tuple(sorted(held)))
        for at, (begin, length, node, held) in enumerate(found)
    ]
    occupancy = msgspec.structs.replace(OCCUPANCY, stays=tuple(sorted(stays, key=lambda stay: stay.begin)))
    svg = drawn(occupancy, max((stay.end for stay in stays), default=0.0)).svg()
    *_, width, height = (float(each) for each in ElementTree.fromstring(svg).attrib["viewBox"].split())
    for bar in elements(svg, "rect"):
        assert float(bar.attrib["x"]) >= 0 and float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width
        assert float(bar.attrib["y"]) >= 0 and float(bar.attrib["y"]) + float(bar.attrib["height"]) <= height


def test_names_are_escaped() -> None:
    stay = Stay(0.0, 10.0, "<b>&", "<i>", 0, (0,))
    gantt = drawn(msgspec.structs.replace(OCCUPANCY, nodes=(("<u>", 4),), stays=(stay,)), 10.0)
    text = gantt.svg() + key(gantt)
    assert not re.search("<[biu]>", text) and "<b>& of <i>" in unescape(text)
    ElementTree.fromstring(gantt.svg())


def test_users_with_the_most_device_seconds_have_a_colour_of_their_own() -> None:
    stays = tuple(Stay(0.0, 100.0 - at, f"j{at}", f"u{at}", 0, (0,)) for at in range(15))
    gantt = drawn(msgspec.structs.replace(OCCUPANCY, stays=stays), 100.0)
    assert gantt.colours["u14"] == OTHER and gantt.key["other users"] == OTHER
    own = [colour for colour in gantt.colours.values() if colour != OTHER]
    assert len(own) == len(set(own)) == 10 and "u0" in gantt.key
    assert len({*drawn(gantt.occupancy, 100.0, by="job").colours}) == 15


def test_names_of_nodes_do_not_overlap() -> None:
    gantt = drawn(msgspec.structs.replace(OCCUPANCY, nodes=tuple((f"n{at}", 4) for at in range(8))), 7200.0)
    assert [name for name, _ in gantt.labelled(pixels=4.0)] == [f"n{at}" for at in range(8)]
    assert [name for name, _ in gantt.labelled(pixels=1.0)] == ["n0", "n4"]


def test_a_user_has_the_same_colour_under_each_policy() -> None:
    others = msgspec.structs.replace(OCCUPANCY, stays=(Stay(0.0, 1e6, "one", "ada", 0, (0,)), *OCCUPANCY.stays[1:]))
    results = [Result(name, 6, (), 0, (), occupancy=each) for name, each in (("fifo", OCCUPANCY), ("las", others))]
    first, second = report_of(results).gantts
    assert first.colours == second.colours and list(first.colours) == ["ada", "bob"]


def test_what_is_not_drawn_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    known = msgspec.structs.replace(OCCUPANCY, until=3600.0)
    assert drawn(known, 7200.0).note == "The chart shows the first 1 of 2 hours."
    monkeypatch.setattr(module, "_MOST_NODES", 1)
    gantt = drawn(OCCUPANCY, 7200.0)
    assert gantt.note == "The chart shows the first 1 of 2 nodes." and gantt.rows == 4
    monkeypatch.setattr(module, "_MOST_BARS", 2)
    gantt = drawn(OCCUPANCY, 7200.0)
    assert gantt.note == "The chart shows the first 1 of 2 nodes and the first 1 of 2 hours."
    assert {bar.end for bar in gantt.bars()} == {1.0} and len(list(gantt.bars())) == 2


def test_a_report_draws_devices_and_fragmentation_where_placements_are_known() -> None:
    job = JobResult("one", "ada", 3, 3600.0, 0.0, 0.0, 3600.0, 0, 0.0, True)
    plain = Result("fifo", 6, (job,), 1, ((0.0, 3600.0, 3),))
    kept = msgspec.structs.replace(plain, policy="las", occupancy=OCCUPANCY)
    titles = [chart.title for chart in report_of([kept]).sections[0].charts]
    assert titles[-1] == "Fragmentation" and len(report_of([kept]).gantts) == 1
    both = report_of([plain, kept])
    assert [gantt.title for gantt in both.gantts] == ["Devices under las"]
    assert "Fragmentation" not in [chart.title for chart in both.sections[0].charts]
    assert "<td>–</td>" in report_page(both)


def test_the_command_draws_the_devices_of_a_simulation(tmp_path: Path) -> None:
    trace, result, page = tmp_path / "trace.csv", tmp_path / "r.json", tmp_path / "page.html"
    trace.write_text("submitted,seconds,devices,user\n0,1000,4,ada\n1,10,2,bob\n")
    words = ["run", "--trace", str(trace), "--cluster", "1x4", "--policy", "fifo"]
    words += ["--placements", "--results", str(result)]
    assert CliRunner().invoke(sim_command, words, catch_exceptions=False).exit_code == 0
    words = ["report", str(result), "--out", str(page), "--colour", "job"]
    assert CliRunner().invoke(sim_command, words, catch_exceptions=False).exit_code == 0
    assert "Devices under fifo" in page.read_text() and page.read_text().count("<rect") == 2
