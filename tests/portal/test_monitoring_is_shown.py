"""Alerts and silences, the health of nodes, and use with its costs and budgets in the portal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.cli.csv_cells import csv_cell
from corral.cli.focus_columns import COLUMNS, focus_cells, focus_row
from tests.portal.harness import Portal
from tests.portal.monitored import PRICES, alert, end_alerts, fault, tell_alerts, tell_faults

NODE = "local/node4"


@pytest.fixture
def alerted(portal: Portal) -> Iterator[Portal]:
    """The server with a fatal alert, a warning about a user's job, and one that is over; all have ended afterwards."""
    tell_alerts(
        portal,
        alert("NodeNotReady", "fatal", "node1 does not answer.", minutes=7, node_name="node1"),
        alert("PaiJobPending", "warn", "It waits.", minutes=40, job_name="iris~sweep", username="iris"),
        alert("DiskFull", "warn", "It was full.", minutes=90, over=True, node_name="node2"),
    )
    yield portal
    end_alerts(portal)


def test_what_fires_is_counted_and_silenced_with_a_reason(page: Page, alerted: Portal) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Alerts 2 alerts fire").click()
    firing = page.get_by_role("table", name="Firing").locator("tr[data-alert]")
    expect(firing).to_have_count(2)
    expect(firing.first).to_contain_text("✕ fatalNodeNotReadynode1 does not answer.node node1")
    expect(firing.first).to_contain_text(re.compile(r"\dm ago"))
    expect(page.get_by_role("table", name="Over")).to_contain_text("DiskFull")
    page.get_by_role("button", name="Silence NodeNotReady").press("Enter")
    dialog = page.get_by_role("dialog", name="Silence NodeNotReady?")
    expect(dialog.get_by_label("Why")).to_be_focused()
    expect(dialog.get_by_role("status")).to_contain_text("Holds back 1 alert of now: NodeNotReady.")
    dialog.get_by_label("Alerts whose labels").fill("node_name")
    expect(dialog.get_by_role("status")).to_contain_text("A matcher is written as")
    dialog.get_by_label("Alerts whose labels").fill('node_name="node1"')
    dialog.get_by_label("For").select_option("8 hours")
    dialog.get_by_label("Why").fill("new fans")
    expect(dialog).to_contain_text("""corral alerts silence 'node_name="node1"' --for 8h --reason 'new fans'""")
    dialog.get_by_label("Why").press("Enter")
    expect(page.get_by_role("table", name="Silenced")).to_contain_text("NodeNotReady")
    expect(page.locator("[data-firing='1']")).to_have_count(1)
    (silence,) = alerted.client.silences()["items"]
    assert (silence["matchers"], silence["by"], silence["reason"]) == (['node_name="node1"'], "root", "new fans")
    expect(page.get_by_role("table", name="Silences")).to_contain_text("new fans")
    page.get_by_role("button", name="End the silence: new fans").click()
    page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(firing).to_have_count(2)
    assert alerted.client.silences()["items"] == []


def test_what_fired_is_listed_with_how_long_it_did(page_of: Callable[[str], Page], alerted: Portal) -> None:
    end_alerts(alerted)
    page = page_of("iris")
    page.goto("/alerts")
    expect(page.get_by_role("table", name="History")).to_have_count(0)
    page.get_by_text("What fired within the last 90 days.").click()
    rows = page.get_by_role("table", name="History").locator("tr[data-alert]")
    expect(rows.first).to_contain_text("▲ warnPaiJobPendingIt waits.job iris~sweep · user iris")
    expect(rows.first).not_to_contain_text("fires")
    assert {each.get_attribute("data-alert") for each in rows.all()} == {"PaiJobPending"}, "another's is not shown"


def test_users_are_shown_their_own_alerts_and_silence_none(page_of: Callable[[str], Page], alerted: Portal) -> None:
    page = page_of("iris")
    page.goto("/alerts")
    rows = page.get_by_role("table", name="Firing").locator("tr[data-alert]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("job iris~sweep · user iris")
    expect(page.get_by_role("heading", name="Silences")).to_have_count(0)
    expect(page.get_by_role("button", name="Silence")).to_have_count(0)


@pytest.fixture
def ailing(portal: Portal) -> Iterator[Portal]:
    """The server with a node of which a fault was told; it is healthy afterwards."""
    portal.client.change_health(NODE, "repairing", why="begins anew")
    portal.client.change_health(NODE, "healthy", why="begins anew")
    tell_faults(portal, fault("node4", "Xid 31: a page fault", 2, fatal=False, code="31"))
    yield portal
    if portal.client.node(NODE)["cordon"]:
        portal.client.change_health(NODE, "healthy", why="the test is over")


def test_a_node_is_taken_over_and_returned_with_reasons(page: Page, ailing: Portal) -> None:
    page.goto(f"/nodes?node={NODE}")
    health = page.get_by_role("region", name="Health of node4")
    history = health.get_by_role("table", name="History of its health")
    expect(history.get_by_role("row").filter(has_text="Xid 31: a page fault")).to_contain_text("+2")
    expect(health).to_contain_text("● healthy, score 2.0 (device 2 2.0)")
    health.get_by_role("button", name="Repair").click()
    dialog = page.get_by_role("dialog", name="Repair node4?")
    expect(dialog.get_by_label("Why")).to_be_focused()
    expect(dialog.get_by_role("button", name="Repair", exact=True)).to_be_disabled()
    page.keyboard.type("board changed")
    expect(dialog).to_contain_text(f"corral nodes repairing {NODE} --why 'board changed'")
    page.keyboard.press("Enter")
    expect(health).to_contain_text("⚒ repairing")
    expect(health).to_contain_text("by root: board changed")
    page.get_by_role("group", name="Health").get_by_role("button", name="1 ⚒ repairing").click()
    expect(page.locator("tr[data-node]")).to_have_count(1)
    health.get_by_role("button", name="Healthy").click()
    page.get_by_role("dialog").get_by_label("Why").fill("cable")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No node matches")).to_be_visible()
    moves = [(each["after"], each["by"], each["reason"]) for each in ailing.client.node_history(NODE)["items"]]
    assert moves[:2] == [("healthy", "root", "cable"), ("repairing", "root", "board changed")]


def test_only_administrators_change_the_health_of_a_node(page_of: Callable[[str], Page], portal: Portal) -> None:
    page = page_of("iris")
    page.goto(f"/nodes?node={NODE}")
    expect(page.get_by_role("region", name="Health of node4").get_by_role("button", name="Repair")).to_be_disabled()


@pytest.fixture
def priced(portal: Portal) -> Iterator[Portal]:
    """The server with prices and a budget, and the use of a job that is over."""
    portal.client.apply(PRICES)
    portal.client.wait(portal.submit("spender", "sleep 2", devices=4), timeout=240)
    portal.client.set_budget("queue", "default", "week", 100_000)
    yield portal
    portal.client.remove_budget("queue", "default", "week")
    portal.client.delete_configuration("prices", "default")


def test_use_is_shown_with_its_cost_and_taken_along_as_focus(page: Page, priced: Portal) -> None:
    page.goto("/usage")
    page.get_by_label("Summed by").select_option("queue")
    row = page.get_by_role("table", name="Use by queue").locator("tr[data-use=default]")
    expect(row).to_be_visible()
    expect(page.get_by_role("columnheader", name="EUR")).to_be_visible()
    chart = page.get_by_role("figure").get_by_role("img")
    expect(chart).to_have_accessible_name(re.compile(r"Device-hours by day from .* to .*; in all .*default \d"))
    page.get_by_role("button", name="Cost").click()
    expect(page.get_by_role("figure")).to_contain_text("Cost in EUR by day")
    with page.expect_response("**/usage/charges*"):  # of the chart, so that the next one is that of the file
        page.get_by_role("button", name="7 days").click()
    expect(page).to_have_url(f"{priced.url}/usage?by=queue&show=cost&days=7")
    budget = page.get_by_role("table", name="Budgets").locator("tr[data-budget='queue/default/week']")
    expect(budget).to_contain_text("● open")
    with page.expect_response("**/usage/charges*") as answered, page.expect_download() as focus:
        page.get_by_role("button", name="FOCUS").click()
    told, written = answered.value.json(), io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    for charge in told["items"]:
        lines.writerow(map(csv_cell, focus_cells(focus_row(charge, told["currency"], priced.url))))
    assert focus.value.path().read_text() == written.getvalue()
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    found = list(csv.DictReader(taken.value.path().read_text().splitlines()))
    (used,) = [each for each in found if each["queue"] == "default"]
    assert float(used["device_seconds"]) >= 8 and float(used["cost"]) > 0 and used["currency"] == "EUR"
