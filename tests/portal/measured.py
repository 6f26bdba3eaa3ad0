"""Keep results of benchmarks on the portal's server, as if its nodes had been measured on some days."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal

NODES = tuple(f"local/node{at}" for at in (1, 2, 3, 4))
SKU = "4x NVIDIA A100-SXM4-80GB"
_DAY = 86_400.0
_NOISE = (0.0, 0.012, -0.009, 0.004, 0.017, -0.014, 0.008)
"""Parts by which values differ from run to run and from node to node."""


def node_result(at: int, run: int, *, slow: bool) -> dict[str, Any]:
    """The figures of a node; the link of a slow one is a third of what it was, and two of its devices are linked worse."""

    def near(value: float, number: int) -> float:
        return round(value * (1 + _NOISE[(3 * at + 2 * run + number) % len(_NOISE)]), 3)

    metrics = {
        "cpu-stream/triad_bw:0": near(182, 0),
        "mem-bw/d2d_bw:0": near(790, 1),
        "kernel-launch/wall_time:0": near(0.0118, 2),
        "all-reduce/largest_bw:0": near(8.1 if slow else 22.4, 3),
    }
    for to, other in enumerate(NODES):
        if to != at:
            bad = slow or (run == 3 and to == 2)
            metrics[f"tcp-bw/to_{other.replace('/', '+')}_bw:0"] = near(3.9 if bad else 11.6, abs(to - at))
    for of in range(4):
        for to in range(4):
            if of != to:
                metrics[f"peer-bw/peer_{of}_{to}_bw:0"] = near(11.2 if slow and {of, to} == {1, 2} else 238, of + to)
    return {"node": NODES[at], "sku": SKU, "metrics": metrics}


def plant_benchmarks(portal: Portal) -> list[str]:
    """Keep four runs of four nodes, a week apart, in the last of which the third node is slow; their ids."""
    runs = []
    for run in range(4):
        lines = [node_result(at, run, slow=run == 3 and at == 2) for at in range(len(NODES))]
        runs.append(portal.client.keep_benchmark(lines, suite="full")["id"])
    with sqlite3.connect(portal.database, timeout=60) as database:
        for number, kept in enumerate(runs):
            for table, key in (("benchmark_runs", "id"), ("benchmark_figures", "run")):
                earlier = (7 * _DAY * (len(runs) - 1 - number), kept)
                database.execute(f'UPDATE {table} SET "at" = "at" - ? WHERE {key} = ?', earlier)
    return runs


def take_benchmarks(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of measured nodes and of the last two runs beside each other."""
    before, after = plant_benchmarks(portal)[-2:]
    page.goto(f"/benchmarks?metric=all-reduce/largest_bw&before={before}&after={after}")
    expect(page.get_by_role("img", name="all-reduce/largest_bw of 4 nodes in 4 runs")).to_be_visible()
    expect(page.get_by_role("table", name="tcp-bw between nodes")).to_contain_text("◆")
    expect(page.get_by_role("table", name="peer-bw between the devices of local/node3")).to_contain_text("◆")
    page.screenshot(path=pictures / "benchmarks.png", full_page=True)
