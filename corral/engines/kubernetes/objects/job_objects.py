"""Watch and write the cluster objects that stand for jobs.

If a kind's definition is missing, its list answers 404. The kind is then not followed, and is tried again with a
growing wait. Corral writes by server-side apply of its own fields, or by merge. Each write carries the UID, so that
another object of the same name is never touched. Only the leader may write: no call starts, or is waited for, after the
lease is over. A late call is refused once another server has led, because the object has a newer version by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.resources import Call, Resource
from corral.engines.kubernetes.api.transport import APPLY_PATCH, MERGE_PATCH, Transport
from corral.engines.kubernetes.objects.undeclared_fields import UndeclaredFields
from corral.engines.kubernetes.watch.decoder import metadata_of
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Meta, Object
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Pace
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.model.kubernetes_objects import DocumentChange, ObjectAddress, ObjectRef

CALL_SECONDS: Final = 10.0
_MANAGER: Final = "corral"
_DEFINITIONS: Final = Resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
_PACE: Final = Pace(backoff_high=10.0)


class DocumentMeta(Meta, frozen=True):
    """`metadata` of an object that stands for a job."""

    generation: int = 0
    annotations: dict[str, str] = {}


class Document(Object, frozen=True):
    """Any object with a spec; `spec` and `status` stay untyped."""

    api_version: str = ""
    kind: str = ""
    metadata: DocumentMeta = DocumentMeta()
    job_type: str | None = None
    """Alnair's objects have this field beside their spec."""
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class _Definition(msgspec.Struct):
    metadata: DocumentMeta = DocumentMeta()


_DEFINITION: Final = msgspec.json.Decoder(_Definition)


class KubernetesDocuments:
    """The objects of some kinds in all namespaces of one cluster."""

    def __init__(
        self,
        transport: Transport,
        kinds: Iterable[ObjectAddress],
        *,
        seed: int | str = 0,
        lease_left: Callable[[], float] = lambda: CALL_SECONDS,
        set_external_jobs: Callable[[Collection[str]], None] = lambda uids: None,
    ) -> None:
        """The engine opens and closes `transport`. `seed` seeds the random waits.

        `lease_left` returns the seconds for which this server may still act. `set_external_jobs` is given external jobs.
        """
        self.set_external_jobs = set_external_jobs
        self._transport, self._lease_left = transport, lease_left
        self._resources = {kind.title: Resource(kind.plural, kind.group, kind.version) for kind in kinds}
        self._reflectors = {
            title: Reflector(transport, resource, Document, pace=_PACE, seed=f"{seed}/{title}")
            for title, resource in self._resources.items()
        }
        self._undeclared = UndeclaredFields(seconds=60.0)
        self._changed: asyncio.Queue[list[DocumentChange]] = asyncio.Queue(1)

    async def run(self) -> None:
        """Follow every kind until cancelled."""
        async with asyncio.TaskGroup() as group:
            for title, reflector in self._reflectors.items():
                group.create_task(reflector.run())
                group.create_task(self._follow(title, reflector))

    async def changes(self) -> list[DocumentChange]:
        """Wait for changes and take them."""
        return await self._changed.get()

    def listed(self, kind: str) -> Collection[str] | None:
        """Return the UIDs of all objects of a kind, or None before the first complete list."""
        reflector = self._reflectors[kind]
        return reflector.there if reflector.synced.is_set() else None

    async def whole(self, kind: str) -> Collection[str]:
        """Wait for a complete list of a kind and return its UIDs."""
        await self._reflectors[kind].synced.wait()
        return self._reflectors[kind].there

    def trouble(self, kind: str) -> CorralError | None:
        """Return why a kind is not followed at present, or None."""
        return self._reflectors[kind].trouble

    async def definition(self, kind: str) -> Mapping[str, str] | None:
        """Return the annotations of a kind's CustomResourceDefinition, or None when the cluster has none."""
        try:
            body = await self._transport.ask(Call("get", _DEFINITIONS, name=kind), deadline=CALL_SECONDS)
        except NotFound:
            return None
        try:
            return _DEFINITION.decode(body).metadata.annotations
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"The cluster answered with an invalid definition of {kind} ({error})."
            raise Unavailable("kubernetes-garbage", message) from None

    async def apply(
        self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str, part: str = "", subresource: str = ""
    ) -> str:
        """Apply these fields as Corral's own, without those that the definition does not know.

        Return the new version.
        """
        params = {"fieldManager": f"{_MANAGER}-{part}" if part else _MANAGER, "force": "true"}
        while True:
            known = self._undeclared.without(ref.kind, fields)
            try:
                return await self._patch(ref, known, version, APPLY_PATCH, params, subresource)
            except InvalidInput as error:
                if error.code != "kubernetes-undeclared" or not self._undeclared.learn(ref.kind, error.message):
                    raise

    async def merge(self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str) -> str:
        """Merge fields into an object and return its new version."""
        return await self._patch(ref, fields, version, MERGE_PATCH, {"fieldManager": f"{_MANAGER}-scale"}, "")

    async def _patch(
        self,
        ref: ObjectRef,
        fields: Mapping[str, Any],
        version: str,
        content: str,
        params: Mapping[str, str],
        subresource: str,
    ) -> str:
        left = self._lease_left()
        if not left:
            message = f"This server does not know whether it still leads, so it does not write {ref}."
            raise Unavailable("lease-over", message)
        resource = self._resources[ref.kind]
        where = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid, "resourceVersion": version}
        body = {**fields, "metadata": {**fields.get("metadata", {}), **where}}
        found = await self._transport.ask(
            Call("patch", resource, ref.namespace, ref.name, subresource),
            params=params,
            body=msgspec.json.encode(body),
            content=content,
            deadline=min(CALL_SECONDS, left),
            repeatable=True,
        )
        return metadata_of(found).resource_version

    async def _follow(self, title: str, reflector: Reflector[Document]) -> None:
        while True:
            taken = await reflector.take(500)
            await self._changed.put([_change(title, change) for change in taken])


def _change(title: str, change: Change[Document]) -> DocumentChange:
    return DocumentChange(title, _plain(change.object), change.gone)


def _plain(document: Document) -> dict[str, Any]:
    """Return the object as plain data, without spec and status if they exceed Python's recursion limit."""
    try:
        plain: dict[str, Any] = msgspec.to_builtins(document)
    except RecursionError:
        plain = msgspec.to_builtins(msgspec.structs.replace(document, spec={}, status={}))
    return plain
