"""Open the services of a job by the buttons of its page, and look at what they show, in the same way for every engine."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.conftest import IN_CI
from tests.portal import browsers
from tests.portal.harness import Served, open_context
from tests.waiting import pause

LOADED: Final = 240_000
"""Milliseconds for a large page of a service, such as an editor's, whose programs of many megabytes come through Corral."""
_ECHOED: Final = """(text) => new Promise((done) => {
  const made = new WebSocket(location.href.replace('http', 'ws') + 'socket');
  made.onopen = () => made.send(text);
  made.onmessage = (event) => done(event.data);
  made.onerror = () => done('error');
})"""


@contextlib.contextmanager
def signed_in(server: Served) -> Iterator[BrowserContext]:
    """A signed-in window of a browser of its own, which ends with the block.

    It is not watched, because it goes to other origins. Without a browser or the built portal the test is skipped, except
    in CI.
    """
    if reason := browsers.missing() or browsers.unbuilt():
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    with browsers.launched() as browser:
        yield open_context(browser, server)


def opened(page: Page, job: str, port: str) -> Page:
    """The tab in which the page of a job opens a service by its button."""
    page.goto(f"/jobs/{job}")
    with page.context.expect_page() as tab:
        page.get_by_role("link", name=f"Open {port}").press("Enter")
    return tab.value


def place(server: Served, job: str, task: str, port: str) -> str:
    """The address of a service on a server that is reached by loopback, without the scheme."""
    return f"{job}.localhost:{server.url.rpartition(':')[2]}/proxy/{job}/{task}/{port}/"


def shows_a_page_whose_socket_echoes(tab: Page, address: str) -> None:
    """Check the tab of `hostile_page`."""
    expect(tab.get_by_role("heading", name="A page of the job")).to_be_visible()
    assert tab.url == f"http://{address}"
    assert tab.evaluate(_ECHOED, "there and back") == "there and back"


def shows_a_folder_to_edit(tab: Page, address: str, file: str) -> None:
    """Check the tab of VS Code: it names the file of the task, which it reads over a WebSocket."""
    expect(tab.get_by_role("treeitem", name=file)).to_be_visible(timeout=LOADED)
    assert tab.url.startswith(f"http://{address}?folder=/"), tab.url


def runs(page: Page, count: int) -> list[str]:
    """The runs that TensorBoard has read, once it has read so many."""
    expect(page).to_have_title("TensorBoard", timeout=LOADED)
    base = re.split(r"[?#]", page.url)[0].rstrip("/")  # TensorBoard writes its settings behind its address
    begun = time.monotonic()
    while len(found := page.evaluate("async (url) => (await fetch(url)).json()", f"{base}/data/runs")) < count:
        time.sleep(pause(begun))
    return list(found)
