"""Budgets that administrators set, add to and remove in the portal, and what queues were owed and got in a week."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal


@pytest.fixture
def unbounded(portal: Portal) -> Iterator[Portal]:
    """The server without budgets before and after."""
    _remove_budgets(portal)
    yield portal
    _remove_budgets(portal)


def _remove_budgets(portal: Portal) -> None:
    for each in portal.client.budgets()["items"]:
        portal.client.remove_budget(each["kind"], each["name"], each["window"])


def test_a_budget_is_set_changed_added_to_and_removed(page: Page, unbounded: Portal) -> None:
    page.goto("/usage")
    page.get_by_role("button", name="New budget").click()
    dialog = page.get_by_role("dialog", name="New budget")
    expect(dialog.get_by_role("combobox", name="Of a")).to_be_focused()
    dialog.get_by_role("combobox", name="Queue").select_option("research")
    expect(dialog.get_by_role("button", name="Set it")).to_be_disabled()
    dialog.get_by_label("Device-hours in each week").fill("500")
    expect(dialog).to_contain_text("corral budget set queue research week 500")
    dialog.get_by_label("Device-hours in each week").press("Enter")
    row = page.locator("tr[data-budget='queue/research/week']")
    expect(row).to_contain_text("● open")
    row.get_by_role("button", name="change").click()
    dialog = page.get_by_role("dialog", name="Change the budget of queue research")
    dialog.get_by_label("Device-hours in each week").fill("400")
    dialog.get_by_label("Warn submissions from").fill("90")
    dialog.get_by_label("When it is used up, jobs that run").select_option("hold")
    expect(dialog).to_contain_text("corral budget set queue research week 400 --warn-at 0.9 --when-used-up hold")
    expect(dialog.get_by_role("status")).to_contain_text("of 400.0 device-hours are left in this week.")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(row).to_contain_text("holds jobs when it is used up")
    row.get_by_role("button", name="add").click()
    dialog = page.get_by_role("dialog", name="Add to the budget of queue research")
    dialog.get_by_label("Device-hours to add").fill("50")
    expect(dialog.get_by_role("status")).to_contain_text("of 450.0 device-hours are left in this week.")
    expect(dialog.get_by_role("button", name="Add it")).to_be_disabled()
    dialog.get_by_label("Why").fill("deadline of the paper")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("50.0 added")
    row.get_by_label("Who changed it").press("Enter")
    expect(row.get_by_role("listitem")).to_have_count(2)
    expect(row).to_contain_text("root set 400.0 device-hours")
    expect(row).to_contain_text("deadline of the paper")
    (stored,) = unbounded.client.budgets()["items"]
    assert (stored["deviceHours"], stored["allowed"], stored["warnAt"]) == (400, 450, 0.9)
    assert stored["whenUsedUp"] == "hold"
    row.get_by_role("button", name="remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("There are no budgets")).to_be_visible()
    assert unbounded.client.budgets()["items"] == []
    lines = [each for each in unbounded.client.audit()["items"] if each["resource"] == "budget:queue/research/week"]
    assert [each["detail"]["change"] for each in lines[:4]] == ["remove", "top-up", "set", "set"]


def test_a_budget_of_an_unknown_user_is_refused_in_the_form(page: Page, unbounded: Portal) -> None:
    page.goto("/usage")
    page.get_by_role("button", name="New budget").click()
    dialog = page.get_by_role("dialog", name="New budget")
    dialog.get_by_role("combobox", name="Of a").select_option("user")
    dialog.get_by_role("textbox", name="User").fill("nobody-here")
    dialog.get_by_label("Device-hours in each week").fill("5")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("There is no user nobody-here.")
    assert unbounded.client.budgets()["items"] == []


def test_users_see_the_budgets_of_queues_and_change_none(page_of: Callable[[str], Page], unbounded: Portal) -> None:
    unbounded.client.set_budget("queue", "research", "month", 100)
    page = page_of("iris")
    page.goto("/usage")
    row = page.locator("tr[data-budget='queue/research/month']")
    expect(row).to_be_visible()
    expect(row.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("button", name="New budget")).to_have_count(0)


def test_the_fairness_of_a_week_is_shown_by_queue(page: Page, portal: Portal) -> None:
    portal.client.wait(portal.submit("spender", "sleep 1", devices=4), timeout=240)
    portal.client.wait(portal.submit("other", "sleep 1", devices=2, more='"queue": "research"'), timeout=240)
    year, week, _ = datetime.now(UTC).isocalendar()
    this = f"{year}-W{week:02}"
    page.goto("/usage")
    page.get_by_role("navigation", name="Usage").get_by_role("link", name="Fairness").click()
    expect(page.get_by_role("list", name="What is not known")).to_contain_text("Weights and deserved amounts")
    page.get_by_role("combobox", name="Week").select_option(this)
    expect(page).to_have_url(f"{portal.url}/fairness?week={this}")
    rows = page.get_by_role("table", name="Queues").locator("tr[data-queue]")
    expect(rows.filter(has_text="research")).to_contain_text("times")
    expect(rows.filter(has_text="default")).to_be_visible()
    expect(page.get_by_role("list", name="Summary")).to_contain_text("Half of the jobs that started waited at most")
    expect(page.get_by_text(f"corral usage fairness --week {this}")).to_be_visible()
    users = page.get_by_role("table", name="Users").locator("tr[data-user]")
    expect(users.filter(has_text="root").get_by_role("link")).to_be_visible()
    rows.filter(has_text="research").get_by_role("link", name="times").click()
    expect(page.get_by_role("heading", name="other", level=1)).to_be_visible()
    page.goto("/fairness?week=2099-W01")
    expect(page.get_by_role("alert")).to_contain_text("has not begun")
