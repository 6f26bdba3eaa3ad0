"""A page says that the server is down, keeps what was typed and recovers by itself; an upgrade still takes effect."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from corral.client import Client
from tests import warm
from tests.portal.harness import ROOT, Portal, Watch, open_context
from tests.reserved import free_port, task_ports

BUILT = ROOT / "corral" / "portal" / "static"
KEPT = "navigator.serviceWorker.ready.then(() => caches.keys())"
CACHED = """async () => {
  const found = [];
  for (const name of await caches.keys())
    for (const request of await (await caches.open(name)).keys()) found.push(new URL(request.url).pathname);
  return found;
}"""

ACTIVE = """async name => {
  await (await navigator.serviceWorker.getRegistration()).update();
  return new Promise((resolve) => {
    const look = async () => {
      const names = await caches.keys();
      const { installing, waiting } = await navigator.serviceWorker.getRegistration();
      if (names.includes(name) && !installing && !waiting && names.length < 3) resolve(names);
      else setTimeout(look, 50);
    };
    look();
  });
}"""
"""The caches, once the service worker of a build is active; the update is asked for, as browsers look when they like."""


class Server:
    """A server that is stopped and started on the same port."""

    def __init__(self, folder: Path) -> None:
        self.data, self.port = folder / "data", free_port()
        self.environment = {**os.environ, **task_ports(), "XDG_CONFIG_HOME": str(folder / "config")}

    def run(self, *command: str) -> str:
        done = warm.corral([*command, "--data", str(self.data)], env=self.environment, seconds=240)
        done.check_returncode()
        return done.stdout

    def start(self) -> dict[str, Any]:
        cluster = str(ROOT / "examples" / "cluster.yaml")
        told: dict[str, Any] = json.loads(
            self.run("up", "--detach", "--port", str(self.port), "--cluster", cluster, "-o", "json")
        )
        return told

    def stop(self) -> None:
        self.run("down", "--stop-jobs")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not (BUILT / "sw.js").is_file():
        pytest.skip("the portal is not built: make portal")
    made = Server(tmp_path)
    yield made
    made.stop()


def test_a_reload_while_the_server_is_down_says_so_and_comes_back_by_itself(browser: Browser, server: Server) -> None:
    told = server.start()
    with Client(told["url"]) as client:
        client.login(link=told["link"].partition("#link=")[2])
        watch = Watch(told["url"])
        with closing(
            open_context(browser, Portal(told["url"], told["link"], client, server.data / "corral.db"))
        ) as context:
            context.on("page", watch.attach)
            page = context.new_page()
            page.goto("/nodes")
            expect(page.get_by_role("heading", name="Nodes")).to_be_visible()
            assert len(page.evaluate(KEPT)) == 1
            assert not [
                path
                for path in page.evaluate(CACHED)
                if path not in ("/", "/recover.js") and not path.startswith("/assets/")
            ]
            typing = context.new_page()
            typing.goto("/submit")
            typing.get_by_label("Name", exact=True).fill("typed-before")
            server.stop()
            expect(typing.get_by_role("status").filter(has_text="no connection, trying again")).to_be_visible()
            page.reload()
            expect(page.get_by_role("heading", name="The server does not answer; trying again")).to_be_visible()
            page.goto("/queues")
            expect(page.get_by_text("This page comes back by itself.")).to_be_visible()
            server.start()
            expect(page.get_by_role("heading", name="Queues")).to_be_visible()
            expect(typing.get_by_role("status").filter(has_text="no connection, trying again")).to_have_count(0)
            expect(typing.get_by_label("Job file, YAML")).to_contain_text("typed-before")
            typing.get_by_role("button", name="Submit", exact=True).click()
            expect(typing.get_by_role("heading", name="typed-before")).to_be_visible()
    assert watch.strangers == []
    assert all("The server does not answer" in said for said in watch.complaints)


class Files(SimpleHTTPRequestHandler):
    """A built portal without a server behind it."""

    def do_GET(self) -> None:
        if self.path.startswith(("/api/", "/healthz", "/readyz")):
            self.send_error(401)
            return
        if not (Path(self.directory) / self.path.lstrip("/")).is_file():
            self.path = "/index.html"
        super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path, port: int) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Files, directory=str(folder))) as http:
        serving = threading.Thread(target=http.serve_forever, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{port}"
        http.shutdown()
        serving.join()


def upgrade(folder: Path, version: str) -> None:
    """Install another build of the portal, recognizable by its title."""
    page, worker = folder / "index.html", folder / "sw.js"
    page.write_text(page.read_text().replace("</head>", f'<meta name="build" content="{version}"></head>'))
    found = worker.read_text().partition("const VERSION = '")[2].partition("'")[0]
    worker.write_text(worker.read_text().replace(found, version))


def build_of(page: Page) -> list[str]:
    found: list[str] = page.locator("meta[name=build]").evaluate_all("all => all.map(each => each.content)")
    return found


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context()
    yield opened
    opened.close()


def test_an_upgrade_is_seen_at_once_and_its_page_is_the_one_that_is_kept(
    window: BrowserContext, tmp_path: Path
) -> None:
    if not (BUILT / "sw.js").is_file():
        pytest.skip("the portal is not built: make portal")
    folder, port, page = tmp_path / "static", free_port(), window.new_page()
    shutil.copytree(BUILT, folder)
    with served(folder, port) as url:
        page.goto(f"{url}/sign-in")
        assert len(page.evaluate(KEPT)) == 1
        assert build_of(page) == []
    for version in ("second", "third", "fourth"):
        upgrade(folder, version)
        with served(folder, port) as url:
            page.goto(f"{url}/sign-in")
            assert build_of(page)[-1] == version
            assert len(page.evaluate(ACTIVE, f"corral-{version}")) == 2
        page.goto(f"{url}/sign-in")
        assert build_of(page)[-1] == version
