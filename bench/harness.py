"""Start a server for a benchmark through `corral up` on a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

CORRAL = Path(sys.executable).with_name("corral")
LINK = re.compile(r"(https?://\S+)/sign-in#link=(\S+)")
READY_SECONDS = 30.0
STOP_SECONDS = 30.0
_UNBOUNDED = {"CORRAL_SUBMITS_PER_HOUR": "0", "CORRAL_TASKS_PER_USER": "0"}
"""Limits off: one account of a benchmark does the work of many."""


@dataclass
class Server:
    """A benchmark's own server: its address, the administrator's token, its process and folder."""

    url: str
    token: str
    process: subprocess.Popen[str]
    data: Path
    seconds_to_ready: float
    environment: dict[str, str]

    def client(self, timeout: float = 60.0) -> httpx2.Client:
        """A signed-in HTTP client; the caller closes it."""
        return httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=timeout, trust_env=False
        )

    def corral(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line against this server."""
        return subprocess.run(
            [str(CORRAL), *arguments], env=self.environment, capture_output=True, text=True, check=False
        )

    @property
    def supervisor(self) -> int:
        """The pid at the head of the server's process tree."""
        pid = json.loads((self.data / "run" / "supervisor.json").read_text())["pid"]
        return int(pid)


@contextlib.contextmanager
def running_server(
    *options: str,
    settings: Mapping[str, str] | None = None,
    prepare: Callable[[Path], object] | None = None,
    patience: float = READY_SECONDS,
) -> Iterator[Server]:
    """Start a server on a free port, signed in; stop it and its jobs at the end.

    Its data folder is its own: empty, or as `prepare` left it.

    Raises RuntimeError with the server's output when it does not become ready.
    """
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        home = Path(folder)
        data = home / "data"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in an installed Corral, which has its bytecode
        environment |= {
            "XDG_CONFIG_HOME": str(home / "config"),
            "PYTHONUNBUFFERED": "1",
            **_UNBOUNDED,
            **(settings or {}),
        }
        command = [str(CORRAL), "up", "--data", str(data), "--port", "0", *options]
        if prepare is not None:
            prepare(data)
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            url, link = _wait_for_link(process, patience)
            _wait_until_ready(url, process)
            seconds = time.perf_counter() - begun
            token = _sign_in(url, link)
            environment |= {"CORRAL_URL": url, "CORRAL_TOKEN": token}
            yield Server(url, token, process, data, seconds, environment)
        finally:
            _stop(process, data, environment)


def _wait_for_link(process: subprocess.Popen[str], patience: float) -> tuple[str, str]:
    """Read the output up to the sign-in link; afterwards a thread drains the pipe."""
    assert process.stdout
    said: list[str] = []
    guard = threading.Timer(patience, process.kill)
    guard.start()
    try:
        for line in process.stdout:
            said.append(line)
            if found := LINK.search(line):
                threading.Thread(target=process.stdout.read, daemon=True).start()
                return found[1], found[2]
    finally:
        guard.cancel()
    raise RuntimeError(f"`corral up` ended or said no sign-in link within {patience:.0f} s:\n{''.join(said)}")


def _wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    with httpx2.Client(trust_env=False) as client:
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx2.TransportError):
                if client.get(f"{url}/readyz").status_code == 200:
                    return
            if process.poll() is not None:
                raise RuntimeError(f"`corral up` ended with exit code {process.returncode}")
            time.sleep(0.01)
    raise RuntimeError(f"the server at {url} was not ready within {READY_SECONDS:.0f} s")


def _sign_in(url: str, link: str) -> str:
    with httpx2.Client(trust_env=False) as client:
        answer = client.post(f"{url}/api/v3/login", json={"link": link})
        answer.raise_for_status()
        return str(answer.json()["token"])


def _stop(process: subprocess.Popen[str], data: Path, environment: Mapping[str, str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [str(CORRAL), "down", "--data", str(data), "--stop-jobs"],
                env=dict(environment),
                capture_output=True,
                timeout=STOP_SECONDS,
                check=False,
            )
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
