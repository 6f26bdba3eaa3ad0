"""Node maintenance in the portal: see the affected jobs, close the node, watch it drain, open it again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from corral.kernel.errors import Conflict
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

NODES = tuple(f"local/node{number}" for number in range(1, 5))


@pytest.fixture
def machines(portal: Portal) -> Iterator[Portal]:
    """The server; all its nodes are open afterwards."""
    yield portal
    for node in NODES:
        with contextlib.suppress(Conflict):  # it was open
            portal.client.uncordon(node)


def running(portal: Portal, name: str, *, devices: int) -> tuple[str, str]:
    """A job of one task that prints, and its node."""
    job = portal.submit(name, devices=devices)
    portal.begun(job)
    return job, portal.client.placement(job)["items"][0]["node"]


def opened(page: Page, node: str) -> Locator:
    """Open the page with one node expanded; returns the node's row."""
    page.goto(f"/nodes?node={node}")
    return page.locator(f"tr[data-node='{node}']")


def test_a_node_is_cordoned_with_a_reason_and_opened_again(page: Page, machines: Portal) -> None:
    row = opened(page, "local/node2")
    page.get_by_role("button", name="Cordon", exact=True).click()
    dialog = page.get_by_role("dialog", name="Cordon node2?")
    expect(dialog).to_contain_text("Nothing runs there.")
    expect(dialog.get_by_label("Why")).to_be_focused()
    page.keyboard.type("new cables")
    expect(dialog).to_contain_text("corral cordon local/node2 --why 'new cables'")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("⊘ cordoned by root: new cables")
    cordon = machines.client.node("local/node2")["cordon"]
    assert (cordon["why"], cordon["drain"]) == ("new cables", "")
    expect(page.get_by_role("button", name="Cordon", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Uncordon", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Uncordon", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(row).not_to_contain_text("⊘")
    assert machines.client.node("local/node2")["cordon"] is None


def test_a_drain_shows_what_moves_and_moves_it(page: Page, machines: Portal) -> None:
    job, node = running(machines, "mover", devices=2)
    plain, _ = running(machines, "without-devices", devices=0)
    row = opened(page, node)
    expect(row).to_contain_text("2 of 4")
    page.get_by_role("button", name="Drain", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("radio", name="Move its tasks now")).to_be_checked()
    there = {each["id"] for each in machines.client.node(node)["jobs"]}
    assert job in there
    expect(dialog.get_by_role("listitem")).to_have_count(len(there))
    expect(dialog.locator(f"li[data-job='{job}']")).to_contain_text("1 task, 2 devices")
    if plain in there:
        expect(dialog.locator(f"li[data-job='{plain}']")).to_contain_text("1 task")
    dialog.get_by_label("Why").fill("new cables")
    dialog.get_by_label("Grace in seconds").fill("1")
    expect(dialog).to_contain_text(f"corral drain {node} --grace 1 --why 'new cables'")
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(row).to_contain_text("⊘ drained by root: new cables")
    expect(page.locator(f"tr[data-node]:not([data-node='{node}'])").filter(has_text="2 of 4")).to_have_count(1)
    assert machines.client.placement(job)["items"][0]["node"] != node
    assert machines.client.receipts(job)["items"][0]["rule"] == "drain"


def test_a_drain_may_wait_for_the_jobs_and_then_not_wait(page: Page, machines: Portal) -> None:
    job, node = running(machines, "patient", devices=1)
    row = opened(page, node)
    page.get_by_role("button", name="Drain", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Let its jobs end first").check()
    expect(dialog).to_contain_text("1 task of 1 job to wait for")
    expect(dialog.get_by_label("Grace in seconds")).to_have_count(0)
    expect(dialog).to_contain_text(f"corral drain {node} --after-jobs")
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(row).to_contain_text("⊘ draining after its jobs (1 task left) by root")
    assert machines.client.job(job)["state"] == "running"
    assert machines.client.receipts(job)["items"] == []
    page.get_by_role("button", name="Drain", exact=True).click()
    dialog.get_by_label("Grace in seconds").fill("0")
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(row).to_contain_text("⊘ drained by root")
    expect(page.get_by_role("button", name="Drain", exact=True)).to_have_count(0)


def test_nothing_happens_when_one_leaves_it(page: Page, machines: Portal) -> None:
    opened(page, "local/node1")
    page.get_by_role("button", name="Drain", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Cordon", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert machines.client.node("local/node1")["cordon"] is None


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (390, "light"), (1440, "light")])
def test_the_questions_fit_and_are_legible(
    browser: Browser, machines: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    _, node = running(machines, "holder-with-a-rather-long-name-that-goes-on-and-on", devices=1)
    with open_context(browser, machines, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        opened(page, node)
        for question in ("Cordon", "Drain"):
            page.get_by_role("button", name=question, exact=True).click()
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text("holder-with-a")
            wide = dialog.evaluate("element => element.scrollWidth > element.clientWidth")
            assert not wide and page.evaluate("document.documentElement.scrollWidth") <= width, question
            assert page.evaluate(PALE) == [], f"{question} has text that is hard to read"
            assert page.evaluate(NAMELESS) == [], f"{question} has controls without a name"
            page.keyboard.press("Escape")
