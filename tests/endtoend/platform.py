"""A real server, driven only by its command line and the Python client.

Nothing here sleeps for a fixed time: a wait follows the server's own events, logs and answers, and pytest's time-out
ends a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.client import Client
from corral.kernel.errors import Conflict
from tests import warm
from tests.reserved import task_ports
from tests.terminals import Terminal
from tests.waiting import pause

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
CORRAL = str(BIN / "corral")
LIVE = ("waiting", "starting", "running", "stopping")
CLUSTER = ROOT / "examples" / "cluster.yaml"

Job = dict[str, Any]


class Platform:
    """A server with a data folder of its own, and a user signed in to it."""

    def __init__(
        self,
        folder: Path,
        *more: str,
        cluster: Path = CLUSTER,
        env: Mapping[str, str] | None = None,
        ca: Path | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.ca = ca
        self._cluster = cluster
        self._more = more
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        self.env |= {"XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "200"} | task_ports() | dict(env or {})
        self.pid = 0
        self.url = ""

    # -- the server

    def up(self) -> None:
        """Start the server in the background and sign in, as the README describes."""
        facts = json.loads(self.corral("up", *self.options()))
        self.pid, self.url = facts["pid"], facts["url"]
        trust = ["--ca", str(self.ca)] if self.ca else []
        self.corral("login", *trust, facts["link"])
        token = self.corral("token", "create", "tests", "-o", "name").strip()
        self.client = Client(self.url, token, ca=str(self.ca or ""))

    def up_again(self) -> str:
        """Start the server once more at the same address, with sign-ins kept; returns the output of the start."""
        facts = json.loads(self.corral("up", *self.options(self.url.rpartition(":")[2])))
        self.pid = facts["pid"]
        return str(facts.get("note", ""))

    def options(self, port: str = "0") -> list[str]:
        """The options of `corral up`."""
        where = ["--port", port, "--cluster", str(self._cluster), "--data", str(self.data)]
        return ["--detach", *where, "-o", "json", *self._more]

    def down(self) -> None:
        """End the server and every task."""
        self.client.close()
        self.corral("down", "--stop-jobs", "--data", str(self.data))

    # -- the command line

    def corral(self, *words: str, code: int = 0, given: str | None = None, folder: Path | None = None) -> str:
        """Run `corral WORDS`, which must exit with `code`; returns its output."""
        done = self.run(*words, given=given, folder=folder)
        said = f"corral {' '.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == code, said
        return done.stdout

    def refused(
        self, *words: str, code: int = 4, given: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """The error line of `corral WORDS`, which must be refused."""
        done = self.run(*words, given=given, env=env)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stderr

    def run(
        self,
        *words: str,
        given: str | None = None,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `corral WORDS`, whatever its exit code."""
        return warm.corral(words, env=self.env | dict(env or {}), cwd=folder, given=given, seconds=240)

    def terminal(self, *words: str) -> Terminal:
        """`corral WORDS` on a terminal of its own."""
        return Terminal([CORRAL, *words], {**self.env, "TERM": "xterm"})

    def token(self, user: str) -> str:
        """A token of a new account."""
        self.corral("users", "add", user)
        link = self.corral("users", "link", user).strip().partition("#link=")[2]
        with Client(self.url) as client:
            return str(client.login(link=link)["token"])

    # -- jobs

    def submit(self, document: Mapping[str, Any], **options: Any) -> Job:
        """Submit a document; returns the answer."""
        return dict(self.client.submit(json.dumps(document), **options))

    def ended(self, job: Job | str) -> Job:
        """Wait until a job has ended; returns it."""
        return dict(self.client.wait(job if isinstance(job, str) else job["id"], timeout=150))

    def ran(self, document: Mapping[str, Any], **options: Any) -> Job:
        """Submit a document and wait for the job's end."""
        return self.ended(self.submit(document, **options))

    def until(self, job: Job | str, holds: Callable[[Job], bool]) -> Job:
        """Follow a job's events until `holds` is true; returns the job."""
        ref = job if isinstance(job, str) else job["id"]
        found: Job = dict(self.client.job(ref))
        if holds(found):
            return found
        for _ in self.client.events(after=0, job=found["id"]):
            found = dict(self.client.job(found["id"]))
            if holds(found):
                return found
        raise AssertionError(f"the events ended: {found}")

    def all_run(self, job: Job | str) -> Job:
        """Wait until every task of a job runs; the job itself is said to run when its first one does."""
        return self.until(job, lambda now: bool(0 < now["tasks"]["running"] == now["tasks"]["total"]))

    def log(self, job: Job | str, task: str = "") -> str:
        """The output of a job, or of one of its tasks."""
        ref = job if isinstance(job, str) else job["id"]
        role, _, index = task.rpartition("-")
        return b"".join(self.client.log(ref, role, int(index or 0), prefix=False)).decode()

    def printed(self, job: Job | str, task: str, pattern: str, *, attempt: str = "") -> re.Match[str]:
        """Follow a task's log, or that of one attempt (`latest`), until it matches; returns the match."""
        ref = job if isinstance(job, str) else job["id"]
        role, _, index = task.rpartition("-")
        seen = ""
        for piece in self.client.log(ref, role, int(index), follow=True, attempt=attempt):
            seen += piece.decode()
            if found := re.search(pattern, seen):
                return found
        raise AssertionError(f"{task} ended without {pattern!r}; it printed:\n{seen}")

    def printed_running(self, job: Job | str, task: str, pattern: str, *, tasks: int = 1) -> re.Match[str]:
        """Like `printed`, and wait until `tasks` tasks are stored as running: output may be there before that."""
        found = self.printed(job, task, pattern)
        self.until(job, lambda now: bool(now["tasks"]["running"] >= tasks))
        return found

    def queued(self, job: Job | str) -> None:
        """Wait until the scheduler has read a submission: it may do so after it has read the end of another job.

        An explanation is no sign of that: for a job that the scheduler does not know it has the reason of the submission.
        """
        ref, begun = job if isinstance(job, str) else job["id"], time.monotonic()
        while not any(each["kind"] == "job.queued" for each in self.client.job_events(ref)["items"]):
            assert time.monotonic() - begun < 150, self.client.job_events(ref)
            time.sleep(pause(begun))

    def tasks(self, job: Job) -> dict[str, Job]:
        """The tasks of a job by name."""
        return {f"{task['role']}-{task['index']}": task for task in self.client.tasks(job["id"])["items"]}

    def attempts(self, job: Job, task: str) -> list[Job]:
        """Every attempt of one task, the first one first."""
        role, _, index = task.rpartition("-")
        return list(reversed(self.client.attempts(job["id"], role, int(index))["items"]))

    def forgotten(self) -> None:
        """Wait until the folders of all ended tasks are gone; no task may be running."""
        while any(any((self.data / "engine" / name).iterdir()) for name in ("attempts", "trash")):
            time.sleep(0.05)

    def clear(self) -> None:
        """Stop every live job, and wait for its end."""
        live = [job["id"] for job in self.client.jobs(state=LIVE, limit=500)["items"]]
        for job in live:
            with contextlib.suppress(Conflict):  # it ended after it was listed
                self.client.stop(job)
        for job in live:
            self.ended(job)


def one(name: str, command: str | list[str], *, role: Mapping[str, Any] | None = None, **fields: Any) -> Job:
    """A job of one role `main` whose task needs few resources."""
    return {
        "name": name,
        "framework": "shell",
        "roles": {"main": {"resources": {"cpu": "0.1"}, "command": command, **(role or {})}},
        **fields,
    }


def on_devices(name: str, devices: Any, *, replicas: Any = 1, command: str = "sleep 1000", **fields: Any) -> Job:
    """A job whose tasks hold devices until they are stopped."""
    role = {"replicas": replicas, "resources": {"cpu": "0.1", "devices": devices}, "command": command}
    return {"name": name, "framework": "shell", "roles": {"main": role}, **fields}
