"""Managers of a queue reorder and stop its jobs and limit its members in the portal; others do not see these controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.portal.harness import Portal

QUEUES = "kind: Queue\nname: vision\nlimit: {devices: 8}\nmembersOnly: true\n"


@pytest.fixture
def vision(portal: Portal) -> Iterator[Portal]:
    """A queue for members only, with a group of managers; both are removed afterwards."""
    portal.client.apply(QUEUES)
    portal.client.create_group("leads", grant={"manages": ["vision"]})
    yield portal
    portal.clear()
    portal.client.delete_group("leads")
    portal.client.delete_configuration("queue", "vision")


def waiting(portal: Portal) -> list[str]:
    """One job that holds all of the queue, and three that wait behind it; returns the ids of those."""
    portal.submit("holder", devices=4, replicas=2, more='"queue": "vision"')
    ids = [portal.submit(name, devices=4, replicas=2, more='"queue": "vision"') for name in ("one", "two", "three")]
    return ids


def manager(page_of: Callable[[str], Page], portal: Portal, name: str) -> Page:
    page = page_of(name)
    portal.client.change_group("leads", add=[name])
    return page


def test_a_manager_puts_waiting_jobs_in_another_order(page_of: Callable[[str], Page], vision: Portal) -> None:
    waiting(vision)
    page = manager(page_of, vision, "lea")
    page.goto("/line?queue=vision")
    rows = page.locator("tr[data-waiting]")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("one")
    page.get_by_role("button", name="Move three").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("--first")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(rows.nth(0)).to_contain_text("three")
    page.get_by_role("link", name="two").click()
    page.get_by_role("button", name="Move", exact=True).click()
    dialog.get_by_label("Before another job").check()
    dialog.get_by_role("combobox", name="Before").select_option(label="one (root)")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_be_hidden()
    page.goto("/line?queue=vision")
    expect(rows.nth(1)).to_contain_text("two")
    expect(rows.nth(2)).to_contain_text("one")


def test_a_manager_stops_a_members_job(page_of: Callable[[str], Page], vision: Portal) -> None:
    first, *_ = waiting(vision)
    page = manager(page_of, vision, "lee")
    page.goto(f"/jobs/{first}")
    expect(page.get_by_role("button", name="Restart")).to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("stopped").first).to_be_visible()


def test_a_manager_limits_members_below_the_queues_own_limit(page_of: Callable[[str], Page], vision: Portal) -> None:
    page = manager(page_of, vision, "lou")
    page.goto("/queues?queue=vision")
    queue = page.get_by_role("region", name="Queue vision")
    expect(queue).to_contain_text("For members only")
    expect(queue).to_contain_text("Managed by lou.")
    queue.get_by_role("button", name="Set limits").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("devices, one user").fill("9")
    dialog.get_by_role("button", name="Set them").click()
    expect(dialog.get_by_role("alert")).to_contain_text("below the queue's own")
    dialog.get_by_label("devices, one user").fill("4")
    expect(dialog).to_contain_text("corral limit vision --user devices=4")
    dialog.get_by_role("button", name="Set them").click()
    expect(queue.get_by_role("table", name="Limits that its managers set")).to_contain_text("4")
    assert vision.client.queue_limits("vision")["userLimit"] == {"devices": "4"}


def test_others_are_offered_nothing_of_it(page_of: Callable[[str], Page], vision: Portal) -> None:
    first, *_ = waiting(vision)
    page = page_of("out")
    page.goto("/queues?queue=vision")
    queue = page.get_by_role("region", name="Queue vision")
    expect(queue).to_contain_text("Only administrators manage it.")
    expect(queue.get_by_role("button", name="Set limits")).to_have_count(0)
    page.goto("/line?queue=vision")
    expect(page.locator("tr[data-waiting]")).to_have_count(3)
    expect(page.get_by_role("button", name="Move one")).to_have_count(0)
    page.goto(f"/jobs/{first}")
    expect(page.get_by_role("link", name="Clone")).to_be_visible()
    expect(page.get_by_role("button", name="Move")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
