"""Why: objects that stand for jobs are watched and written here, by the same reflector and transport as pods.

A cluster that lacks a kind's definition answers 404 to its list: that kind is then not followed, and is looked for again
with a growing wait. All that Corral writes is a server-side apply of the fields that are its own, or a merge; the UID in
it makes sure that another object of the same name is never touched. Only who leads may write: no call begins, or is
waited for, once the lease is over; and should it arrive after another server has led, then the version of the object
that it was made for is no longer the object's, so it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.mirror import Change
from corral.engines.kubernetes.objects import Meta, Object
from corral.engines.kubernetes.reflector import Reflector
from corral.engines.kubernetes.resources import Call, Resource
from corral.engines.kubernetes.source import Pace
from corral.engines.kubernetes.transport import APPLY_PATCH, MERGE_PATCH, Transport
from corral.engines.kubernetes.undeclared import Undeclared
from corral.engines.kubernetes.watching import metadata_of
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.model.objects import DocumentChange, ObjectAddress, ObjectRef

CALL_SECONDS: Final = 10.0
_MANAGER: Final = "corral"
_DEFINITIONS: Final = Resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
_PACE: Final = Pace(backoff_high=10.0)


class DocumentMeta(Meta, frozen=True):
    """`metadata` of an object that stands for a job."""

    generation: int = 0
    annotations: dict[str, str] = {}


class Document(Object, frozen=True):
    """Any object with a spec; `spec` and `status` as they are."""

    api_version: str = ""
    kind: str = ""
    metadata: DocumentMeta = DocumentMeta()
    job_type: str | None = None
    """Alnair's objects have it beside their spec."""
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
        run_elsewhere: Callable[[Collection[str]], None] = lambda uids: None,
    ) -> None:
        """`transport` is opened and closed by the engine; randomness (of waits) is drawn from `seed`.

        `lease_left` tells for how many seconds this server may still act, `run_elsewhere` hears of external jobs.
        """
        self.run_elsewhere = run_elsewhere
        self._transport, self._lease_left = transport, lease_left
        self._resources = {kind.title: Resource(kind.plural, kind.group, kind.version) for kind in kinds}
        self._reflectors = {
            title: Reflector(transport, resource, Document, pace=_PACE, seed=f"{seed}/{title}")
            for title, resource in self._resources.items()
        }
        self._undeclared = Undeclared(seconds=60.0)
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
        """The UIDs of every object of a kind; None while no whole list was taken in."""
        reflector = self._reflectors[kind]
        return reflector.there if reflector.synced.is_set() else None

    async def whole(self, kind: str) -> Collection[str]:
        """Wait until a whole list of a kind was taken in; its UIDs."""
        await self._reflectors[kind].synced.wait()
        return self._reflectors[kind].there

    def trouble(self, kind: str) -> CorralError | None:
        """Why a kind is not followed just now."""
        return self._reflectors[kind].trouble

    async def definition(self, kind: str) -> Mapping[str, str] | None:
        """The annotations of a kind's definition; None when the cluster has none."""
        try:
            body = await self._transport.ask(Call("get", _DEFINITIONS, name=kind), deadline=CALL_SECONDS)
        except NotFound:
            return None
        try:
            return _DEFINITION.decode(body).metadata.annotations
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"The cluster answered with something that is no definition of {kind} ({error})."
            raise Unavailable("kubernetes-garbage", message) from None

    async def apply(
        self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str, part: str = "", subresource: str = ""
    ) -> str:
        """Make exactly these fields Corral's own, but for what the definition does not know; the object's version then."""
        params = {"fieldManager": f"{_MANAGER}-{part}" if part else _MANAGER, "force": "true"}
        while True:
            known = self._undeclared.without(ref.kind, fields)
            try:
                return await self._patch(ref, known, version, APPLY_PATCH, params, subresource)
            except InvalidInput as error:
                if error.code != "kubernetes-undeclared" or not self._undeclared.learn(ref.kind, error.message):
                    raise

    async def merge(self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str) -> str:
        """Merge fields into an object; its version then."""
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
    """The object as its author's tools show it; without what is nested more deeply than Python can follow."""
    try:
        plain: dict[str, Any] = msgspec.to_builtins(document)
    except RecursionError:
        plain = msgspec.to_builtins(msgspec.structs.replace(document, spec={}, status={}))
    return plain
