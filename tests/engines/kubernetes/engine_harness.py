"""Drive the engine through its protocol alone, and check the result in the cluster."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.engine import KubernetesEngine
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.kernel.ids import AttemptId, job_id
from corral.model.launch import EngineEvent, Exited, Started, TaskLaunch
from corral.storage.log_archive import LogArchive
from corral.storage.log_archiver import LogArchiver
from corral.storage.log_files import LogStore
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused

_COUNT = itertools.count()
E = TypeVar("E", Started, Exited)
MERGE = "application/merge-patch+json"


def new_attempt(task: int = 0) -> AttemptId:
    """An attempt of a new job."""
    job = job_id(int(time.time() * 1000), (os.getpid() << 8) + next(_COUNT))
    return AttemptId(f"{job}.0.worker.{task}.0")


def launch(node: str, *command: str, **fields: Any) -> TaskLaunch:
    fields = {"attempt": new_attempt(), "user": "ada", "env": {}, "image": images.BUSYBOX, **fields}
    return TaskLaunch(node=f"kubernetes/{node}", command=command or ("sleep", "600"), **fields)


class Harness:
    """One engine on one namespace; its events are collected as they arrive."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        folder: Path,
        *,
        kubeconfig: Path | None = None,
        archive: LogArchive | None = None,
        **settings: Any,
    ) -> None:
        self.plane, self.namespace = plane, namespace
        self.logs = LogStore(folder / "logs")
        self.archiver = LogArchiver(self.logs, archive) if archive is not None else None
        self.settings = KubernetesSettings(**{"server": f"server-of-{namespace}", "namespace": namespace, **settings})
        transport = Transport(kubeconfig_access(str(kubeconfig or plane.kubeconfig)))
        self.engine = KubernetesEngine(transport, self.settings, logs=self.logs, archiver=self.archiver)
        self.seen: list[EngineEvent] = []
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Harness:
        await self.engine.open()
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self.engine.close()

    async def run(self, task: TaskLaunch) -> Exited:
        await self.engine.start(task)
        return await self.exited(task.attempt)

    async def exited(self, which: AttemptId) -> Exited:
        return await self._event(Exited, which)

    async def started(self, which: AttemptId) -> Started:
        return await self._event(Started, which)

    async def told(self, kind: type[EngineEvent], beyond: int = 0) -> EngineEvent:
        """The next event of a kind after the first `beyond` events."""

        def match() -> EngineEvent | None:
            return next((event for event in self.seen[beyond:] if isinstance(event, kind)), None)

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(match), 150)
        found = match()
        assert found is not None
        return found

    def count(self, kind: type, which: AttemptId) -> int:
        return sum(isinstance(event, kind) and event.attempt == which for event in self.seen)

    def log(self, which: AttemptId) -> str:
        return Path(self.logs.path(which, "all")).read_text()

    async def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        return await asyncio.to_thread(self.plane.request, method, path, body, content=content)

    def path(self, which: AttemptId | str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{pod_name(AttemptId(which))}" if which else "")

    async def pod(self, which: AttemptId) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self.ask("GET", self.path(which))
        except Refused as refused:
            assert refused.status == 404
            return None
        return found

    async def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("GET", self.path()))["items"]
        return found

    async def annotate(self, which: AttemptId, **annotations: str) -> None:
        named = {f"corral.test/{name.replace('_', '-')}": value for name, value in annotations.items()}
        await self.ask("PATCH", self.path(which), {"metadata": {"annotations": named}}, MERGE)

    async def _event(self, kind: type[E], which: AttemptId) -> E:
        def match() -> E | None:
            return next((event for event in self.seen if isinstance(event, kind) and event.attempt == which), None)

        try:
            async with self._changed:
                await asyncio.wait_for(self._changed.wait_for(match), 150)
        except TimeoutError:
            raise AssertionError(f"no {kind.__name__} of {which}:\n{await self._story(which)}") from None
        found = match()
        assert found is not None
        return found

    async def _story(self, which: AttemptId) -> str:
        """The cluster's and the engine's state of an attempt, for the message when its event is missing."""
        pod = await self.pod(which)
        events = (await self.ask("GET", f"/api/v1/namespaces/{self.namespace}/events"))["items"]
        told = [f"{e.get('lastTimestamp')} {e['involvedObject']['name']} {e['reason']} {e['message']}" for e in events]
        status = pod and {name: pod[name] for name in ("metadata", "status")}
        return "\n".join([f"pod: {status}", *told, *map(str, self.seen)])

    async def _read(self) -> None:
        async for event in self.engine.watch():
            async with self._changed:
                self.seen.append(event)
                self._changed.notify_all()


async def until(condition: Callable[[], Any], seconds: float = 150) -> Any:
    """Poll until the condition is true; the limit only guards against a hang."""
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.02)
