"""Use a notebook as a browser does: through the origin of its job, with a session of that origin and no token."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.endtoend import opened_services
from tests.endtoend.forwarding import open_socket, visit
from tests.endtoend.platform import Job, Platform
from tests.waiting import pause


class NotebookVisit:
    """A browser's visit, begun by a one-time address."""

    def __init__(self, server: str, address: str) -> None:
        """`server` is the address at which the server listens; names below `localhost` need no resolver here."""
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self.http = visit(server, address)
        self.base = self.http.base_url.path

    def get(self, path: str) -> httpx2.Response:
        """Read a path below the notebook's."""
        return self.http.get(path)

    def run(self, code: str) -> str:
        """Start a kernel, run a cell in it over its WebSocket, and return what the cell prints."""
        made = self.http.post("api/kernels", json={"name": "python3"}, headers={"Origin": self.origin})
        assert made.status_code == 201, made.text
        with open_socket(self.http, f"api/kernels/{made.json()['id']}/channels") as channel:
            channel.send(json.dumps(_cell(code)))
            while True:
                message = json.loads(channel.recv(timeout=120))
                if message["msg_type"] == "stream":
                    return str(message["content"]["text"])


def is_opened_and_tells_that_somebody_works_in_it(server: Platform, document: Job) -> None:
    """Check the notebook of the task `main-0` of a job, from its start to the end that this asks for."""
    job = server.submit(document)
    server.until(job, lambda now: bool(now["state"] == "running"))
    visited = NotebookVisit(server.url, str(server.client.open_service(job["id"], "main", 0, "notebook")["url"]))
    with visited.http:
        page = opened_services.answered(visited.http, "lab")
        assert (page.status_code, "<title>JupyterLab</title>" in page.text) == (200, True), page.text
        assert visited.run("print(6 * 7)") == "42\n"
    begun = time.monotonic()
    while (work := server.client.job(job["id"])["work"]) is None or work["active"] != 1.0:
        time.sleep(pause(begun))
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"


def _cell(code: str) -> dict[str, Any]:
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": uuid.uuid4().hex}
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
    parts = {"parent_header": {}, "metadata": {}, "buffers": [], "channel": "shell"}
    return {"header": header | {"version": "5.3", "date": "2026-01-01T00:00:00Z"}, "content": content, **parts}
