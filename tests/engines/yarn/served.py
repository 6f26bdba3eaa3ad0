"""A server with the YARN engine and the local one, driven by its command line, and a look into YARN beside it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError

from tests.endtoend.platform import Job, Platform
from tests.reserved import free_port
from tests.testbeds.hadoop.yarn import Yarn
from tests.waiting import pause

PATIENCE = 240.0
"""Seconds that guard against hanging; on a busy machine a JVM starts in a minute."""
T = TypeVar("T")


class OnYarn(Platform):
    """A server whose tasks run on YARN and on this machine."""

    def __init__(self, folder: Path, yarn: Yarn, *more: str, env: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        where = ["--yarn-resource-managers", ",".join(yarn.urls), "--yarn-name-nodes", ",".join(yarn.hdfs.web_urls)]
        self.cluster = [*where, *more]
        patient = {
            "CORRAL_YARN_START_SECONDS": "600"
        }  # a busy machine takes minutes, and no attempt may be given up for it
        super().__init__(folder, *self.cluster, env=patient | dict(env or {}))
        self.yarn = yarn

    def up(self) -> None:
        """Start the server, and wait until it has seen YARN's nodes: it refuses jobs that name unknown ones."""
        super().up()
        named = {f"yarn/{name}" for name in self.yarn.nodes}
        until(lambda: True if named <= {node["name"] for node in self.client.nodes()["items"]} else None)

    def options(self, port: str = "") -> list[str]:
        words = super().options(str(self.port))
        where = ["--engine", "yarn", "--engine", "local", "--advertise", f"http://127.0.0.1:{self.port}"]
        return [*words, *where]

    def ended(self, job: Job | str) -> Job:
        """Wait until a job has ended; returns it."""
        return dict(self.client.wait(job if isinstance(job, str) else job["id"], timeout=PATIENCE))

    def credentials(self, app: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """What the containers of a service are given, and the permissions of that file."""
        home = f"/user/{app['user']}/.corral"
        servers = self.yarn.hdfs.names(home)  # other tests' servers have theirs beside it
        own = next(name for name in servers if app["name"] in self._files(f"{home}/{name}"))
        file = f"{home}/{own}/{app['name']}/slot.json"
        status = self.yarn.hdfs.ask("GET", file, "GETFILESTATUS")["FileStatus"]
        return dict(self.yarn.hdfs.ask("GET", file, "OPEN")), str(status["permission"])

    def _files(self, folder: str) -> list[str]:
        """The names in a folder; none where another server has removed its own."""
        try:
            return self.yarn.hdfs.names(folder)
        except HTTPError as error:
            if error.code != 404:
                raise
            return []

    def apps(self) -> list[dict[str, Any]]:
        """The applications of this server's jobs that YARN runs; those of other tests' servers may still end there."""
        live = self._live()
        jobs = [job["id"].lower() for job in self.client.jobs(limit=500)["items"]] if live else []
        return [each for each in live if any(job in each["name"] for job in jobs)]

    def apps_of(self, *jobs: Job) -> list[dict[str, Any]]:
        """The applications of these jobs that YARN runs."""
        ids = [job["id"].lower() for job in jobs]
        return [each for each in self._live() if any(job in each["name"] for job in ids)]

    def app_of(self, job: Job) -> dict[str, Any]:
        """The application of a job, which YARN is waited for to have."""
        return until(lambda: next(iter(self.apps_of(job)), None))

    def gone(self, *jobs: Job) -> None:
        """Wait until YARN runs no application of these jobs."""
        until(lambda: True if not self.apps_of(*jobs) else None)

    def clear(self) -> None:
        """Stop every live job, and wait until YARN runs nothing of this server's any more."""
        super().clear()
        until(lambda: True if not self.apps() else None)

    def _live(self) -> list[dict[str, Any]]:
        """The applications of all Corral servers that YARN runs."""
        return [app for app in self.yarn.live_apps() if app["name"].startswith("corral-")]

    def kill(self, *which: str) -> None:
        """Kill processes of the server (`control`, `front`), as a crash would."""
        environment = f"CORRAL_DATA_FOLDER={self.data}".encode()
        for name in which:
            for pid in processes(lambda words, name=name: words[1:4] == [b"-m", b"corral.app", name.encode()]):
                if environment in _read(pid, "environ"):
                    os.kill(pid, signal.SIGKILL)


def processes(is_wanted: Callable[[list[bytes]], bool]) -> list[int]:
    """The processes whose words are wanted."""
    return [
        int(each.name)
        for each in Path("/proc").glob("[0-9]*")
        if is_wanted(_read(int(each.name), "cmdline").split(b"\0"))
    ]


def agents_of(attempt: str) -> list[int]:
    """The agents of the slot that runs an attempt: the parents of its first process."""
    marker = f"CORRAL_ATTEMPT={attempt}".encode()
    found = []
    for pid in processes(lambda words: b"slot.json" in words):
        children = Path(f"/proc/{pid}/task")
        with contextlib.suppress(OSError):  # it has ended since
            for thread in children.glob("*"):
                for child in (thread / "children").read_text().split():
                    if marker in _read(int(child), "environ").split(b"\0"):
                        found.append(pid)
    return found


def until(look: Callable[[], T | None], seconds: float = PATIENCE) -> T:
    """Wait until `look` returns something that is not None."""
    begun = time.monotonic()
    while (found := look()) is None:
        assert time.monotonic() - begun < seconds, "it did not come"
        time.sleep(pause(begun))
    return found


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
