"""A job runs VS Code for browsers, code-server: its files are edited in the tab that the job's page opens."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.conftest import IN_CI
from tests.portal import service_pages
from tests.portal.harness import Portal, open_context
from tests.testbeds.vscode import packages
from tests.waiting import pause

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

FILE = "loss = 1.0\n"


@pytest.fixture
def window(browser: Browser, portal: Portal) -> Iterator[BrowserContext]:
    """A signed-in window that is not watched, because it goes to other origins."""
    opened = open_context(browser, portal)
    yield opened
    opened.close()


@pytest.fixture
def job(portal: Portal) -> Iterator[str]:
    """A job that runs the editor in a folder of its task, which listens."""
    if reason := packages.missing():
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    served = packages.served("$PWD/work", "editor")
    command = f"mkdir work && printf {shlex.quote(FILE)} > work/train.py && exec {served}"
    worker = {"command": command, "ports": ["editor"], "resources": {"cpu": "0.1", "devices": 0}}
    made = str(portal.client.submit(json.dumps({"name": "editor", "roles": {"worker": worker}}))["id"])
    try:
        portal.begun(made, words=b"HTTP server listening")
        yield made
    finally:
        portal.client.stop(made)


def in_task(portal: Portal, job: str, command: str) -> str:
    """What a command prints that runs beside the editor."""
    with portal.client.exec(job, "worker", 0, ["sh", "-c", command]) as stream:
        return b"".join(stream).decode()


def test_a_file_of_the_task_is_edited_in_a_browser(window: BrowserContext, portal: Portal, job: str) -> None:
    sockets: list[str] = []
    asked: list[str] = []
    window.on("page", lambda tab: tab.on("websocket", lambda socket: sockets.append(socket.url)))
    window.on("request", lambda request: asked.append(request.url))
    page = window.new_page()
    tab = service_pages.opened(page, job, "editor")
    host = f"{job}.localhost:{portal.url.rpartition(':')[2]}"
    base = f"{host}/proxy/{job}/worker-0/editor/"
    expect(tab).to_have_url(re.compile(rf"^http://{re.escape(base)}\?folder=/.+/work$"))
    tab.get_by_role("treeitem", name="train.py").dblclick(timeout=service_pages.LOADED)
    lines = tab.locator(".editor-instance .view-lines")
    expect(lines).to_contain_text("loss = 1.0", timeout=service_pages.LOADED)
    lines.click()
    tab.keyboard.press("Control+End")
    tab.keyboard.type("steps = 20")
    expect(lines).to_contain_text("steps = 20")
    tab.keyboard.press("Control+s")
    begun = time.monotonic()
    while in_task(portal, job, "cat work/train.py") != FILE + "steps = 20":
        time.sleep(pause(begun))
    in_task(portal, job, "echo 'rate = 0.5' >> work/train.py")
    begun = time.monotonic()
    while "rate = 0.5" not in lines.inner_text().replace("\xa0", " "):  # it watches files some time after its start
        in_task(portal, job, "touch work/train.py")
        time.sleep(pause(begun))
    assert sockets and all(each.startswith(f"ws://{base}") for each in sockets)
    places = (f"{portal.url}/", f"http://{host}/", "data:", "blob:")
    assert [each for each in asked if not each.startswith(places)] == [], "the editor asks elsewhere"
