"""Queue pages show shares, holders of devices and the next jobs; queues here have cells and deserved devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import IN_CI, ROOT
from tests.portal.harness import Portal, Theme, Watch, open_context, serving
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE

QUEUES = """
queues:
  default: {}
  research: {cells: [{level: node, count: 2}]}
  production: {deserved: {devices: 8}, limit: {devices: 8}}
  nightly: {parent: production}
"""

NEXT_LOOK = 60_000
"""Milliseconds to wait for a reload: pages reload every 15 s, which also shows changes stored after their event."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    """The described devices of the example, with other queues."""
    if not (ROOT / "corral" / "portal" / "static" / "index.html").is_file():
        missing = "the portal is not built, so it is not tested: make portal"
        pytest.fail(missing) if IN_CI else pytest.skip(missing)
    folder: Path = tmp_path_factory.mktemp("shares")
    cluster = folder / "cluster.yaml"
    example = (ROOT / "examples" / "cluster.yaml").read_text()
    cluster.write_text(example.partition("queues:")[0] + QUEUES)
    with serving(folder, cluster) as portal:
        yield portal


def runs(portal: Portal, name: str, queue: str, *, replicas: int = 1, devices: int = 1, more: str = "") -> str:
    """A running job of a queue."""
    job = portal.submit(name, replicas=replicas, devices=devices, more=f'"queue": "{queue}"{more}')
    portal.begun(job, tasks=replicas)
    return job


def busy(portal: Portal) -> tuple[str, str, str]:
    """A job in its queue's cells, a guest beside it, and one that waits at its queue's limit."""
    mine = runs(portal, "mine", "research", replicas=4)
    guest = runs(portal, "guest", "nightly", devices=3)
    waits = portal.submit("waits", replicas=2, devices=4, more='"queue": "nightly"')
    return mine, guest, waits


def test_the_tree_of_queues_tells_shares_and_changes_with_them(page: Page, portal: Portal) -> None:
    busy(portal)
    page.goto("/queues")
    row = page.locator("tr[data-queue=production]")
    expect(row.locator("[data-bar]")).to_have_attribute("aria-label", "3 used, 8 its own, limit 8")
    names = page.locator("tr[data-queue]").evaluate_all("rows => rows.map(row => row.dataset.queue)")
    assert names == ["default", "production", "nightly", "research"], "children stand below their parents"
    expect(page.locator("tr[data-queue=research]").locator("[data-bar]")).to_have_attribute(
        "aria-label", "4 used, 8 its own"
    )
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page).to_have_url(f"{portal.url}/queues?queue=production")
    page.locator("tr[data-queue=research]").get_by_role("link", name="research").click()
    owned = page.get_by_role("table", name="Cells that it owns")
    expect(owned.locator("tbody tr")).to_have_text("node of 4 described-a100 devices, local21100")
    expect(page.get_by_role("button", name="corral queues research copy")).to_be_visible()
    runs(portal, "more", "research", devices=2)
    expect(page.locator("tr[data-queue=research]").locator("[data-bar]")).to_have_attribute(
        "aria-label", "6 used, 8 its own", timeout=NEXT_LOOK
    )


def test_the_line_is_in_order_with_reasons_and_one_queue_of_it_is_an_address(page: Page, portal: Portal) -> None:
    _, _, waits = busy(portal)
    first = portal.submit("first", replicas=4, devices=4, more='"priority": "prod"')
    page.goto("/queues")
    page.get_by_role("link", name="1 waiting in nightly").click()
    expect(page).to_have_url(f"{portal.url}/line?queue=nightly")
    expect(page.locator("tr[data-waiting]")).to_have_count(1)
    expect(page.locator(f"tr[data-waiting='{waits}']")).to_contain_text("may hold 8 devices")
    expect(page.get_by_role("button", name="corral line --queue nightly")).to_be_visible()
    page.get_by_label("Queue", exact=True).select_option("")
    rows = page.locator("tr[data-waiting]")
    expect(rows).to_have_count(2)
    order = [entry["job"] for entry in portal.client.line()["items"]]
    assert set(order) == {waits, first}
    for place, job in enumerate(order):
        expect(rows.nth(place)).to_have_attribute("data-waiting", job)
    page.keyboard.press("j")
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{portal.url}/jobs/{order[0]}")
    page.goto("/line")
    expect(rows).to_have_count(2)
    portal.client.stop(waits)
    expect(rows).to_have_count(1, timeout=NEXT_LOOK)


def test_the_map_marks_owners_guests_what_leaves_and_what_is_closed(page: Page, portal: Portal, tmp_path: Path) -> None:
    mine, guest, _ = busy(portal)
    page.goto("/")
    cluster = page.get_by_test_id("cluster-map")
    expect(cluster.locator("[data-owner=research]")).to_have_count(2)
    expect(cluster).to_contain_text("bound to research")
    expect(cluster).to_contain_text("guest, yields to owners")
    expect(cluster.locator(f"a[data-job='{guest}']").first).to_have_attribute(
        "aria-label", "guest, guest, root: worker-0 on node2, device 0–1"
    )
    assert "guest" not in (cluster.locator(f"a[data-job='{mine}']").first.get_attribute("aria-label") or "")
    portal.client.cordon("local/node4", why="new cables")
    try:
        expect(cluster).to_contain_text("⊘ closed to new tasks")
        expect(cluster.get_by_title("new cables")).to_have_count(1)
    finally:
        portal.client.uncordon("local/node4")
    stubborn = f"trap '' TERM USR1; echo up; while [ ! -e {tmp_path}/saved ]; do sleep 0.1; done"
    slow = portal.submit("slow", stubborn, devices=1, more='"checkpoint": {"signal": "SIGUSR1", "grace": "60s"}')
    portal.begun(slow)
    portal.client.suspend(slow)
    expect(cluster.locator(f"a[data-job='{slow}']")).to_have_attribute(
        "aria-label", "slow, guest, l…, guest, leaving, root: worker-0 on node2, device 3"
    )
    (tmp_path / "saved").touch()
    expect(cluster.locator(f"a[data-job='{slow}']")).to_have_count(0)


def test_receipts_are_listed_with_their_jobs(page: Page, portal: Portal) -> None:
    page.goto("/receipts")
    job = runs(portal, "asleep", "production", devices=2)
    portal.client.suspend(job)
    row = page.locator(f"tr[data-receipt='{job}.1']")
    expect(row).to_contain_text("asleep")
    expect(row).to_contain_text("suspended")
    page.get_by_label("Queue", exact=True).select_option("research")
    expect(row).to_have_count(0)
    page.goto("/receipts?queue=production")
    expect(row.get_by_role("link", name="asleep")).to_have_attribute("href", f"/jobs/{job}")


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1440, "dark"), (1440, "light")])
def test_pages_of_owners_fit_and_are_legible(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    busy(portal)
    portal.client.suspend(runs(portal, "asleep-under-a-rather-long-name", "production", devices=1))
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        for address, text in (
            ("/", "bound to research"),
            ("/queues?queue=research", "Owned"),
            ("/line", "may hold 8"),
            ("/receipts", "suspended"),
        ):
            page.goto(address)
            expect(page.locator("body")).to_contain_text(text)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} is wider than the window"
            assert page.evaluate(PALE) == [], f"{address} has text that is hard to read"
            assert page.evaluate(NAMELESS) == [], f"{address} has controls without a name"
