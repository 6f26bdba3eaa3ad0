"""A notebook is started by the short form, opened by one button, suspended, and resumed in another queue as it was."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.frameworks.environments import environment
from tests.portal.harness import Portal, Theme, open_context
from tests.portal.service_pages import runs
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE
from tests.waiting import pause

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]


@pytest.fixture
def window(browser: Browser, portal: Portal) -> Iterator[BrowserContext]:
    """A signed-in window that is not watched, because it goes to other origins."""
    opened = open_context(browser, portal)
    yield opened
    opened.close()


def opened(page: Page) -> Page:
    """The tab in which the job's page opens its notebook."""
    with page.context.expect_page() as tab:
        page.get_by_role("link", name="Open notebook").press("Enter")
    expect(tab.value).to_have_title(re.compile("JupyterLab"))
    expect(tab.value.locator("#jp-main-dock-panel")).to_be_visible()  # it navigates no more
    return tab.value


def read(tab: Page, path: str) -> str:
    """A file of the notebook's folder, as JupyterLab reads it."""
    base = tab.url.partition("/lab")[0]
    return str(tab.evaluate("async (url) => (await fetch(url)).text()", f"{base}/files/{path}"))


def write(tab: Page, path: str, text: str) -> None:
    """Write a file into the notebook's folder, as JupyterLab does."""
    base = tab.url.partition("/lab")[0]
    body = json.dumps({"type": "file", "format": "text", "content": text})
    put = """async ([url, body]) => {
      const xsrf = (document.cookie.match(/_xsrf=([^;]+)/) ?? [])[1] ?? '';
      return (await fetch(url, { method: 'PUT', body, headers: { 'X-XSRFToken': xsrf } })).status;
    }"""
    assert tab.evaluate(put, [f"{base}/api/contents/{path}", body]) == 201


def test_a_notebook_is_started_suspended_and_resumed_in_another_queue(window: BrowserContext, portal: Portal) -> None:
    page = window.new_page()
    page.goto("/submit")
    page.get_by_role("link", name="Start a notebook").press("Enter")
    expect(page.get_by_role("heading", name="Start a notebook")).to_be_visible()
    page.get_by_label("Name").fill("lab")
    page.get_by_label("Jupyter is in").select_option("environment")
    page.get_by_label("Folder of the environment").fill(str(environment("notebook").parent))
    page.get_by_label("Suspend it when").select_option("30m")
    page.get_by_label("Processors").fill("0.1")
    page.get_by_role("button", name="Start", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="lab")).to_be_visible()
    tab = opened(page)
    job = page.url.rpartition("/")[2]
    spec = portal.client.job(job)["document"]["spec"]
    assert (spec["jobType"], spec["idleSeconds"], spec["queue"]) == ("notebook", 1800, "default")
    write(tab, "kept.txt", "as it was")
    tab.close()  # a second tab would be given a workspace of its own, by a navigation
    page.get_by_role("button", name="Suspend", exact=True).press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Suspend", exact=True).press("Enter")
    begun = time.monotonic()
    while portal.client.job(job)["state"] != "waiting":  # its tasks end first
        time.sleep(pause(begun))
    page.get_by_role("button", name="Resume", exact=True).press("Enter")
    page.get_by_role("dialog").get_by_label("Queue").select_option("research")
    expect(page.get_by_role("dialog")).to_contain_text("corral resume lab --queue research")
    page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    again = opened(page)
    assert read(again, "kept.txt") == "as it was"
    assert portal.client.job(job)["queue"] == "research"
    begun = time.monotonic()
    while (receipts := portal.client.receipts(job)["items"])[0]["state"] != "returned":
        time.sleep(pause(begun))
    assert [receipt["rule"] for receipt in receipts] == ["suspended"]


WRITES = """
import os
from tensorboard.summary import Writer
writer = Writer('runs')
for step in range(3):
    writer.add_scalar('loss', 1.0 / (step + 1), step)
writer.close()
print('written', flush=True)
os.execvp('sleep', ['sleep', '1000'])
"""


def writing(portal: Portal, name: str) -> str:
    """Submit a job that writes for TensorBoard, and wait until it has; its id."""
    programs = environment("tensorboard")
    role = {
        "command": [str(programs / "python"), "-c", WRITES],
        "resources": {"cpu": "0.1"},
        "env": {"PATH": f"{programs}:/usr/bin:/bin"},
    }
    job = str(portal.client.submit(json.dumps({"name": name, "roles": {"worker": role}}))["id"])
    portal.begun(job, words=b"written")
    return job


def test_tensorboard_opens_by_a_click_for_a_job_and_by_the_list_for_several(
    window: BrowserContext, portal: Portal
) -> None:
    first, second = writing(portal, "first"), writing(portal, "second")
    page = window.new_page()
    page.goto(f"/jobs/{first}")
    page.get_by_role("button", name="TensorBoard").press("Enter")
    assert runs(page, 1) == ["first-worker-0/runs"]
    again = portal.client.start_tensorboard([first])
    assert again["id"] == page.url.partition("/proxy/")[2].partition("/")[0]
    assert again["document"]["spec"]["roles"][0]["resources"]["devices"]["count"] == 0
    page.goto("/")
    for name in ("first", "second"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    page.get_by_role("group", name="Chosen jobs").get_by_role("button", name="TensorBoard").press("Enter")
    assert sorted(runs(page, 2)) == ["first-worker-0/runs", "second-worker-0/runs"]
    for job in (first, second):
        assert portal.client.job(job)["state"] == "running"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_short_form_can_be_read_and_is_named(browser: Browser, portal: Portal, theme: Theme) -> None:
    window = open_context(browser, portal, width=390, theme=theme)
    page = window.new_page()
    page.goto("/notebook")
    page.get_by_label("Jupyter is in").select_option("image")
    expect(page.get_by_role("textbox", name="Image")).to_be_visible()
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(PALE) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, "the page is wider than the phone"
    page.get_by_role("textbox", name="Image").fill("org/lab:1")
    page.get_by_label("Name").fill("Not a name")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert").first).to_be_visible()
    window.close()
