"""Run the real front and control on a data folder of their own, with tasks that end by the clock."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bench.harness import CORRAL, STOP_SECONDS, _sign_in, _wait_until_ready

CONNECTIONS = 8


@dataclass
class TimedServer:
    """Its address, the administrator's token, and the process of its control."""

    url: str
    token: str
    control: int

    def client(self) -> httpx2.AsyncClient:
        """A signed-in HTTP client; the caller closes it."""
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60.0, trust_env=False, limits=limits)


@contextlib.contextmanager
def timed_server(documents: str) -> Iterator[TimedServer]:
    """Start front and control with these configuration documents; end both, by pid, afterwards."""
    with tempfile.TemporaryDirectory(prefix="corral-timed-") as folder, contextlib.ExitStack() as stack:
        home = Path(folder)
        site = home / "site.yaml"
        site.write_text(documents)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in an installed Corral, which has its bytecode
        environment |= {
            "CORRAL_DATA_FOLDER": str(home / "data"),
            "CORRAL_CLUSTER": str(site),
            "XDG_CONFIG_HOME": str(home / "config"),
            "CORRAL_LOG_LEVEL": "warning",
        }
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        reading, writing = os.pipe()
        listening = {
            "CORRAL_READY_FD": str(writing),
            "CORRAL_LISTEN_FD": str(listener.fileno()),
            "CORRAL_LISTENING_URL": url,
        }
        control = subprocess.Popen([sys.executable, "-m", "bench.timed_engine"], env=environment, text=True)
        stack.callback(_end, control)
        front = subprocess.Popen(
            [str(CORRAL), "serve", "front"],
            env=environment | listening,
            pass_fds=(writing, listener.fileno()),
            text=True,
        )
        stack.callback(_end, front)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            link = json.loads(pipe.readline())["link"]
        _wait_until_ready(url, front)
        yield TimedServer(url, _sign_in(url, link.split("link=")[1]), control.pid)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
