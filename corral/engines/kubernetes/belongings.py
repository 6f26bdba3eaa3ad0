"""Why: what pods mount (secrets, plans, the runtime) must be there before them and must not stay when nobody needs it.

A job's secrets are one Secret, `corral-JOB`, made when its first pod needs it and deleted when its last attempt is
forgotten; a retry after that makes it again. What opens the registries of its own images is another, since a kubelet reads
that. What one attempt alone may know goes with its pod, which owns it. What a
killed server left is looked for when the next one opens.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.names import attempt_named
from corral.engines.kubernetes.objects import Meta, Pod
from corral.engines.kubernetes.podcalls import PodCalls
from corral.engines.kubernetes.pods import JOB_LABEL, SERVER_LABEL, pod_name, secret_keys
from corral.engines.kubernetes.resources import CONFIG_MAPS, SECRETS, Call
from corral.engines.kubernetes.runtimes import Runtimes
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.transport import MERGE_PATCH, Transport
from corral.kernel.errors import Conflict, CorralError, NotFound
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import TaskLaunch

_log = logging.getLogger(__name__)
_PAGE: Final = "100"
_LOGINS: Final = ".dockerconfigjson"
_LOGINS_TYPE: Final = "kubernetes.io/dockerconfigjson"


class Belongings:
    """The Secrets of one server's jobs and attempts."""

    def __init__(
        self,
        calls: PodCalls,
        settings: KubernetesSettings,
        runtimes: Runtimes,
        attempts: Callable[[], frozenset[AttemptId]],
    ) -> None:
        """`attempts` are those that are not forgotten."""
        self._calls, self._settings, self._runtimes, self._attempts = calls, settings, runtimes, attempts
        self._runtime_is_there = False
        self._jobs: dict[str, set[str]] = {}
        """The Secrets that jobs are known to have, by name."""
        self._unowned: set[AttemptId] = set()
        """Attempts of which a Secret may be there that no pod is known to own."""
        self._one_at_a_time = asyncio.Lock()

    def labels(self, attempt: AttemptId) -> dict[str, str]:
        """What tells whose a thing is."""
        return {SERVER_LABEL: self._settings.server, JOB_LABEL: parse_attempt_id(attempt).job}

    async def put_secrets(self, launch: TaskLaunch) -> None:
        """Have the job's Secret hold what this task needs of it."""
        job = parse_attempt_id(launch.attempt).job
        values = {key: secret.value for key, secret in secret_keys(launch).items()}
        metadata = {"name": secret_name(job), "labels": self.labels(launch.attempt)}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}
        async with self._one_at_a_time:
            self._jobs.setdefault(job, set()).add(secret_name(job))
            try:
                await self._create(SECRETS, secret)
            except Conflict:
                await self._patch(secret_name(job), {"stringData": values})

    async def put_registries(self, launch: TaskLaunch) -> None:
        """Have a kubelet know what opens the registries of the job's own images."""
        job = parse_attempt_id(launch.attempt).job
        values = {_LOGINS: launch.registries}
        metadata = {"name": registries_name(job), "labels": self.labels(launch.attempt)}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": _LOGINS_TYPE,
            "stringData": values,
        }
        async with self._one_at_a_time:
            self._jobs.setdefault(job, set()).add(registries_name(job))
            with contextlib.suppress(Conflict):
                await self._create(SECRETS, secret)

    async def give_runtime(self, launch: TaskLaunch) -> None:
        """Have what the pod mounts: the runtime, once for all, and what only this attempt may know."""
        self._unowned.add(launch.attempt)
        wanted = [(SECRETS, await self._runtimes.secret(launch, self.labels(launch.attempt), launch.env))]
        if not self._runtime_is_there:
            wanted.append((CONFIG_MAPS, self._runtimes.config_map()))
        for resource, thing in wanted:
            with contextlib.suppress(Conflict):
                await self._create(resource, thing)
        self._runtime_is_there = True

    async def own(self, pod: Pod, attempt: AttemptId) -> None:
        """What only the attempt may know goes with its pod."""
        meta = pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        await self._patch(meta.name, {"metadata": {"ownerReferences": [owner]}})
        self._unowned.discard(attempt)

    async def drop(self, attempt: AttemptId) -> None:
        """Delete what only an attempt may know that has no pod to own it, or none that stays."""
        async with self._one_at_a_time:
            self._unowned.discard(attempt)
            await self._delete(pod_name(attempt))

    async def forget(self, attempt: AttemptId) -> None:
        """Nobody will ask for the attempt any more: drop what a start left whose outcome was never known."""
        if attempt in self._unowned:
            await self.drop(attempt)

    async def collect(self, job: str) -> None:
        """Delete the job's Secrets when no attempt of the job is left; should it fail, the next opening tries again."""
        async with self._one_at_a_time:
            if job not in self._jobs or job in self._living():
                return
            for name in sorted(self._jobs.pop(job)):
                await self._delete(name)

    async def sweep(self, transport: Transport) -> None:
        """Find what an earlier server left: to know it, or to delete what no attempt needs any more."""
        call = Call("list", SECRETS, self._settings.namespace)
        params = {"labelSelector": f"{SERVER_LABEL}={self._settings.server}", "limit": _PAGE}
        try:
            while True:
                page = _PAGE_DECODER.decode(await transport.ask(call, params=params))
                for secret in page.items:
                    await self._sort(secret.metadata)
                if not page.metadata.proceed:
                    return
                params["continue"] = page.metadata.proceed
        except CorralError as error:
            _log.warning("what earlier servers left was not looked for: %s", error.message)

    async def _sort(self, meta: Meta) -> None:
        job = meta.labels.get(JOB_LABEL, "")
        if meta.name in (secret_name(job), registries_name(job)):
            self._jobs.setdefault(job, set()).add(meta.name)
            await self.collect(job)
        elif not meta.owner_references:
            async with self._one_at_a_time:
                attempt = attempt_named(meta.name)
                if attempt is not None and attempt not in self._attempts():
                    await self._delete(meta.name)

    def _living(self) -> set[str]:
        return {parse_attempt_id(attempt).job for attempt in self._attempts()}

    async def _create(self, resource: Any, thing: dict[str, Any]) -> None:
        await self._calls.ask(Call("create", resource, self._settings.namespace), thing, repeatable=True)

    async def _patch(self, name: str, body: dict[str, Any]) -> None:
        call = Call("patch", SECRETS, self._settings.namespace, name)
        await self._calls.ask(call, body, repeatable=True, content=MERGE_PATCH)

    async def _delete(self, name: str) -> None:
        try:
            await self._calls.ask(Call("delete", SECRETS, self._settings.namespace, name), repeatable=True)
        except NotFound:
            return
        except CorralError as error:
            _log.warning("the Secret %s could not be deleted: %s", name, error.message)


def secret_name(job: str) -> str:
    """The name of a job's Secret."""
    return f"corral-{job}"


def registries_name(job: str) -> str:
    """The name of the Secret that opens the registries of a job's own images."""
    return f"{secret_name(job)}-registries"


class _PageMeta(msgspec.Struct):
    proceed: str | None = msgspec.field(name="continue", default=None)


class _Secret(msgspec.Struct):
    metadata: Meta


class _Page(msgspec.Struct):
    metadata: _PageMeta
    items: list[_Secret] = []


_PAGE_DECODER: Final = msgspec.json.Decoder(_Page)
