"""Publish a node's devices as ResourceSlices and keep them correct.

Kubelets delete the slices at every start. Slices have deterministic names (node, driver, number), are owned by their
Node object, and are watched: a slice that anybody deletes or changes is written again. When a pool's content changes,
all its slices get a new generation, so that no reader mixes two states.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import structlog

from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.resources import NODES, SLICES, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.structs import Pool
from corral.engines.kubernetes.watch.pod_structs import Bare, Slim
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.kernel.errors import CorralError, NotFound, Unavailable

log = structlog.get_logger()
T = TypeVar("T")
CONTENT: Final = "corral.dev/content"
"""The annotation with the hash of the intended content: the API server drops fields of disabled feature gates."""
_MOST_NAME: Final = 200


class _Meta(Slim, frozen=True):
    name: str
    resource_version: str
    annotations: dict[str, str] | None = None


class _Spec(Slim, frozen=True):
    pool: Pool
    devices: tuple[dict[str, Any], ...] | None = None


class _Slice(Slim, frozen=True):
    metadata: _Meta
    spec: _Spec


class _SliceList(Slim, frozen=True):
    items: tuple[_Slice, ...] | None = None


class Publisher:
    """Keeps the slices of one driver on one node correct while `run` runs."""

    def __init__(self, transport: Transport, driver: str, node: str) -> None:
        self._transport, self._driver, self._node = transport, driver, node
        self._contents: Sequence[Sequence[Mapping[str, Any]]] | None = None
        self._due = asyncio.Event()
        self._watched = Reflector(
            transport, SLICES, Bare, fields=f"spec.driver={driver},spec.nodeName={node}", seed=f"{driver}/{node}"
        )
        self.published = False
        """Whether the slices were correct at the last check."""
        self.writes = 0

    def publish(self, contents: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        """Set the content of the slices: the devices of each, in the API's form."""
        self._contents = contents
        self.look_again()

    def look_again(self) -> None:
        """Check the slices again soon."""
        self._due.set()

    async def run(self) -> None:
        """Correct the slices until cancelled. Failures are logged and retried."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watched.run())
            group.create_task(self._notice())
            group.create_task(self._write())

    async def _notice(self) -> None:
        while True:
            await self._watched.take()
            self.look_again()

    async def _write(self) -> None:
        backoff = Backoff(low=0.2, high=30.0, seed=self._node, ids=(self._driver, "slices"))
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self._put_right()
            except CorralError as error:
                self.published = False
                log.warning("slices not published", reason=error.message)
                self._due.set()
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()

    async def _put_right(self) -> None:
        contents = self._contents
        if contents is None:
            return
        there = {found.metadata.name: found for found in await self._there()}
        wanted = {self._name(number): _hash(devices, len(contents)) for number, devices in enumerate(contents)}
        right = {
            name: _is_right(there.get(name), hashed, contents[n]) for n, (name, hashed) in enumerate(wanted.items())
        }
        strays = there.keys() - wanted.keys()
        if not strays and all(right.values()) and len({found.spec.pool.generation for found in there.values()}) <= 1:
            self.published = True
            return
        self.published = False
        generation = max((found.spec.pool.generation for found in there.values()), default=0) + 1
        owner = await self._owner()
        for number, (name, hashed) in enumerate(wanted.items()):
            slice_ = self._slice(name, hashed, generation, contents[number], len(contents), owner)
            await self._put(slice_, there.get(name))
        for name in sorted(strays):
            await self._delete(name)
        self.published = True
        count = sum(len(devices) for devices in contents)
        log.info("slices published", slices=len(contents), devices=count, generation=generation)

    async def _there(self) -> tuple[_Slice, ...]:
        params = {"fieldSelector": f"spec.driver={self._driver},spec.nodeName={self._node}"}
        call = Call("list", SLICES)
        return decoded(call, await self._transport.ask(call, params=params), _SliceList).items or ()

    async def _owner(self) -> dict[str, Any]:
        call = Call("get", NODES, name=self._node)
        node = decoded(call, await self._transport.ask(call), Bare)
        return {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node.metadata.uid, "controller": True}

    async def _put(self, slice_: dict[str, Any], there: _Slice | None) -> None:
        name = slice_["metadata"]["name"]
        if there is None:
            call = Call("create", SLICES)
        else:
            call = Call("update", SLICES, name=name)
            slice_["metadata"]["resourceVersion"] = there.metadata.resource_version
        self.writes += 1
        await self._transport.ask(call, body=json.dumps(slice_).encode())

    async def _delete(self, name: str) -> None:
        self.writes += 1
        try:
            await self._transport.ask(Call("delete", SLICES, name=name), repeatable=True)
        except NotFound:
            return

    def _slice(
        self, name: str, hashed: str, generation: int, devices: Sequence[Any], count: int, owner: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name, "annotations": {CONTENT: hashed}, "ownerReferences": [owner]},
            "spec": {
                "driver": self._driver,
                "nodeName": self._node,
                "pool": {"name": self._node, "generation": generation, "resourceSliceCount": count},
                "devices": list(devices),
            },
        }

    def _name(self, number: int) -> str:
        name = f"{self._node}-{self._driver}"
        if len(name) > _MOST_NAME:
            name = f"{name[: _MOST_NAME - 17].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return f"{name}-{number}"


def decoded(call: Call, body: bytes, kind: type[T]) -> T:
    """Decode the answer to a call. Raises Unavailable for an invalid one."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unavailable(
            "kubernetes-garbage", f"The cluster answered nonsense when asked to {call} ({error})."
        ) from None


def _hash(devices: Sequence[Mapping[str, Any]], count: int) -> str:
    return hashlib.sha256(json.dumps([count, list(devices)], sort_keys=True).encode()).hexdigest()[:32]


def _is_right(found: _Slice | None, hashed: str, devices: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the slice was written for this content and its devices are unchanged."""
    if found is None or (found.metadata.annotations or {}).get(CONTENT) != hashed:
        return False
    return [_kept(device) for device in found.spec.devices or ()] == [_kept(device) for device in devices]


def _kept(device: Mapping[str, Any]) -> list[Any]:
    """Return the fields of a device that every API server keeps."""
    return [device.get("name"), device.get("attributes") or {}, device.get("capacity") or {}]
