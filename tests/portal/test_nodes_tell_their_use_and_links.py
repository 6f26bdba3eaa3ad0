"""Nodes tell how many of their devices were held in the last hours, and how their devices are linked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.kernel.errors import NotFound
from tests.portal.harness import ROOT, Portal
from tests.waiting import pause

TABLE = """\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\t X \tNV4\tPHB\tSYS
GPU1\tNV4\t X \tSYS\tPHB
GPU2\tPHB\tSYS\t X \tNV4
GPU3\tSYS\tPHB\tNV4\t X
"""
EXAMPLE = (ROOT / "examples" / "cluster.yaml").read_text()


def until(found: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not found():
        assert time.monotonic() < begun + 180, "it does not come about"
        time.sleep(pause(begun))


def holder(portal: Portal) -> str:
    """The node of a job that holds all its devices, once it is in the timeline."""
    job = portal.submit("holder", devices=4)
    portal.begun(job)
    node = str(portal.client.placement(job)["items"][0]["node"])
    until(lambda: job in [each["job"] for each in portal.client.device_timeline(node=node)["past"]])
    return node


def test_the_use_of_the_last_hours_is_a_line_under_the_pointer_and_the_focus(page: Page, portal: Portal) -> None:
    node = holder(portal)
    other = "local/node1" if node != "local/node1" else "local/node2"
    page.goto(f"/nodes?node={node}")
    peek = page.locator("[data-peek]")
    page.locator(f"tr[data-node='{node}']").get_by_role("button", name=node.partition("/")[2]).focus()
    expect(peek).to_contain_text("4 of 4 devices held now")
    page.keyboard.press("Escape")
    expect(peek).to_have_count(0)
    page.locator(f"tr[data-node='{other}']").get_by_role("button", name=other.partition("/")[2]).hover()
    expect(peek).to_contain_text("0 of 4 devices held now")
    page.get_by_role("heading", name="Nodes").hover(force=True)
    expect(peek).to_have_count(0)
    strip = page.get_by_role("img", name="Device 3: held")
    expect(strip).to_be_visible()
    expect(strip.locator("rect").first).to_be_attached()  # the present moment at least is marked as held


@pytest.fixture
def linked(portal: Portal) -> Iterator[str]:
    """A fifth node, of which the cluster document has a matrix of links; it is gone afterwards."""
    devices = json.dumps({"count": 4, "model": "linked", "matrix": TABLE})
    more = f"  rack3: {{nodes: {{node5: {{devices: {devices}}}}}}}\nqueues:"
    portal.client.apply(EXAMPLE.replace("queues:", more))
    until(lambda: known(portal, "local/node5"))
    yield "local/node5"
    portal.client.apply(EXAMPLE)
    until(lambda: not known(portal, "local/node5"))


def known(portal: Portal, node: str) -> bool:
    try:
        return bool(portal.client.node(node)["devices"])
    except NotFound:
        return False


def test_links_between_devices_are_a_matrix_with_its_words_explained(page: Page, linked: str) -> None:
    page.goto(f"/nodes?node={linked}")
    table = page.get_by_role("table", name="Links between devices")
    expect(table.locator("tbody tr")).to_have_count(4)
    rows = [row.inner_text().split() for row in table.locator("tbody tr").all()]
    assert rows[0] == ["0", "–", "NV4", "PHB", "SYS"] and rows[3] == ["3", "SYS", "PHB", "NV4", "–"]
    meaning = page.get_by_role("list", name="What the links mean")
    expect(meaning).to_contain_text("NV4 by 4 links of the vendor's own (NVLink, XGMI, HCCS)")
    expect(meaning).to_contain_text("SYS over the link between NUMA nodes")
    page.goto("/nodes?node=local/node1")
    expect(
        page.get_by_role("table", name="History of its health").or_(page.get_by_text("No sign of trouble"))
    ).to_be_visible()
    expect(table).to_have_count(0)
