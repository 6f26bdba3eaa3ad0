"""A made-up DCGM exporter, which tells a page after the vendor's names."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = (Path(__file__).parent / "recorded" / "dcgm-exporter-3.txt").read_bytes()


class Exporter:
    """An exporter on a free port of loopback, whose next answers a test says."""

    def __init__(self) -> None:
        self.status, self.body = 200, PAGE
        self.headers: dict[str, str] = {}
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(outer.status)
                for each in outer.headers.items():
                    self.send_header(*each)
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/metrics"

    def end(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
