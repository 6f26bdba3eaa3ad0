"""Create the Secrets and ConfigMaps that pods mount, and delete them when no attempt needs them.

A job's secrets are one Secret, `corral-JOB`. It is made for the job's first pod and deleted when its last attempt is
forgotten; a later retry makes it again. The registry logins of the job's own images are a second Secret, because a
kubelet reads that one. A Secret of one attempt is owned by its pod and deleted with it. The next server that opens
collects what a killed server left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.resources import CONFIG_MAPS, SECRETS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH, Transport
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.pods.labels import attempt_named
from corral.engines.kubernetes.pods.manifest import JOB_LABEL, SERVER_LABEL, pod_name, secret_keys
from corral.engines.kubernetes.pods.runtime import Runtimes
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.pod_structs import Meta, Pod
from corral.kernel.errors import Conflict, CorralError, NotFound
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import TaskLaunch

_log = logging.getLogger(__name__)
_PAGE: Final = "100"
_LOGINS: Final = ".dockerconfigjson"
_LOGINS_TYPE: Final = "kubernetes.io/dockerconfigjson"


class OwnedObjects:
    """The Secrets of one server's jobs and attempts."""

    def __init__(
        self,
        calls: PodCalls,
        settings: KubernetesSettings,
        runtimes: Runtimes,
        attempts: Callable[[], frozenset[AttemptId]],
    ) -> None:
        """`attempts` returns the attempts that are not forgotten."""
        self._calls, self._settings, self._runtimes, self._attempts = calls, settings, runtimes, attempts
        self._runtime_is_there = False
        self._jobs: dict[str, set[str]] = {}
        """The Secrets that each job may have, by job."""
        self._unowned: set[AttemptId] = set()
        """Attempts that may have a Secret without an owning pod."""
        self._one_at_a_time = asyncio.Lock()

    def labels(self, attempt: AttemptId) -> dict[str, str]:
        """Return the labels with the server and job of an attempt's objects."""
        return {SERVER_LABEL: self._settings.server, JOB_LABEL: parse_attempt_id(attempt).job}

    async def put_secrets(self, launch: TaskLaunch) -> None:
        """Create or extend the job's Secret with the secrets of this task."""
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
        """Create the Secret with the registry logins of the job's own images."""
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

    async def give_runtime(self, launch: TaskLaunch, variables: Mapping[str, str]) -> None:
        """Create the objects that the pod mounts: the runtime's ConfigMap, once, and the attempt's own Secret.

        `variables` are those by which the task learns of its job and ports.
        """
        self._unowned.add(launch.attempt)
        known = {**launch.env, **variables}
        wanted = [(SECRETS, await self._runtimes.secret(launch, self.labels(launch.attempt), known))]
        if not self._runtime_is_there:
            wanted.append((CONFIG_MAPS, self._runtimes.config_map()))
        for resource, thing in wanted:
            with contextlib.suppress(Conflict):
                await self._create(resource, thing)
        self._runtime_is_there = True

    async def own(self, pod: Pod, attempt: AttemptId) -> None:
        """Make the pod the owner of the attempt's Secret, so that both are deleted together."""
        meta = pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        await self._patch(meta.name, {"metadata": {"ownerReferences": [owner]}})
        self._unowned.discard(attempt)

    async def drop(self, attempt: AttemptId) -> None:
        """Delete the Secret of an attempt whose pod does not own it or will not stay."""
        async with self._one_at_a_time:
            self._unowned.discard(attempt)
            await self._delete(pod_name(attempt))

    async def forget(self, attempt: AttemptId) -> None:
        """Delete the Secret of an attempt whose start had an unknown outcome, as nobody will ask for it any more."""
        if attempt in self._unowned:
            await self.drop(attempt)

    async def collect(self, job: str) -> None:
        """Delete the job's Secrets when no attempt of the job is left. After a failure the next opening tries again."""
        async with self._one_at_a_time:
            if job not in self._jobs or job in self._living():
                return
            for name in sorted(self._jobs.pop(job)):
                await self._delete(name)

    async def sweep(self, transport: Transport) -> None:
        """Find the Secrets of an earlier server: record those still needed, and delete the others."""
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
    """Return the name of a job's Secret."""
    return f"corral-{job}"


def registries_name(job: str) -> str:
    """Return the name of the Secret with the registry logins of a job's own images."""
    return f"{secret_name(job)}-registries"


class _PageMeta(msgspec.Struct):
    proceed: str | None = msgspec.field(name="continue", default=None)


class _Secret(msgspec.Struct):
    metadata: Meta


class _Page(msgspec.Struct):
    metadata: _PageMeta
    items: list[_Secret] = []


_PAGE_DECODER: Final = msgspec.json.Decoder(_Page)
