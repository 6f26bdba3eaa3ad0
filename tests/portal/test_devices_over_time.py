"""Devices over time: what was on each node and what is expected, as bars and as a table, and of a node on its own page."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.portal.harness import Portal

NEXT_FORECASTS = 180_000
"""Milliseconds for some looks: the page looks each 30 s, and a forecast is played in a process of its own."""


def busy(portal: Portal) -> tuple[str, str, str]:
    """A job that has ended, one that runs on a whole node, and its node."""
    past = portal.submit("was-here", "true", devices=1)
    portal.client.wait(past, timeout=240)
    runs = portal.submit("is-here", devices=4, more='"maxDuration": "2h"')
    portal.begun(runs)
    return past, runs, str(portal.client.placement(runs)["items"][0]["node"])


def test_bars_show_what_was_what_runs_and_what_is_expected(page: Page, portal: Portal) -> None:
    past, runs, node = busy(portal)
    page.goto("/nodes")
    page.get_by_role("link", name="Devices over time").click()
    expect(page).to_have_url(f"{portal.url}/timeline")
    expect(page.locator("[data-node]")).to_have_count(4)
    row = page.locator(f"[data-node='{node}']")
    expect(row.locator("[data-bar=runs]")).to_have_count(1, timeout=NEXT_FORECASTS)
    expect(row.locator("[data-bar=expected]")).to_have_count(1, timeout=NEXT_FORECASTS)
    expect(row).to_contain_text("4 devices: jobs that were here")
    expect(page.locator("[data-bar=past]")).to_have_count(1)
    assert page.locator("[data-bar=past]").get_attribute("href") == f"/jobs/{past}"
    assert row.locator("[data-bar=runs]").get_attribute("href") == f"/jobs/{runs}"
    told = portal.client.device_timeline(node=node)
    assert runs in [each["job"] for each in told["past"]] and runs in [each["job"] for each in told["expected"]]
    boxes = [row.locator(f"[data-bar={each}]").bounding_box() for each in ("runs", "expected")]
    assert boxes[0] is not None and boxes[1] is not None
    assert boxes[0]["x"] < boxes[1]["x"], "what is expected begins where what was ends"


def test_a_new_server_is_shown_from_about_its_start(page: Page, portal: Portal) -> None:
    busy(portal)
    page.goto("/timeline")
    shown = page.get_by_role("group", name="How far to look back and ahead")
    hour = shown.get_by_role("button", name="1 h", exact=True)
    # the begin of a job may be stored after the page's first look
    expect(hour).to_have_attribute("aria-pressed", "true", timeout=NEXT_FORECASTS)
    shown.get_by_role("button", name="24 h", exact=True).click()
    expect(page).to_have_url(f"{portal.url}/timeline?hours=24")
    expect(shown.get_by_role("button", name="24 h", exact=True)).to_have_attribute("aria-pressed", "true")


def test_the_table_has_the_same_by_keyboard_and_one_node_is_an_address(page: Page, portal: Portal) -> None:
    _, runs, node = busy(portal)
    page.goto("/timeline")
    page.get_by_role("combobox", name="Node").select_option(node)
    expect(page).to_have_url(f"{portal.url}/timeline?node={node.replace('/', '%2F')}")
    expect(page.locator("[data-node]")).to_have_count(1)
    expect(page.get_by_role("button", name=f"corral nodes timeline {node}")).to_be_visible()
    page.get_by_role("button", name="1 h", exact=True).click()
    expect(page.get_by_role("button", name=f"corral nodes timeline {node} --hours 1")).to_be_visible()
    expect(page.locator("[data-bar=expected]")).to_have_count(1, timeout=NEXT_FORECASTS)
    page.get_by_text("As a table").focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Devices over time")
    line = table.get_by_role("row").filter(has_text="is-here").filter(has_text="runs")
    expect(line).to_contain_text("0–3")
    expect(table.get_by_role("row").filter(has_text="expected")).to_contain_text("is-here")
    line.get_by_role("link", name="is-here").press("Enter")
    expect(page).to_have_url(f"{portal.url}/jobs/{runs}")
