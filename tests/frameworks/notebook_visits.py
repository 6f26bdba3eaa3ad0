"""Use a notebook as a browser does: through the origin of its job, with a session of that origin and no token."""

from __future__ import annotations

import json
import socket
import uuid
from typing import Any
from urllib.parse import urlsplit

import httpx2
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.endtoend.forwarding import visit


class NotebookVisit:
    """A browser's visit, begun by a one-time address."""

    def __init__(self, server: str, address: str) -> None:
        """`server` is the address at which the server listens; names below `localhost` need no resolver here."""
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self._port = urlsplit(server).port or 0
        self.http = visit(server, address)
        self.base = self.http.base_url.path

    def get(self, path: str) -> httpx2.Response:
        """Read a path below the notebook's."""
        return self.http.get(path)

    def run(self, code: str) -> str:
        """Start a kernel, run a cell in it over its WebSocket, and return what the cell prints."""
        made = self.http.post("api/kernels", json={"name": "python3"}, headers={"Origin": self.origin})
        assert made.status_code == 201, made.text
        address = f"ws{self.origin.removeprefix('http')}{self.base}api/kernels/{made.json()['id']}/channels"
        headers = {"Cookie": self.http.headers["Cookie"]}
        there = socket.create_connection(("127.0.0.1", self._port))
        opened = connect(address, sock=there, origin=Origin(self.origin), additional_headers=headers, proxy=None)
        with opened as channel:
            channel.send(json.dumps(_cell(code)))
            while True:
                message = json.loads(channel.recv(timeout=120))
                if message["msg_type"] == "stream":
                    return str(message["content"]["text"])


def _cell(code: str) -> dict[str, Any]:
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": uuid.uuid4().hex}
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
    parts = {"parent_header": {}, "metadata": {}, "buffers": [], "channel": "shell"}
    return {"header": header | {"version": "5.3", "date": "2026-01-01T00:00:00Z"}, "content": content, **parts}
