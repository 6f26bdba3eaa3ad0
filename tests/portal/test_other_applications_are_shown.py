"""The portal shows the queues and applications of a cluster that Corral shares, such as YARN's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

NOTHING = {"cpuMillis": 0, "memoryBytes": 0, "devices": 0}
QUEUE = {"state": "running", "capacity": 50.0, "usedPercent": 0.0, "used": NOTHING, "running": 0, "pending": 0}
USE: dict[str, Any] = {
    "engine": "yarn",
    "queues": [
        {**QUEUE, "name": "root.default", "corral": True},
        {**QUEUE, "name": "root.research", "corral": False, "state": "stopped", "usedPercent": 12.5, "pending": 3},
    ],
    "applications": [
        {
            "id": "application_1_0001",
            "name": "word count",
            "user": "bob",
            "queue": "root.research",
            "kind": "MAPREDUCE",
            "state": "running",
            "startedAt": "2026-11-27T07:00:00Z",
            "containers": 2,
            "used": {"cpuMillis": 2000, "memoryBytes": 2**31, "devices": 1},
        }
    ],
    "leftOut": 7,
    "others": {"cpuMillis": 2000, "memoryBytes": 2**31, "devices": 1},
    "corral": NOTHING,
    "trouble": "",
}


def answered(page: Page, *use: dict[str, Any]) -> None:
    """Have the page's server answer that clusters are used so."""

    def answer(route: Route) -> None:
        route.fulfill(content_type="application/json", body=json.dumps({"items": use, "next": None}))

    page.route("**/api/v3/cluster/use", answer)


@pytest.mark.parametrize("path", ["/nodes", "/queues"])
def test_queues_and_other_applications_of_a_shared_cluster_are_listed(page: Page, path: str) -> None:
    answered(page, USE)
    page.goto(path)
    queues = page.get_by_role("table", name="Queues of yarn")
    expect(queues.get_by_role("row").nth(1)).to_contain_text("root.default · Corral’s jobs")
    expect(queues.get_by_role("row").nth(2)).to_contain_text("root.research · stopped")
    expect(queues.get_by_role("row").nth(2)).to_contain_text("12.5%")
    row = page.get_by_role("table", name="Other applications of yarn").get_by_role("row").nth(1)
    for text in ("word count", "bob", "root.research", "MAPREDUCE", "2Gi"):
        expect(row).to_contain_text(text)
    section = page.get_by_role("region", name="The cluster of yarn")
    expect(section).to_contain_text("Others use 1 device, 2 processors and 2Gi")
    expect(section).to_contain_text("7 more applications, not listed")


def test_a_cluster_that_does_not_answer_says_why(page: Page) -> None:
    answered(page, {**USE, "trouble": "The ResourceManager at http://rm:8088 does not answer: refused."})
    page.goto("/nodes")
    expect(page.get_by_role("region", name="The cluster of yarn")).to_contain_text("does not answer: refused.")
    expect(page.get_by_role("table", name="Queues of yarn")).to_have_count(0)


def test_a_server_without_a_shared_cluster_shows_nothing_of_one(page: Page) -> None:
    with page.expect_response("**/api/v3/cluster/use") as answer:
        page.goto("/nodes")
    assert answer.value.json()["items"] == []
    expect(page.get_by_role("heading", name="Beside Corral")).to_have_count(0)
