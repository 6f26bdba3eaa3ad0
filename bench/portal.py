"""The portal in Chromium without a GPU, on a real server: its first page, page changes, scrolling and live updates.

Frames are late as well when other programs use the cores; the processor time of the page's own main thread is not, so both
are told. 10,000 tasks and jobs are made up in the browser's answers from real ones; the 100,000 lines of log and
the 500 running jobs are real.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, CDPSession, Page, Route, sync_playwright

from bench.stats import median, percentile
from tests.portal.harness import Portal, open_context, serving
from tests.waiting import pause

MANY: Final = 10_000
LINES: Final = 100_000
RUNNING: Final = 500
_STARTS: Final = 5
_CHANGES: Final = 5
_FRAMES: Final = 300
_BY: Final = 300
"""Pixels of each frame: eight rows, as a strong turn of the wheel does."""
_PASSES: Final = 3
_LIVE_SECONDS: Final = 20.0
_EACH_SECOND: Final = 8
"""Changes of running jobs in a second of the live part: each job is changed about once a minute."""
_PATIENCE: Final = 600.0
_SCROLL: Final = """([frames, by, selector]) => new Promise(done => {
  const box = selector ? document.querySelector(selector) : document.scrollingElement;
  const took = [];
  let last = 0;
  const step = (now) => {
    if (last) took.push(now - last);
    last = now;
    box.scrollTop += by;
    if (took.length < frames) requestAnimationFrame(step); else done(took);
  };
  box.scrollTop = 0;
  requestAnimationFrame(() => requestAnimationFrame(step));
})"""
_PAGES: Final = (("Queues", "Queues"), ("Nodes", "Nodes"), ("Usage", "Usage"))
"""Links of the bar, and the headings of their pages."""


def measure() -> dict[str, float]:
    """Seconds of the first page, its kB, milliseconds of page changes and frames, percent of a core for live updates."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise RuntimeError("no Chromium is here: apt-get install -y chromium-headless-shell")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        Path(name).chmod(0o711)  # each user's tasks run under a system user of their own
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        with serving(Path(name)) as portal:
            portal.submit("talker", f"seq -f 'line %.0f of what a long job prints' {LINES}; sleep 3600")
            figures = {**_first_page(browser, portal), **_page_changes(browser, portal)}
            figures |= _jobs(browser, portal) | _tasks(browser, portal) | _log(browser, portal)
            return figures | _live(browser, portal)


def _first_page(browser: Browser, portal: Portal) -> dict[str, float]:
    """From an empty cache to the list of jobs, and what was sent for it, compressed as it was."""
    seconds, sizes = [], []
    for _ in range(_STARTS):
        with open_context(browser, portal) as context:
            page = context.new_page()
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            sent: list[float] = []
            session.on("Network.loadingFinished", lambda event, to=sent: to.append(event["encodedDataLength"]))
            begun = time.perf_counter()
            page.goto("/", wait_until="commit")
            page.locator("tr[data-job]").first.wait_for()
            seconds.append(time.perf_counter() - begun)
            sizes.append(sum(sent) / 1000)
    return {"first-page": median(seconds), "first-size": median(sizes)}


def _page_changes(browser: Browser, portal: Portal) -> dict[str, float]:
    """From the click on a link of the bar to the heading of its page; each page was seen once before."""
    took = []
    with open_context(browser, portal) as context:
        page = context.new_page()
        page.goto("/")
        for each in range(_CHANGES + 1):
            for link, heading in _PAGES:
                target = page.get_by_role("link", name=link, exact=True).first
                target.wait_for()
                begun = time.perf_counter()
                target.click()
                page.get_by_role("heading", level=1, name=heading).wait_for()
                if each:
                    took.append((time.perf_counter() - begun) * 1000)
    return {"page-change": median(took)}


def _jobs(browser: Browser, portal: Portal) -> dict[str, float]:
    with open_context(browser, portal) as context:
        page = context.new_page()
        page.route(re.compile(r"/api/v3/jobs\?.*arrays=true"), _many_jobs)
        page.goto("/")
        page.locator(f"table[aria-rowcount='{MANY + 1}']").wait_for()
        return _scrolled(page, "jobs")


def _tasks(browser: Browser, portal: Portal) -> dict[str, float]:
    job = portal.client.jobs()["items"][0]["id"]
    with open_context(browser, portal) as context:
        page = context.new_page()
        page.route(re.compile(r"/api/v3/jobs/\w+/tasks\?"), _many_tasks)
        page.goto(f"/jobs/{job}?node=local")
        page.locator(f"table[aria-rowcount='{MANY + 1}']").wait_for()
        return _scrolled(page, "tasks")


def _log(browser: Browser, portal: Portal) -> dict[str, float]:
    job = portal.client.jobs()["items"][0]["id"]
    with open_context(browser, portal) as context:
        page = context.new_page()
        page.goto(f"/jobs/{job}?tab=log")
        page.get_by_test_id("log").get_by_text(f"line {LINES} of").wait_for()
        page.get_by_test_id("log").hover()
        page.mouse.wheel(0, -20_000)  # a reader's own hand ends the following
        page.get_by_role("button", name="Follow").wait_for()
        return _scrolled(page, "log", "[data-testid=log]")


def _live(browser: Browser, portal: Portal) -> dict[str, float]:
    """The share of a core that the list of 500 running jobs takes while eight of them change in each second."""
    jobs = [_submit_small(portal, number) for number in range(RUNNING)]
    begun = time.monotonic()
    while len(portal.client.jobs(state="running", limit=1000)["items"]) < RUNNING:
        if time.monotonic() > begun + _PATIENCE:
            raise TimeoutError(f"{RUNNING} jobs did not run at once within {_PATIENCE:g} s")
        time.sleep(pause(begun))
    with open_context(browser, portal) as context:
        page = context.new_page()
        page.goto("/")
        more = page.get_by_role("button", name="Show older jobs")
        more.click()
        page.locator(f"table[aria-rowcount='{RUNNING + 2}']").wait_for()
        session = _counting(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/api/v3/jobs?" in request.url else None)
        begun, spent, changes = time.monotonic(), _seconds(session), 0
        while (passed := time.monotonic() - begun) < _LIVE_SECONDS:
            if changes < passed * _EACH_SECOND:
                portal.client.tag(jobs[changes % RUNNING], add=[f"seen-{changes // RUNNING}"])
                changes += 1
            page.wait_for_timeout(20)
        share = (_seconds(session) - spent) / (time.monotonic() - begun) * 100
    if not asked:
        raise RuntimeError("the page did not ask for the list again, so nothing was live")
    return {"live": share, "live-changes": float(changes), "live-lists": float(len(asked))}


def _submit_small(portal: Portal, number: int) -> str:
    role = {"command": "sleep 3600", "resources": {"cpu": 0, "memory": 0}}
    return str(portal.client.submit(json.dumps({"name": f"small-{number}", "roles": {"worker": role}}))["id"])


def _scrolled(page: Page, what: str, selector: str = "") -> dict[str, float]:
    """Milliseconds of frames while each scrolls on, and of the processor for each: of three passes the median one."""
    session = _counting(page)
    passes = []
    for _ in range(_PASSES):
        spent = _seconds(session)
        took = page.evaluate(_SCROLL, [_FRAMES, _BY, selector])
        used = (_seconds(session) - spent) / _FRAMES * 1000
        passes.append((percentile(took, 0.99), percentile(took, 0.5), used))
    figures = zip(("p99", "p50", "cpu"), zip(*passes, strict=True), strict=True)
    return {f"{what}-{name}": median(values) for name, values in figures}


def _counting(page: Page) -> CDPSession:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def _seconds(session: CDPSession) -> float:
    """Processor time of the page's main thread so far."""
    told: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in told if each["name"] == "TaskDuration"))


def _many_jobs(route: Route) -> None:
    answer = route.fetch()
    found = answer.json()
    found["items"] = [{**found["items"][0], "id": f"many{n}", "name": f"many-{n}"} for n in range(MANY)]
    found["next"] = None
    route.fulfill(response=answer, json=found)


def _many_tasks(route: Route) -> None:
    asked = parse_qs(urlsplit(route.request.url).query)
    begin, limit = int(asked.get("after", ["0"])[0]), int(asked["limit"][0])
    answer = route.fetch(url=route.request.url.partition("?")[0])
    found = answer.json()
    found["items"] = [{**found["items"][0], "index": n} for n in range(begin, min(MANY, begin + limit))]
    found["next"] = str(begin + limit) if begin + limit < MANY else None
    route.fulfill(response=answer, json=found)
