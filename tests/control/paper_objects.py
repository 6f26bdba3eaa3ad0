"""A fake cluster of custom objects for the bridge, with faults where a test wants them."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from corral.kernel.errors import Conflict, CorralError, NotFound
from corral.model.kubernetes_objects import DocumentChange, ObjectRef
from corral.spec.job_objects import UnifiedJobKind

KIND = UnifiedJobKind().title
Object = dict[str, Any]


class PaperObjects:
    """Objects by UID; an apply replaces the fields of its part's earlier apply, as server-side apply does."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.fault: Callable[[str], None] = lambda call: None
        self.writes = self.refused = 0
        """All writes, and those refused because the object had a newer version."""
        self.holding: Callable[[Mapping[str, Any]], bool] = lambda fields: False
        """Applies that are delayed: their callers wait for ever, and `held` carries them out."""
        self.held: asyncio.Queue[Callable[[], str]] = asyncio.Queue()
        self.mute = False
        """Whether watchers are told nothing yet, while lists work."""
        self.defined = True
        """Whether the cluster has the CRD of the objects."""
        self.elsewhere: frozenset[str] = frozenset()
        """UIDs of the objects whose jobs are reported as run by their own controllers."""
        self._untold = False
        self._numbers = itertools.count(1)
        self._changes: asyncio.Queue[list[DocumentChange]] = asyncio.Queue()

    # ---- calls of users

    def create(self, name: str, spec: Mapping[str, Any]) -> str:
        uid = f"uid-{next(self._numbers)}"
        metadata = {"name": name, "namespace": "team", "uid": uid, "generation": 1, "finalizers": []}
        head = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob"}
        self.objects[uid] = {**head, "metadata": metadata, "spec": copy.deepcopy(dict(spec))}
        self._tell(uid)
        return uid

    def scale(self, uid: str, replicas: int) -> None:
        self.objects[uid]["spec"]["replicaSpec"]["replicas"] = replicas
        self._edited(uid)

    def says(self, uid: str, **external: Any) -> None:
        """Write an external controller's status, for the present generation and attempt unless told otherwise."""
        found = self.objects[uid]
        seen = {"observedGeneration": found["metadata"]["generation"], "attempt": found["status"]["attempt"]}
        found["status"]["external"] = {**seen, **external}
        self._tell(uid)

    def targets(self, uid: str) -> dict[str, int]:
        found: dict[str, int] = self.objects[uid]["spec"]["replicaSpec"].get("targetReplicas", {})
        return found

    def mute_next(self) -> None:
        """Drop the event of the next change."""
        self._untold = True

    def delete(self, uid: str) -> None:
        self.objects[uid]["metadata"]["deletionTimestamp"] = "now"
        self._edited(uid)

    def rip_out(self, uid: str) -> None:
        """Remove an object despite its finalizers."""
        self.objects[uid]["metadata"]["finalizers"] = []
        self.delete(uid)

    @property
    def untold(self) -> int:
        """The number of changes that no watcher has read yet."""
        return self._changes.qsize()

    # ---- calls of the bridge

    def begin(self) -> None:
        """Start a new watcher; changes that an earlier one did not read are lost."""
        self._changes = asyncio.Queue()
        self.again()

    def again(self) -> None:
        """Send every object once more."""
        for each in () if self.mute else self.objects.values():
            self._changes.put_nowait([DocumentChange(KIND, copy.deepcopy(each))])

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def changes(self) -> list[DocumentChange]:
        return await self._changes.get()

    def listed(self, kind: str) -> Collection[str] | None:
        return self.objects.keys() if self.defined else None

    async def whole(self, kind: str) -> Collection[str]:
        if not self.defined:
            await asyncio.Event().wait()
        return self.objects.keys()

    def trouble(self, kind: str) -> CorralError | None:
        return None if self.defined else NotFound("kubernetes-not-found", "The cluster has no such thing.")

    def run_elsewhere(self, uids: Collection[str]) -> None:
        self.elsewhere = frozenset(uids)

    async def definition(self, kind: str) -> Mapping[str, str] | None:
        return None

    async def apply(
        self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str, part: str = "", subresource: str = ""
    ) -> str:
        if self.holding(fields):
            await self.held.put(lambda: self._applied(ref, fields, version, subresource))
            await asyncio.Event().wait()
        return self._applied(ref, fields, version, subresource)

    def _applied(self, ref: ObjectRef, fields: Mapping[str, Any], version: str, subresource: str) -> str:
        found = self._at(ref, "apply", version)
        if subresource == "status":
            external = found.get("status", {}).get("external")
            found["status"] = {**fields["status"], **({"external": external} if external else {})}
            self._tell(ref.uid)
            return str(found["metadata"]["resourceVersion"])
        found["metadata"]["finalizers"] = list(fields.get("metadata", {}).get("finalizers", ()))
        targets = fields.get("spec", {}).get("replicaSpec", {}).get("targetReplicas")
        counts = found["spec"].setdefault("replicaSpec", {})
        counts.pop("targetReplicas", None) if targets is None else counts.update(targetReplicas=targets)
        self._edited(ref.uid)
        return str(found["metadata"]["resourceVersion"])

    async def merge(self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str) -> str:
        found = self._at(ref, "merge", version)
        self.scale(ref.uid, fields["spec"]["replicaSpec"]["replicas"])
        return str(found["metadata"]["resourceVersion"])

    # ---- storage

    def _at(self, ref: ObjectRef, call: str, version: str) -> Object:
        self.fault(call)
        self.writes += 1
        if ref.uid not in self.objects:
            raise NotFound("kubernetes-not-found", "It is gone.")
        found = self.objects[ref.uid]
        if version and version != found["metadata"]["resourceVersion"]:
            self.refused += 1
            raise Conflict("kubernetes-conflict", "The object has been modified.")
        return found

    def _edited(self, uid: str) -> None:
        metadata = self.objects[uid]["metadata"]
        metadata["generation"] += 1
        if metadata.get("deletionTimestamp") and not metadata["finalizers"]:
            gone = self.objects.pop(uid)
            self._changes.put_nowait([DocumentChange(KIND, gone, gone=True)])
        else:
            self._tell(uid)

    def _tell(self, uid: str) -> None:
        self.objects[uid]["metadata"]["resourceVersion"] = str(next(self._numbers))
        untold, self._untold = self._untold, False
        if not untold:
            self._changes.put_nowait([DocumentChange(KIND, copy.deepcopy(self.objects[uid]))])
