"""A real server and a real browser for the portal tests; both end with the test."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, ViewportSize

from corral.client import Client
from corral.kernel.errors import NotFound
from tests import warm
from tests.reserved import task_ports
from tests.waiting import pause

NAMED = "corral.test"
"""A name of this machine, in the browser alone, that is none of loopback."""
Theme = Literal["dark", "light"]
ROOT = Path(__file__).resolve().parents[2]
TICKING = "i=0; while [ $i -lt 6000 ]; do i=$((i+1)); echo tick $i; sleep 0.2; done"


class Served(Protocol):
    """A server that somebody is signed in to."""

    url: str
    client: Client


@dataclass
class Portal:
    """A server of described devices, and a client of its administrator."""

    url: str
    link: str
    client: Client
    database: Path
    """The server's SQLite database."""

    def submit(self, name: str, command: str = TICKING, *, replicas: int = 1, devices: int = 0, more: str = "") -> str:
        """Submit a job of one role; returns its id."""
        return str(self.client.submit(job_text(name, command, replicas=replicas, devices=devices, more=more))["id"])

    def begun(self, job: str, *, tasks: int = 1, words: bytes = b"") -> None:
        """Wait until the first task of a job has printed these words, and so many are stored as running.

        A log is there before the state is stored, and words may come in pieces.
        """
        printed = b""
        for piece in self.client.log(job, "worker", 0, follow=True):
            printed += piece
            if words in printed:
                break
        else:
            raise AssertionError(f"the task ended before it printed {words!r}: {printed!r}")
        since = time.monotonic()
        while self.client.job(job)["tasks"]["running"] < tasks:
            assert time.monotonic() < since + 240, "its tasks do not run"
            time.sleep(pause(since))

    def clear(self) -> None:
        """Stop and remove every job; returns when none is left."""
        until = time.monotonic() + 150
        while jobs := self.client.jobs(limit=200)["items"]:
            for job in jobs:
                with contextlib.suppress(NotFound):  # it vanished after it was listed
                    self.client.delete(job["id"], stop=True)
            if time.monotonic() > until:
                raise TimeoutError(f"jobs that were deleted are still there: {jobs}")


def job_text(name: str, command: str = TICKING, *, replicas: int = 1, devices: int = 0, more: str = "") -> str:
    """The file of a job of one role."""
    document = {
        "name": name,
        "roles": {"worker": {"replicas": replicas, "command": command, "resources": {"devices": devices}}},
    }
    return json.dumps(document)[:-1] + (f", {more}" if more else "") + "}"


@contextlib.contextmanager
def serving(folder: Path, cluster: Path = ROOT / "examples" / "cluster.yaml") -> Iterator[Portal]:
    """A running server over `folder` with the machines of a document; jobs and server end with the block."""
    data = folder / "data"
    environment = {**os.environ, **task_ports(), "XDG_CONFIG_HOME": str(folder / "config")}
    start = ["up", "--detach", "--data", str(data), "--port", "0", "--cluster", str(cluster), "-o", "json"]
    done = warm.corral(start, env=environment, seconds=240)
    done.check_returncode()
    told = json.loads(done.stdout)
    try:
        with Client(told["url"]) as client:
            client.login(link=told["link"].partition("#link=")[2])
            yield Portal(told["url"], told["link"], client, data / "corral.db")
    finally:
        warm.corral(["down", "--data", str(data), "--stop-jobs"], env=environment, seconds=240).check_returncode()


_NOTES_OF_THE_BROWSER = (
    "Failed to load resource",  # an expected 4xx answer
    "error occurred when fetching the script",  # an update of the service worker that the end of a test cuts off
)


@dataclass
class Watch:
    """Records forbidden actions of a page."""

    origin: str
    strangers: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        """Start to watch a page."""
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.netloc != urlsplit(self.origin).netloc:
            self.strangers.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(note in message.text for note in _NOTES_OF_THE_BROWSER):
            self.complaints.append(message.text)


def sign_in(context: BrowserContext, portal: Served) -> None:
    """Give the browser the administrator's session, as signing in would."""
    context.add_cookies([{"name": "corral_session", "value": portal.client.token, "url": portal.url}])


def open_context(
    browser: Browser,
    portal: Served,
    *,
    width: int = 1440,
    theme: Theme = "dark",
    service_workers: Literal["allow", "block"] = "allow",
) -> BrowserContext:
    """A signed-in browser window."""
    size: ViewportSize = {"width": width, "height": 900}
    context = browser.new_context(
        base_url=portal.url, viewport=size, color_scheme=theme, service_workers=service_workers
    )
    context.set_default_timeout(60_000)
    context.on("requestfailed", _tell_failure)
    sign_in(context, portal)
    return context


_PAIR = """(keys) => {
  for (const key of keys) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
}"""


def press_pair(page: Page, keys: str) -> None:
    """Press two keys in a row where the focus is; the page takes them for a pair only within 0.9 s."""
    page.evaluate(_PAIR, list(keys))


def _tell_failure(request: Request) -> None:
    """Print why the browser has no answer, for the report of a test that fails; what a page itself gave up is left out."""
    if request.failure != "net::ERR_ABORTED":
        print(f"{request.method} {urlsplit(request.url).path}: {request.failure}")
