"""A model of an API server for property tests of the reflector, small enough to be right."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from corral.engines.kubernetes.api.errors import Silent, Status, refusal
from corral.engines.kubernetes.api.resources import Call
from corral.kernel.errors import CorralError, Unavailable

BOOKMARK_SECONDS = 60.0


@dataclass
class ModelServer:
    """Pods with names, UIDs and versions; lists in pages, watches with bookmarks, and faults on demand."""

    version: int = 1
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The present pods by name."""
    log: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    """Every event: version, type, object."""
    history: dict[int, dict[str, str]] = field(default_factory=lambda: {1: {}})
    """The state at each version: UID to version."""
    compacted: int = 0
    faults: deque[str] = field(default_factory=deque)
    """The faults of the next calls: see `_fault` and `_spoil`."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The parameters of every call, with its verb and time."""
    severed: int = 0
    _born: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, name: str, **extra: Any) -> None:
        """Create the pod, or change it."""
        known = self.pods.get(name)
        if known is None:
            self._born += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self._born}"
        self._record("MODIFIED" if known else "ADDED", name, uid, extra)

    def delete(self, name: str) -> None:
        """Remove the pod, if it exists; its last event has a version of its own."""
        if name in self.pods:
            self._record("DELETED", name, self.pods[name]["metadata"]["uid"], {"status": {"phase": "Failed"}})

    def compact(self) -> None:
        """Compact: forget all versions before the present one."""
        self.compacted = self.version

    def sever(self) -> None:
        """Cut every open watch."""
        self.severed += 1
        self._changed.set()

    def state(self) -> dict[str, str]:
        """The present state: UID to version."""
        return {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in self.pods.values()}

    async def ask(self, call: Call, *, params: Mapping[str, str] | None = None, deadline: float | None = None) -> bytes:
        """One page of a list, consistent with the page before."""
        given = self._note(call, params)
        fault = self.faults.popleft() if self.faults else ""
        self._fault(call, fault)
        at, _, start = given.get("continue", f"{self.version}:0").partition(":")
        if int(at) < self.compacted:
            raise refusal(call, Status("The provided continue parameter is too old", "Expired", 410))
        pods = self._pods_at(int(at))
        limit = int(given.get("limit", "0")) or len(pods) or 1
        first = int(start)
        more = f"{at}:{first + limit}" if first + limit < len(pods) else ""
        body = {"metadata": {"resourceVersion": at, "continue": more}, "items": pods[first : first + limit] or None}
        await asyncio.sleep(0.01)
        text = json.dumps(body).encode()
        return text[: len(text) // 2] if fault == "garbage" else text

    @asynccontextmanager
    async def stream(
        self, call: Call, *, params: Mapping[str, str] | None = None, idle: float = 90.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The events after a version."""
        given = self._note(call, params)
        fault = self.faults.popleft() if self.faults else ""
        self._fault(call, fault)
        yield self._events(call, given, fault, idle)

    async def _events(self, call: Call, given: dict[str, str], fault: str, idle: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ends, told = loop.time() + float(given["timeoutSeconds"]), int(given["resourceVersion"])
        if told < self.compacted:
            yield _line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
            return
        if fault == "silence":
            await asyncio.sleep(idle)
            raise Silent("kubernetes-silent", "silent")
        connected = self.severed
        while loop.time() < ends:
            if self.severed > connected:
                raise Unavailable("kubernetes-unreachable", "severed")
            lines = [_line(kind, pod) for version, kind, pod in self.log if version > told]
            told = self.version
            lines = lines or [_line("BOOKMARK", {"metadata": {"resourceVersion": str(told)}})]
            for chunk in _spoil(b"".join(lines), fault):
                yield chunk
                await asyncio.sleep(0)
            if fault in {"break", "cut"}:
                raise Unavailable("kubernetes-unreachable", "broken")
            if fault == "end":
                return
            self._changed.clear()
            if self.version == told and self.severed == connected:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), min(BOOKMARK_SECONDS, max(ends - loop.time(), 0.001)))

    def _fault(self, call: Call, fault: str) -> None:
        if fault in _REFUSALS:
            raise _REFUSALS[fault](call)

    def _note(self, call: Call, params: Mapping[str, str] | None) -> dict[str, str]:
        given = dict(params or {})
        self.asked.append({**given, "verb": call.verb, "time": str(asyncio.get_running_loop().time())})
        return given

    def _record(self, kind: str, name: str, uid: str, extra: dict[str, Any]) -> None:
        self.version += 1
        metadata = {"name": name, "namespace": "x", "uid": uid, "resourceVersion": str(self.version)}
        pod = {"metadata": metadata, "spec": {}, **extra}
        if kind == "DELETED":
            del self.pods[name]
        else:
            self.pods[name] = pod
        self.log.append((self.version, kind, pod))
        self.history[self.version] = self.state()
        self._changed.set()

    def _pods_at(self, version: int) -> list[dict[str, Any]]:
        pods: dict[str, dict[str, Any]] = {}
        for at, kind, pod in self.log:
            if at <= version:
                pods.pop(pod["metadata"]["name"], None)
                if kind != "DELETED":
                    pods[pod["metadata"]["name"]] = pod
        return list(pods.values())


def _unavailable(_: Call) -> CorralError:
    return Unavailable("kubernetes-unreachable", "The cluster could not be reached.")


_REFUSALS = {
    "unreachable": _unavailable,
    "500": lambda call: refusal(call, Status("etcdserver: leader changed", "InternalError", 500)),
    "429": lambda call: refusal(call, Status("busy", "TooManyRequests", 429), retry_after=7.0),
    "401": lambda call: refusal(call, Status("Unauthorized", "Unauthorized", 401)),
    "403": lambda call: refusal(call, Status('User "bob" cannot list resource "pods"', "Forbidden", 403)),
    "410": lambda call: refusal(call, Status("too old resource version", "Expired", 410)),
    "400": lambda call: refusal(call, Status("invalid resource version", "BadRequest", 400)),
}
FAULTS = (*_REFUSALS, "garbage", "silence", "break", "cut", "end", "pieces", "unreadable")


def _line(kind: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def _spoil(data: bytes, fault: str) -> list[bytes]:
    if fault == "garbage":
        return [data, b'{"type": <html>\n']
    if fault == "cut":
        return [data[:-7]]
    if fault == "pieces":
        return [data[at : at + 11] for at in range(0, len(data), 11)]
    if fault == "unreadable":
        return [_line("ADDED", {"metadata": {"name": "odd", "uid": "odd"}, "spec": "none"}) + data]
    return [data]
