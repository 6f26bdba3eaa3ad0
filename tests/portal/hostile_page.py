"""A service of a job for tests, with the standard library alone: pages, all that it was sent, and a WebSocket."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import signal
import sys
from typing import Any, ClassVar

LARGE = bytes(range(256)) * 16_384
PAGE = b"<!doctype html><meta charset=utf-8><title>Served</title><h1>A page of the job</h1>"


class Served(http.server.BaseHTTPRequestHandler):
    """Answers the requests of browsers, and keeps their headers."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Answer with the page, with what was seen, or with a WebSocket that echoes one message."""
        self.seen.append(self.path + "\n" + str(self.headers))
        if self.headers.get("Upgrade"):
            self._echo()
            return
        body = {"/seen": json.dumps(self.seen).encode(), "/large": LARGE}.get(self.path, PAGE)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "corral_session=stolen; Path=/; Domain=localhost")
        self.send_header("Set-Cookie", "of_job=1; Path=/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Clear-Site-Data", '"cookies"')
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def _echo(self) -> None:
        told = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        key = base64.b64encode(hashlib.sha1(told.encode()).digest()).decode()
        self.wfile.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {key}\r\n\r\n".encode()
        )
        size = self.rfile.read(2)[1] & 127
        mask, masked = self.rfile.read(4), self.rfile.read(size)
        text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
        self.wfile.write(bytes([0x81, size]) + text)
        self.rfile.read(1)
        self.close_connection = True

    def log_message(self, format: str, *words: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    where = "127.0.0.1", int(os.environ["CORRAL_PORT_WEB"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # the first process of a container has no other end
    with http.server.ThreadingHTTPServer(where, Served) as server:
        print("serving", flush=True)
        server.serve_forever()
