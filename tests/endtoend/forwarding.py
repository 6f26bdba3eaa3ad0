"""Check a port forward to a task, and a browser's way to its services, in the same way for every engine."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.endtoend.platform import CORRAL, Platform


@contextlib.contextmanager
def forwarded(server: Platform, *words: str) -> Iterator[str]:
    """The address that `corral forward WORDS` prints, while it runs."""
    command = [CORRAL, "forward", *words]
    with subprocess.Popen(
        command, env=server.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        try:
            assert address, process.stderr.read()
            yield address
        finally:
            process.terminate()


def read(address: str) -> bytes:
    """The body of a GET."""
    with urllib.request.urlopen(address, timeout=120) as answer:
        return bytes(answer.read())


def visit(server: str, address: str) -> httpx2.Client:
    """A browser at the service that a one-time address opens; names below `localhost` need no resolver here."""
    host = urlsplit(address).netloc
    with httpx2.Client(base_url=server, headers={"Host": host}, timeout=240, trust_env=False) as stranger:
        opened = stranger.get(address.partition(host)[2])
    assert opened.status_code == 303, opened.text
    cookie = opened.headers["set-cookie"].partition(";")[0]
    base = f"{server}{opened.headers['location']}"
    return httpx2.Client(base_url=base, headers={"Host": host, "Cookie": cookie}, timeout=240, trust_env=False)


def open_socket(browser: httpx2.Client, path: str) -> ClientConnection:
    """A WebSocket that a page of a visited service opens, at a path below the service's."""
    host = browser.headers["Host"]
    there = socket.create_connection((browser.base_url.host, browser.base_url.port or 80))
    return connect(
        f"ws://{host}{browser.base_url.path}{path}",
        sock=there,
        origin=Origin(f"http://{host}"),
        additional_headers={"Cookie": browser.headers["Cookie"]},
        proxy=None,
        ping_interval=None,  # a service of a test may take a ping for a message
    )
