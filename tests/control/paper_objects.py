"""A cluster's objects without a cluster: what a bridge may ask of documents, with faults wherever a test wants them."""

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
    """Objects by UID; an apply replaces what the part had applied before, as server-side apply does."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.fault: Callable[[str], None] = lambda call: None
        self.writes = self.refused = 0
        """How many there were, and how many of those were for a version that was no longer the object's."""
        self.holding: Callable[[Mapping[str, Any]], bool] = lambda fields: False
        """Which applies are long on their way: those who asked wait for ever, and they are carried out by `held`."""
        self.held: asyncio.Queue[Callable[[], str]] = asyncio.Queue()
        self.mute = False
        """Whether objects are listed and nothing is told of them yet."""
        self.defined = True
        """Whether the cluster has the definition of the objects."""
        self.elsewhere: frozenset[str] = frozenset()
        """Whose jobs are said to be run by their own controllers."""
        self._untold = False
        self._numbers = itertools.count(1)
        self._changes: asyncio.Queue[list[DocumentChange]] = asyncio.Queue()

    # ---- what users do

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
        """What an external controller says, of the generation and attempt that it sees unless told otherwise."""
        found = self.objects[uid]
        seen = {"observedGeneration": found["metadata"]["generation"], "attempt": found["status"]["attempt"]}
        found["status"]["external"] = {**seen, **external}
        self._tell(uid)

    def targets(self, uid: str) -> dict[str, int]:
        found: dict[str, int] = self.objects[uid]["spec"]["replicaSpec"].get("targetReplicas", {})
        return found

    def mute_next(self) -> None:
        """Tell nobody of the next change."""
        self._untold = True

    def delete(self, uid: str) -> None:
        self.objects[uid]["metadata"]["deletionTimestamp"] = "now"
        self._edited(uid)

    def rip_out(self, uid: str) -> None:
        """Take an object away whatever holds it."""
        self.objects[uid]["metadata"]["finalizers"] = []
        self.delete(uid)

    @property
    def untold(self) -> int:
        """How many changes nobody has taken yet."""
        return self._changes.qsize()

    # ---- what the bridge asks

    def begin(self) -> None:
        """A new watcher begins; what an earlier one did not take is told no more."""
        self._changes = asyncio.Queue()
        self.again()

    def again(self) -> None:
        """Everything is told once more."""
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

    # ---- how it is kept

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
