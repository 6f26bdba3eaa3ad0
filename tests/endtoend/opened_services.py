"""Open the services of a job as the portal's button does, and use them as a browser, in the same way for every engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from corral.client import Client
from corral.kernel.errors import Forbidden
from tests.endtoend.forwarding import open_socket, visit
from tests.endtoend.platform import Job, Platform
from tests.portal import hostile_page
from tests.waiting import pause

PROGRAM: Final = Path(hostile_page.__file__).read_text()
"""A service at the port `web`, for `python -c`; it prints `serving`."""
PORTS: Final = [{"name": "web"}, {"name": "late"}]
"""The ports of its role: nothing ever listens at `late`."""


def is_used_until_its_job_ends(server: Platform, document: Job) -> None:
    """Check a job's service from the first click to the job's end; its task `main-0` runs `PROGRAM` with `PORTS`."""
    job = server.submit(document)
    server.printed_running(job, "main-0", "serving")
    listed = {each["name"]: each["task"] for each in server.client.services(job["id"])["items"]}
    assert listed == {"web": "main-0", "late": "main-0"}
    address = str(server.client.open_service(job["id"], "main", 0, "web")["url"])
    assert urlsplit(address).hostname == f"{job['id']}.localhost", "an origin of its own"
    _strangers_are_refused(server, job, address)
    with visit(server.url, address) as browser:
        page = browser.get("")
        assert (page.status_code, hostile_page.PAGE) == (200, page.content)
        assert browser.get("large").content == hostile_page.LARGE
        _what_does_not_listen_is_asked_again(browser, server, job)
        with open_socket(browser, "socket") as channel:
            channel.send("there and back")
            assert channel.recv(timeout=60) == "there and back"
            server.client.stop(job["id"])
            with pytest.raises(ConnectionClosed):
                channel.recv(timeout=240)
        assert server.ended(job)["state"] == "stopped"
        over = browser.get("")
    assert (over.status_code, "is not running" in over.text) == (409, True), over.text


def answered(browser: httpx2.Client, path: str) -> httpx2.Response:
    """The first answer of a service that may not listen yet, asked again as a window does."""
    begun = time.monotonic()
    while (answer := browser.get(path, headers=_WINDOW)).status_code == 503:
        assert answer.headers["refresh"] == "2", answer.text
        time.sleep(pause(begun))
    return answer


_WINDOW: Final = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}


def _what_does_not_listen_is_asked_again(browser: httpx2.Client, server: Platform, job: Job) -> None:
    late = browser.get(f"{server.url}/proxy/{job['id']}/main-0/late/", headers=_WINDOW)
    assert (late.status_code, late.headers.get("refresh")) == (503, "2"), late.text
    assert "Nothing answers at port" in late.text


def _strangers_are_refused(server: Platform, job: Job, address: str) -> None:
    """Neither another account nor a browser without a session gets in."""
    with Client(server.url, server.token("stranger")) as stranger:
        with pytest.raises(Forbidden, match="may not open the services"):
            stranger.open_service(job["id"], "main", 0, "web")
    headers: dict[str, Any] = {"Host": urlsplit(address).netloc}
    answer = httpx2.get(f"{server.url}/proxy/{job['id']}/main-0/web/", headers=headers, trust_env=False)
    assert (answer.status_code, "corral open" in answer.text) == (401, True)
