"""The page of benchmarks: nodes below their like, a measurement over time, two runs compared; for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.portal.axe import findings
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

TRIAD = "cpu-stream/triad_bw"
A100 = "1x NVIDIA A100-SXM4-80GB"


def results(values: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "node": node,
            "sku": A100,
            "metrics": {f"{TRIAD}:0": value, "mem-bw/d2d_bw:0": 8 * value, "tcp-bw/pair_lat:0": 30.0},
        }
        for node, value in values.items()
    ]


@pytest.fixture
def runs(portal: Portal) -> Iterator[list[str]]:
    """Two runs on three nodes, one of which is slower in the second one."""
    names = [f"local/a-node-with-a-rather-long-name-{at}" for at in (1, 2, 3)]
    made = []
    for last in (101.0, 60.0):
        values = dict(zip(names, (100.0, 102.0, last), strict=True))
        made.append(portal.client.keep_benchmark(results(values), suite="full", problems=["disk: no fio"])["id"])
    yield made
    for run in made:
        portal.client.remove_benchmark(run)


def test_a_node_below_its_like_is_marked_and_its_history_is_drawn(page: Page, runs: list[str], watch: Watch) -> None:
    watch.attach(page)
    page.goto("/nodes")
    page.get_by_role("navigation", name="Nodes").get_by_role("link", name="Benchmarks").click()
    slow = page.get_by_role("table", name="Measured nodes").get_by_role("row", name="long-name-3")
    expect(slow).to_contain_text("◆ 2")
    expect(slow).to_contain_text(f"{TRIAD}:0 is 60, -40.0% of 100")
    page.get_by_role("combobox", name="Measurement").select_option(TRIAD)
    chart = page.get_by_role("img", name=f"{TRIAD} of")
    expect(chart).to_have_accessible_name(
        f"{TRIAD} of 3 nodes in 2 runs, from 60 to 102 GB/s; below their like: local/a-node-with-a-rather-long-name-3"
    )
    expect(chart.locator("[data-slow]")).to_have_count(1)
    slow.get_by_role("button").press("Enter")
    own = page.get_by_role("table", name="Measurements of local/a-node-with-a-rather-long-name-3")
    row = own.get_by_role("row", name="mem-bw/d2d_bw")
    expect(row).to_contain_text("800 of 3 nodes")
    expect(row).to_contain_text("1,020, 713.")
    expect(own.get_by_role("row", name="pair_lat")).not_to_contain_text("◆")
    expect(
        page.get_by_role(
            "button", name=f"corral benchmark history local/a-node-with-a-rather-long-name-3 --measurement {TRIAD}"
        )
    ).to_be_visible()


def test_two_runs_are_compared(page: Page, runs: list[str]) -> None:
    before, after = runs
    page.goto(f"/benchmarks?before={before}&after={after}")
    changes = page.get_by_role("table", name="Two runs compared")
    expect(changes.get_by_role("row", name=TRIAD)).to_contain_text("-1.0 %")
    expect(page.get_by_role("list", name="Problems of the run")).to_contain_text("disk: no fio")
    page.get_by_role("combobox", name="Run after").select_option(before)
    expect(changes.get_by_role("row", name=TRIAD)).to_contain_text("0.0 %")


def test_single_ways_of_two_runs_are_matrices(page: Page, portal: Portal) -> None:
    runs = []
    for rate in (4.0, 3.0):
        lines = [
            {"node": "local/a", "metrics": {"tcp-bw/to_local+b_bw:0": rate, "peer-bw/peer_0_1_bw:0": 20.0}},
            {"node": "local/b", "metrics": {"tcp-bw/to_local+a_bw:0": 4.0}},
        ]
        runs.append(portal.client.keep_benchmark(lines, suite="full")["id"])
    page.goto(f"/benchmarks?before={runs[0]}&after={runs[1]}")
    nodes = page.get_by_role("table", name="tcp-bw between nodes")
    expect(nodes.get_by_role("row", name="0 local/a")).to_contain_text("◆ 3-25.0 %")
    expect(nodes.get_by_title("local/a to local/b: 4 before, 3 after")).to_be_visible()
    expect(nodes.get_by_role("row", name="1 local/b")).not_to_contain_text("◆")
    devices = page.get_by_role("table", name="peer-bw between the devices of local/a")
    expect(devices.get_by_title("device 0 to device 1: 20 before, 20 after")).to_have_text("20")
    expect(page.get_by_role("table", name="Two runs compared").get_by_role("row", name="to_local")).to_have_count(0)
    assert findings(page) == []
    for run in runs:
        portal.client.remove_benchmark(run)


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1440, "light")])
def test_it_can_be_read_on_any_screen(
    browser: Browser, portal: Portal, runs: list[str], theme: Theme, width: int, tmp_path: Path
) -> None:
    with open_context(browser, portal, width=width, theme=theme) as context:
        page = context.new_page()
        page.goto(f"/benchmarks?metric={TRIAD}&node=local/a-node-with-a-rather-long-name-3&before={runs[0]}")
        expect(page.get_by_role("table", name="Two runs compared")).to_be_visible()
        expect(page.get_by_role("table", name="Measurements of local/a-node")).to_be_visible()
        expect(page.get_by_role("img", name=f"{TRIAD} of 3 nodes")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(PALE) == []
        assert page.evaluate(NAMELESS) == []
        assert findings(page) == []
        page.screenshot(path=tmp_path / f"{theme}-{width}.png", full_page=True)
