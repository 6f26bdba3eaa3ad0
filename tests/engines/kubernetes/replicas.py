"""Several servers on one database, of which any may be killed, and counts from the cluster's side.

A replica is a whole `corral up` with a host name of its own, as on a machine of its own. So no replica can check
whether another's processes are gone. Replicas share the database, the key and the folder of blobs.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from corral import supervisor
from corral.runtime.task_processes import lives
from tests.endtoend.platform import CORRAL, Job
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.reserved import free_port
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kwok import ENDS_AFTER

_MERGE: Final = "application/merge-patch+json"


class Killable(OnKubernetes):
    """A server whose processes can be killed."""

    def processes(self) -> dict[str, int]:
        """The living pids of supervisor, control and front, by name."""
        record = supervisor.running(self.data)
        if record is None:
            return {}
        return {"supervisor": record["pid"], **supervisor.children_of(record["pid"])}

    def vanish(self) -> None:
        """Kill all processes at once, as the loss of the machine would."""
        there = self.processes()
        for name in ("supervisor", "control", "front"):
            if name in there:
                os.kill(there[name], signal.SIGSTOP)
        for pid in there.values():
            os.kill(pid, signal.SIGKILL)
        # A killed process lives until it runs once more, and on a busy machine the next server would find it there.
        until(lambda: not any(map(lives, there.values())) or None, "end of the killed processes")


class Replica(Killable):
    """One of several servers on one database, with a host name of its own."""

    def __init__(
        self, folder: Path, name: str, database: str, plane: ControlPlane, namespace: str, **more: Any
    ) -> None:
        super().__init__(folder, namespace=namespace, **more)
        self.name, self._database, self.plane = name, database, plane
        self.control_address = f"127.0.0.1:{free_port()}"
        self.env |= {"CORRAL_CONTROL_ADDRESS": self.control_address, "CORRAL_CONFLICT_DELAY_MINIMUM": "1"}

    def share(self, other: Replica, *, blobs: bool = True) -> None:
        """Copy another replica's key, which replicas must share, and use its folder of blobs unless those are at a URI."""
        self.data.mkdir(mode=0o700, parents=True)
        shutil.copy2(other.data / "key", self.data / "key")
        if blobs:
            (self.data / "blobs").symlink_to(other.data / "blobs")

    def options(self, port: str = "") -> list[str]:
        return [*super().options(port), "--database-url", self._database]

    def run(
        self,
        *words: str,
        given: str | None = None,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        if words[0] != "up":
            return super().run(*words, given=given, folder=folder, env=env)
        elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, CORRAL]
        return subprocess.run([*elsewhere, *words], env=self.env, capture_output=True, text=True, timeout=120)

    def pause(self) -> Callable[[], None]:
        """Stop the server's processes (SIGSTOP) wherever they are; returns the call that resumes them."""
        there = list(self.processes().values())
        for pid in there:
            os.kill(pid, signal.SIGSTOP)

        def go_on() -> None:
            for pid in there:
                os.kill(pid, signal.SIGCONT)

        return go_on


@contextlib.contextmanager
def both(first: Replica, second: Replica, *, blobs: bool = True) -> Iterator[None]:
    """Two running replicas; the second has the first one's key, and its folder of blobs unless told otherwise."""
    try:
        first.up()
        second.share(first, blobs=blobs)
        second.up()
        yield
    finally:
        for replica in (first, second):
            replica.client.close()
            replica.run("down", "--data", str(replica.data))


def leader(database: str) -> str:
    """The leader's host in the leadership row; "" if there is no leader."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute("SELECT holder FROM leadership").fetchone()
    return str(json.loads(row[0])["host"]) if row and row[0] else ""


class _Watched:
    """Sees every pod of a namespace at each of its changes, from the API server's watch, also while that is restarted."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self._path = plane, f"/api/v1/namespaces/{namespace}/pods"
        self._context = ssl.create_default_context(cafile=str(plane.ca))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        version = ""
        while not self._over.is_set():
            with contextlib.suppress(OSError, Refused, http.client.HTTPException):  # the apiserver is being killed
                version = version or self._list()
            if version:
                version = self._watch(version)

    def _list(self) -> str:
        listed = self._plane.request("GET", self._path)
        for pod in listed["items"]:
            self._see(pod)
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> str:
        """Watch for two seconds, so that the end is noticed; returns the next version, or "" to list anew.

        A pod that was not seen, as the apiserver was killed, is told again.
        """
        path = f"{self._path}?watch=1&timeoutSeconds=2&resourceVersion={version}"
        asked = urllib.request.Request(self._plane.url + path, headers={"Authorization": f"Bearer {self._plane.token}"})
        try:
            with urllib.request.urlopen(asked, context=self._context, timeout=30) as answer:
                for line in answer:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return ""
                    self._see(event["object"])
                    version = event["object"]["metadata"]["resourceVersion"]
        except urllib.error.HTTPError as refused:
            return "" if refused.code == 410 else version
        except (OSError, Refused, http.client.HTTPException, ValueError):  # the apiserver is being killed
            time.sleep(0.1)
        return version

    def _see(self, pod: dict[str, Any]) -> None:
        raise NotImplementedError


class Ender(_Watched):
    """Ends every simulated pod of a namespace soon after its start, as succeeded."""

    def __init__(self, plane: ControlPlane, namespace: str, after: str = "300ms") -> None:
        super().__init__(plane, namespace)
        self._after = after
        self._told: set[str] = set()

    def _see(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if meta["uid"] in self._told:
            return
        body = {"metadata": {"uid": meta["uid"], "annotations": {ENDS_AFTER: self._after}}}
        try:
            self._plane.request("PATCH", f"{self._path}/{meta['name']}", body, content=_MERGE)
        except Refused as refused:
            if refused.status not in (404, 409):
                raise
        self._told.add(meta["uid"])


class Stream:
    """Submits jobs one after another until stopped; every acknowledged job must exist afterwards."""

    def __init__(self, submit: Callable[[str], Job], name: str, most: int = 10_000) -> None:
        self._submit, self._name, self._most = submit, name, most
        self.jobs: list[str] = []
        self.refused: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop submitting."""
        self._over.set()
        self._thread.join()

    @property
    def busy(self) -> bool:
        """Whether there are more jobs to submit."""
        return self._thread.is_alive()

    def _run(self) -> None:
        for number in range(self._most):
            if self._over.is_set():
                return
            try:
                self.jobs.append(self._submit(f"{self._name}-{number}")["id"])
            except Exception as error:
                self.refused.append(f"{type(error).__name__}: {error}")
                time.sleep(0.05)


class Census(_Watched):
    """Every pod that ever existed in a namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(plane, namespace)
        self.uids: dict[str, set[str]] = collections.defaultdict(set)
        """The UIDs seen under each name; more than one means that a task was started twice."""

    def of(self, job: str) -> list[int]:
        """The number of pods under each name of a job: `[1]` is one task, started once."""
        return [len(uids) for name, uids in list(self.uids.items()) if job in name]

    def has_seen(self, jobs: Iterable[str]) -> None:
        """Wait until a pod of each job was seen: the watch may tell of the last ones after their jobs have ended."""
        wanted = list(jobs)
        until(lambda: all(self.of(job) for job in wanted) or None, "a pod of each job in the census")

    def _see(self, pod: dict[str, Any]) -> None:
        self.uids[pod["metadata"]["name"]].add(pod["metadata"]["uid"])
