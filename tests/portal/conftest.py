"""Fixtures of the portal tests: one server and browser for all; each test has a new window and leaves no jobs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from corral.client import Client
from corral.kernel.errors import NotFound
from tests.conftest import IN_CI
from tests.portal import browsers
from tests.portal.harness import Portal, Watch, open_context, serving

_BROWSER = contextlib.ExitStack()
"""Ends the browser that is open."""
_OPEN: list[Browser] = []


@pytest.fixture(scope="module")
def browser() -> Browser:
    """Debian's Chromium, without its windows if that is here; absent, these tests are skipped, except in CI."""
    if missing := browsers.missing():
        pytest.fail(missing) if IN_CI else pytest.skip(missing)
    if not _OPEN:
        _OPEN.append(_BROWSER.enter_context(browsers.launched()))
        _BROWSER.callback(_OPEN.clear)
    return _OPEN[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None]:
    """Close the browser after the last of these tests in a row.

    Until then Playwright's event loop runs in this thread, where no other can. A start of Chromium takes 1.4 s of
    processor time.
    """
    try:
        return (yield)
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
            _BROWSER.close()


@pytest.fixture(scope="package")
def running() -> Iterator[Portal]:
    """A server with two racks of described devices; all users' tasks may reach its folder."""
    if missing := browsers.unbuilt():
        pytest.fail(missing) if IN_CI else pytest.skip(missing)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # each user's tasks run under a system user of their own
        with serving(Path(name)) as portal:
            yield portal


@pytest.fixture
def portal(running: Portal) -> Iterator[Portal]:
    """The server, without jobs before and after."""
    running.clear()
    yield running
    running.clear()


@pytest.fixture
def watch(portal: Portal) -> Iterator[Watch]:
    """Fails the test when a page contacted another origin or logged an error in its console."""
    watched = Watch(portal.url)
    yield watched
    assert watched.strangers == [], "a page asked another origin"
    assert watched.complaints == [], "a page complained"


@pytest.fixture
def context(browser: Browser, portal: Portal, watch: Watch) -> Iterator[BrowserContext]:
    """A signed-in window whose pages are watched."""
    opened = open_context(browser, portal)
    opened.on("page", watch.attach)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page of the signed-in window."""
    return context.new_page()


@pytest.fixture
def stranger(browser: Browser, portal: Portal, watch: Watch) -> Iterator[Page]:
    """A page of a window without a sign-in."""
    opened = browser.new_context(base_url=portal.url, viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(60_000)
    opened.on("page", watch.attach)
    yield opened.new_page()
    opened.close()


@pytest.fixture
def page_of(browser: Browser, portal: Portal, watch: Watch) -> Iterator[Callable[[str], Page]]:
    """Makes an account and opens a page that it is signed in on; the accounts are deleted afterwards."""
    with contextlib.ExitStack() as opened:

        def open_page(name: str) -> Page:
            portal.client.create_user(name)
            opened.callback(_forget, portal, name)
            client = opened.enter_context(Client(portal.url))
            client.login(link=str(portal.client.login_link(name)["link"]))
            context = opened.enter_context(open_context(browser, portal))
            context.add_cookies([{"name": "corral_session", "value": client.token, "url": portal.url}])
            context.on("page", watch.attach)
            return context.new_page()

        yield open_page


def _forget(portal: Portal, name: str) -> None:
    portal.clear()
    with contextlib.suppress(NotFound):
        portal.client.delete_user(name)
