"""A real server on a folder of its own, used through its command line and REST API."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from corral import supervisor
from corral.client import Client
from corral.runtime.task_processes import lives
from tests import warm
from tests.reserved import task_ports
from tests.waiting import pause

ROOT: Final = Path(__file__).resolve().parents[2]
ENDED: Final = frozenset({"succeeded", "failed", "stopped"})
_CORRAL: Final = (sys.executable, "-m", "corral.cli.main")
_HANG: Final = 120.0
"""Seconds after which a wait has failed; not a bound on speed."""
Found = TypeVar("Found")


class Answer(NamedTuple):
    """The server's answer to one call."""

    status: int
    body: Any
    headers: http.client.HTTPMessage

    def refused(self, status: int, code: str) -> str:
        """The message of a refusal, checked: this status and code, one line, no traceback."""
        assert self.status == status, self
        assert self.body["code"] == code, self
        message: str = self.body["message"]
        assert_sentence(message, ends=code != "invalid-document")
        return message


def assert_sentence(message: str, *, ends: bool = True) -> None:
    """Check for one line that ends as a sentence (problems of a file do not) and shows no internals."""
    assert message.strip() and "\n" not in message.strip(), message
    assert not ends or message.rstrip().endswith((".", ")", "!")), message
    assert "Traceback" not in message and 'File "' not in message, message


class House:
    """A data folder and its server; `close` leaves no process and no file behind."""

    fresh = False
    """Whether each command is a new interpreter, and no fork of one that has the modules already."""

    def __init__(self, data: Path | None = None, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="corral-f-"))
        self.data = data or self.home / "data"
        self.options = options
        self.url = ""
        self.token = ""
        self.ca = ""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self.environment = {
            **kept,
            **task_ports(),
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        }

    # -- the command line

    def corral(self, *arguments: str, stdin: str = "", seconds: float = _HANG) -> subprocess.CompletedProcess[str]:
        """Run `corral ARGUMENTS` as a user would."""
        if not self.fresh:
            return warm.corral(arguments, env=self.environment, cwd=self.home, given=stdin, seconds=seconds)
        return subprocess.run(
            [*_CORRAL, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.home,
            timeout=seconds,
            check=False,
        )

    def refuses(self, code: int, *arguments: str, stdin: str = "") -> str:
        """Run `corral ARGUMENTS`, which must exit with `code`; returns its message: one sentence, no traceback."""
        done = self.corral(*arguments, stdin=stdin)
        assert done.returncode == code, done
        said = done.stderr.strip().splitlines()
        assert said, done
        assert_sentence(said[-1], ends=False)
        assert "Traceback" not in done.stderr + done.stdout
        return said[-1]

    def try_up(self, *options: str) -> subprocess.CompletedProcess[str]:
        """`corral up --detach` on a free port, unless the options say otherwise."""
        port = () if "--port" in options else ("--port", "0")
        return self.corral("up", "--detach", "--data", str(self.data), "-o", "json", *port, *self.options, *options)

    def up(self, *options: str) -> None:
        """Start the server; the first time, sign in with its link."""
        done = self.try_up(*options)
        assert done.returncode == 0, done.stderr + self.logs()
        facts = json.loads(done.stdout)
        self.url = facts["url"]
        if not self.token:
            with Client(self.url, ca=self.ca) as client:
                self.token = client.login(link=facts["link"].partition("#link=")[2])["token"]
        self.environment |= {"CORRAL_URL": self.url, "CORRAL_TOKEN": self.token}

    def down(self, *options: str) -> None:
        """Stop the server; jobs go on unless told otherwise."""
        done = self.corral("down", "--data", str(self.data), *options)
        assert done.returncode == 0, done.stderr + self.logs()

    def close(self) -> None:
        """Kill jobs and server, whatever their state."""
        if supervisor.running(self.data) is not None:
            done = self.corral("down", "--data", str(self.data), "--stop-jobs")
            if done.returncode != 0:
                supervisor.stop(self.data)
        shutil.rmtree(self.home, ignore_errors=True)

    # -- the API

    def client(self, token: str = "") -> Client:
        """The SDK, signed in; the caller closes it."""
        return Client(self.url, token or self.token, ca=self.ca)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One REST call on a connection of its own; a body that is not bytes is sent as JSON."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            trust = ssl.create_default_context(cafile=self.ca or None)
            connection = http.client.HTTPSConnection(host, port, timeout=_HANG, context=trust)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_HANG)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "Connection": "close", **(headers or {})}
        bearer = self.token if token is None else token
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return Answer(answer.status, json.loads(text) if is_json and text else text, answer.headers)

    def submit(self, name: str, script: str, **role: Any) -> str:
        """Submit a shell job of one task; returns its id."""
        answer = self.call("POST", "/api/v3/jobs", shell_job(name, script, **role))
        assert answer.status == 201, answer
        return str(answer.body["id"])

    def job(self, ref: str) -> dict[str, Any]:
        """The job's present detail."""
        answer = self.call("GET", f"/api/v3/jobs/{ref}")
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.body
        return found

    def until_state(self, ref: str, *states: str) -> dict[str, Any]:
        """Wait until a job is in one of the states."""
        return until(lambda: found if (found := self.job(ref))["state"] in states else None, f"{ref} {states}")

    def until_ended(self, ref: str) -> dict[str, Any]:
        """Wait until a job has ended."""
        return self.until_state(ref, *ENDED)

    def log(self, ref: str) -> str:
        """The output of a job's only task."""
        answer = self.call("GET", f"/api/v3/jobs/{ref}/tasks/worker/0/logs")
        assert answer.status == 200, answer
        text: bytes = answer.body
        return text.decode()

    def attempts(self, ref: str) -> list[dict[str, Any]]:
        """The attempts of a job's only task."""
        answer = self.call("GET", f"/api/v3/jobs/{ref}/tasks/worker/0/attempts")
        assert answer.status == 200, answer
        found: list[dict[str, Any]] = answer.body["items"]
        return found

    # -- the processes

    def processes(self) -> dict[str, int]:
        """The present pids of supervisor, front and control."""
        record = supervisor.running(self.data)
        if record is None:
            return {}
        return {"supervisor": int(record["pid"])} | supervisor.children_of(int(record["pid"]))

    def kill(self, name: str) -> int:
        """SIGKILL one of the three, and wait until it is gone; returns its pid."""
        pid = self.processes()[name]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not lives(pid) or None, f"the end of {name}")  # a killed process lives until it runs once more
        return pid

    def logs(self) -> str:
        """The end of the server's own logs, for a test that failed."""
        folder = self.data / "logs"
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(folder.glob("*.log")))


def shell_job(name: str, script: str, **role: Any) -> dict[str, Any]:
    """A job document in the short form: one task that runs a script."""
    worker = {"replicas": 1, "resources": {"cpu": "0", "memory": "0"}, "command": ["sh", "-c", script], **role}
    return {"name": name, "framework": "shell", "roles": {"worker": worker}}


def until(look: Callable[[], Found | None], what: str, seconds: float = _HANG) -> Found:
    """Poll `look` until it returns a value; returns that."""
    begun = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() - begun < seconds, f"still waiting after {seconds:.0f} s: {what}"
        time.sleep(pause(begun))
