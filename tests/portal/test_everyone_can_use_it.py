"""The portal works on a phone, in light and dark themes, with a screen reader and with the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import ROOT
from tests.portal.axe import findings
from tests.portal.harness import TICKING, Portal, Theme, Watch, open_context
from tests.portal.madeup import english, in_either, listen
from tests.portal.monitored import alert, end_alerts, tell_alerts
from tests.portal.shared_templates import remove_templates, share_template

WRITTEN = (
    *("worker", "tick", "bad luck", "loss", "step", "web", "model"),  # of the jobs below
    *("research", "devices", "cpu", "memory", "idle", "network", "platform"),  # as documents have them
    "fair, fifo, srtf …",
)
"""Names on these pages that are in no answer."""
NAMELESS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
  .filter((each) => each.checkVisibility() && !each.closest('[aria-hidden=true], .xterm'))
  .filter((each) => !(each.getAttribute('aria-label') || each.innerText || each.textContent || '').trim()
    && ![...(each.labels ?? [])].some((label) => label.innerText.trim()) && !each.title)
  .map((each) => each.outerHTML.slice(0, 200))"""

# WCAG 2.2, 1.4.3: the contrast of every visible text with the background painted behind it.
PALE = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = read(getComputedStyle(each).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return read(getComputedStyle(document.documentElement).backgroundColor);
  };
  const pale = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const unseen = !element.checkVisibility() || element.closest('svg, :disabled, .xterm, title');
    if (unseen || !walker.currentNode.data.trim()) continue;
    const [a, b] = [light(read(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => x - y);
    const contrast = (b + 0.05) / (a + 0.05);
    if (contrast < 4.5) pale.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return pale;
}"""


def _addresses(running: str, waiting: str, broken: str) -> list[tuple[str, str]]:
    """Every kind of page, those of jobs by three that are so, with a text that appears once it is complete."""
    return [
        ("/", "Next to start"),
        ("/home", "Needs you"),
        (f"/jobs/{running}", "worker-3 | tick"),
        (f"/jobs/{running}?tab=log", "worker-3 | tick"),
        (f"/jobs/{waiting}", "Why it waits"),
        (f"/jobs/{broken}", "bad luck"),
        (f"/jobs/{broken}?tab=events", "job.submitted"),
        (f"/jobs/{broken}?tab=document", "As submitted"),
        (f"/jobs/{running}?tab=profiles", "There is no profile of this job"),
        (f"/jobs/{running}?tab=terminal", "worker-0"),
        (f"/jobs/{running}?tab=outputs", "names no place for results"),
        (f"/jobs/{waiting}?tab=outputs&file=loss.csv", "0.75"),
        (f"/jobs/{running}/open/worker-0/web", "Back to the job"),
        ("/compare", "Compare jobs"),
        (f"/compare?job={running}&with={broken}", "Documents"),
        ("/submit", "The file is valid."),
        ("/templates", "about shown"),
        ("/templates/job/shown", "echo shown"),
        ("/notebook", "Start a notebook"),
        ("/nodes?node=local/node1", "described-a100"),
        ("/timeline", "is one course of the forecast"),
        ("/benchmarks", "stream/copy_bw in GB/s, more is better"),
        ("/server", "parts work"),
        ("/alerts", "node1 does not answer."),
        ("/usage", "There are no budgets"),
        ("/efficiency", "device-hours"),
        ("/fairness", "Weights and deserved amounts"),
        ("/idle", "No job leaves its devices idle"),
        ("/queues?queue=default", "has lent nothing"),
        ("/queues?move=weight", "in all"),
        ("/line", "waiting"),
        ("/line?queue=research", "Nothing waits in research"),
        ("/receipts", "Nothing had to yield"),
        ("/estimates", "corral estimates"),
        ("/what-if", "Add nodes"),
        ("/policy-shadow", "A candidate policy decides beside the one in force"),
        ("/configuration?document=Cluster/local", "described-a100"),
        ("/configuration?document=Cluster/local&against=0", "lines"),
        ("/account", "Waiting and running tasks"),
        ("/storages", "attic"),
        ("/storages/attic", "2.9 KiB"),
        ("/storages/attic?file=loss.csv", "0.75"),
        ("/users", "administrator"),
        ("/users/batch", "The first line names the columns"),
        ("/audit", "document:Storage/attic"),
        ("/groups?group=admingroup", "Storages that it grants"),
        ("/sign-in", "Sign in to Corral"),
        ("/nowhere", "no such page"),
    ]


@pytest.fixture
def addresses(portal: Portal, tmp_path: Path) -> Iterator[list[tuple[str, str]]]:
    """The addresses of a server of which every page shows something."""
    (tmp_path / "weights-with-a-rather-long-name-that-goes-on-and-on-and-on.bin").write_bytes(bytes(3000))
    portal.client.apply(f"kind: Storage\nname: attic\ntype: folder\npath: {tmp_path}\n")
    name = "holder-with-a-rather-long-name-that-goes-on-and-on"
    portal.submit(name, f"{TICKING}; sleep 3600", replicas=4, devices=4)
    (tmp_path / "loss.csv").write_text("step,loss\n1,0.75\n")
    portal.submit("waiting", devices=2, more=f'"outputs": [{{"path": "model", "uri": "file://{tmp_path}"}}]')
    tell_alerts(portal, alert("NodeNotReady", "fatal", "node1 does not answer.", minutes=3, node_name="node1"))
    portal.client.wait(portal.submit("broken", "echo bad luck; exit 3"), timeout=240)
    share_template(portal, "shown")
    measured = [
        {"node": f"local/node{at}", "sku": "small", "metrics": {"stream/copy_bw:0": 9 - 4 * at}} for at in (0, 1)
    ]
    run = portal.client.keep_benchmark(measured, suite="shown")["id"]
    running, waiting, broken = (job["id"] for job in reversed(portal.client.jobs()["items"]))
    yield _addresses(running, waiting, broken)
    remove_templates(portal)
    portal.client.remove_benchmark(run)
    portal.client.delete_configuration("storage", "attic")
    end_alerts(portal)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [390, 1440])
def test_every_page_fits_and_is_legible_and_named(
    browser: Browser, portal: Portal, watch: Watch, addresses: list[tuple[str, str]], width: int
) -> None:
    theme: Theme = "dark"
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        for address, text in addresses:
            page.goto(address)
            expect(page.locator("body")).to_contain_text(text)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} is wider than the window"
            assert page.evaluate(PALE) == [], f"{address} has text that is hard to read ({theme})"
            assert page.evaluate(NAMELESS) == [], f"{address} has controls without a name"
            assert findings(page) == [], f"axe finds something on {address} ({theme})"
            assert page.locator("h1").count() == 1 or "jobs" in address or address == "/nowhere", address
            assert page.title() != "Corral", f"{address} has no title of its own"
            theme = other(page, theme)  # every second page is opened in the light theme, and turned to the dark one
            assert page.evaluate(PALE) == [], f"{address} has text that is hard to read ({theme})"
            assert findings(page, "color-contrast") == [], f"axe finds something on {address} ({theme})"


@pytest.mark.timeout(600)
def test_no_page_has_english_in_another_language(
    browser: Browser, portal: Portal, watch: Watch, addresses: list[tuple[str, str]]
) -> None:
    """What the server says is data: names and sentences of its answers, lines of the log, and the lines of a file."""
    left: dict[str, list[str]] = {}
    jobs = portal.client.jobs()["items"]
    names = [*WRITTEN, *(str(job[field]) for job in jobs for field in ("id", "name"))]
    with open_context(browser, portal) as context:
        listen(context)
        context.on("page", watch.attach)
        page = context.new_page()
        for address, text in addresses:
            page.goto(address)
            expect(page.locator("body")).to_contain_text(in_either(text))
            expect(page.locator("html")).to_have_attribute("lang", "en-XA")
            if found := english(page, *names):
                left[address] = found
    assert not left, json.dumps(left, ensure_ascii=False, indent=1)


def other(page: Page, theme: Theme) -> Theme:
    """Give a page the other theme than this, by which colours alone differ; returns it."""
    turned: Theme = "light" if theme == "dark" else "dark"
    page.emulate_media(color_scheme=turned)
    expect(page.locator("html")).to_have_attribute("data-theme", turned)
    return turned


def test_every_route_and_every_part_of_a_job_is_among_the_pages_that_are_looked_at() -> None:
    looked_at = [urlsplit(address) for address, _ in _addresses("a", "b", "c")]
    routes = re.findall(r"^ +path: '(.+)'", (ROOT / "web/src/router.tsx").read_text(), re.MULTILINE)
    assert len(routes) > 20, "the routes are no longer written as this test reads them"
    unseen = [each for each in routes if not any(re.fullmatch(_shape(each), address.path) for address in looked_at)]
    assert unseen == [], "a page without a line in addresses"
    parts = re.search(r"TABS = \[(.+?)\]", (ROOT / "web/src/pages/Job.tsx").read_text())
    assert parts is not None, "the parts of a job are no longer written as this test reads them"
    for part in re.findall(r"'(\w+)'", parts[1])[1:]:
        assert any(f"tab={part}" in address.query for address in looked_at), f"no job is opened at its {part}"


def _shape(route: str) -> str:
    """The expression for paths of a route."""
    return re.sub(r"\$\w+", "[^/]+", route)


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (700, "dark"), (1100, "light")])
def test_the_note_of_a_lost_connection_fits_and_is_legible(
    browser: Browser, portal: Portal, width: int, theme: Theme
) -> None:
    with open_context(browser, portal, width=width, theme=theme) as context:
        page = context.new_page()
        page.route("**/api/v3/events", lambda route: route.abort())
        page.goto("/")
        expect(page.get_by_role("status").filter(has_text="no connection, trying again")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(PALE) == []


def test_the_theme_is_chosen_and_kept(page: Page, portal: Portal) -> None:
    page.goto("/")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_label("Account").first.click()
    page.get_by_text("light", exact=True).click()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")


def test_the_log_keeps_its_place_while_it_is_read_and_follows_again(page: Page, portal: Portal) -> None:
    talk = (
        "for ten in 0 1 2 3 4 5 6 7 8 9; do for i in $(seq 400); do echo line $((ten * 400 + i)); done; sleep 0.3; done"
    )
    job = portal.submit("talker", f"{talk}; sleep 300")
    page.goto(f"/jobs/{job}?tab=log")
    log = page.get_by_test_id("log")
    expect(log).to_contain_text("line 4000")
    log.hover()
    page.mouse.wheel(0, -20_000)
    expect(page.get_by_role("button", name="Follow")).to_be_visible()
    page.get_by_label("Find in the log").fill("line 17")
    expect(page.get_by_role("status").filter(has_text="111 found")).to_be_visible()
    page.get_by_role("button", name="Follow").click()
    expect(log).to_contain_text("line 4000")
    rows = log.locator("[data-index]").count()
    assert rows < 200, "a long log is drawn in part only"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text().splitlines()[-1] == "line 4000"
