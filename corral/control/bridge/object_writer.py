"""Write targets, finalizer and status into objects, only where they differ and at a bounded rate.

Corral owns two fields in the main part of an object, the finalizer and the targets. Both are always applied together,
because an apply gives up the fields that it leaves out. A status is written at once when the phase or a condition
changes. When only counts change, it is written at most once a second, and less often for a large job. When only
messages change (the number of jobs ahead), it is written every few seconds at most.

Every write is for one version of the object and is refused at any other. So a late write of a deposed leader never
replaces a write of its successor. The versions that come from own writes are remembered before they are seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from corral.engines.base import Documents
from corral.kernel.clock import Clock
from corral.model.kubernetes_objects import ObjectRef
from corral.model.records import rfc3339
from corral.spec.job_objects import FINALIZER, NOW, Document, ObjectKind, ObjectState

SENTENCES_SECONDS: Final = 5.0
"""Seconds between two writes of a status in which only messages change."""
COUNTS_SECONDS: Final = 1.0
"""Seconds between two writes of a status in which neither the phase nor a condition changes.

For a job whose tasks the object lists one by one, a second more for each thousand of them.
"""
MOST_AT_ONCE: Final = 500
"""Tasks above which a status is built in a thread instead of the event loop."""
_AGAIN_SECONDS: Final = 60.0
"""Seconds before the same status is written again, to a cluster whose older definition drops a part of it."""
_MOST_VERSIONS: Final = 20
"""Own writes to one object that are remembered until they are seen."""


class Writer:
    """Writes the state of jobs into their objects."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._written: dict[str, tuple[float, str]] = {}
        """By UID, the time of the last write of a status, and the status's digest."""
        self._owned: dict[str, tuple[str, str]] = {}
        """By UID, the object's version before the last write of its main part, and the written fields' digest."""
        self._versions: dict[str, list[str]] = {}
        """By UID, a version that was seen, followed by the versions that own writes made of it."""

    async def scale(self, kind: ObjectKind, ref: ObjectRef, document: Document, replicas: int) -> None:
        """Set the replicas that the object asks for; raises Conflict when the object is no longer as in `document`."""
        fields = {**_head(kind), **kind.scaled(document, replicas)}
        version = self._latest(ref.uid, document)
        self._wrote(ref.uid, version, await self._documents.merge(ref, fields, version=version))

    async def own(
        self, kind: ObjectKind, ref: ObjectRef, document: Document, targets: Mapping[str, int], *, keep: bool
    ) -> None:
        """Set or remove the finalizer, and write the scheduler's targets."""
        part = kind.targets(document, targets) if targets or kind.targets_in(document) else None
        held = FINALIZER in (document.get("metadata", {}).get("finalizers") or ())
        if held == keep and (part is None or kind.targets_in(document) == kind.targets_in(part)):
            return
        fields = {**_head(kind), **(part or {})}
        if keep:
            fields["metadata"] = {"finalizers": [FINALIZER]}
        seen = (_version(document), _digest(fields))
        if self._owned.get(ref.uid) != seen:  # otherwise it was written already and is not seen yet
            version = self._latest(ref.uid, document)
            self._wrote(ref.uid, version, await self._documents.apply(ref, fields, version=version))
            self._owned[ref.uid] = seen

    def early(self, kind: ObjectKind, ref: ObjectRef, document: Document, state: ObjectState) -> float | None:
        """Seconds to wait before showing `state`, which needs no tasks yet; None when no wait is needed."""
        at, _ = self._written.get(ref.uid, (0.0, ""))
        passed, least = self._clock.now() - at, _counts_seconds(kind, state)
        if not 0 <= passed < least or _turning(kind.status(state, document)) != _turning(kind.shown(document)):
            return None
        return least - passed

    async def show(self, kind: ObjectKind, ref: ObjectRef, document: Document, state: ObjectState) -> float | None:
        """Write `state` into the object's status; returns the seconds to wait when that is postponed, else None."""
        if len(state.tasks) > MOST_AT_ONCE:
            status = await asyncio.to_thread(kind.status, state, document)
        else:
            status = kind.status(state, document)
        stands = kind.shown(document)
        if status == stands:
            return None
        digest = _digest(status)
        at, before = self._written.get(ref.uid, (0.0, ""))
        now = self._clock.now()
        least = _AGAIN_SECONDS if before == digest else _least(status, stands, _counts_seconds(kind, state))
        if 0 <= now - at < least:
            return least - (now - at)
        subresource = "status" if kind.status_subresource else ""
        fields = {**_head(kind), "status": _timed(status, rfc3339(now))}
        version = self._latest(ref.uid, document)
        after = await self._documents.apply(ref, fields, version=version, part="status", subresource=subresource)
        self._wrote(ref.uid, version, after)
        self._written[ref.uid] = (now, digest)
        return None

    def forget(self, uid: str) -> None:
        """Drop everything about an object that is gone."""
        for kept in (self._written, self._owned, self._versions):
            kept.pop(uid, None)

    def _latest(self, uid: str, document: Document) -> str:
        """The object's current version, unless others have written it since `document`."""
        version, chain = _version(document), self._versions.get(uid, [])
        return chain[-1] if version in chain else version

    def _wrote(self, uid: str, version: str, after: str) -> None:
        """Record the version after a write for `version`."""
        chain = self._versions.get(uid, [])
        before = chain if chain[-1:] == [version] else [version]
        self._versions[uid] = [*before[-_MOST_VERSIONS:], after]


def _counts_seconds(kind: ObjectKind, state: ObjectState) -> float:
    tasks = sum(role.total for role in state.roles) if kind.wants_tasks else 0
    return COUNTS_SECONDS + tasks / 1000


def _least(status: Mapping[str, Any], stands: Mapping[str, Any], counts_seconds: float) -> float:
    """Seconds that the written status must stand before this one replaces it."""
    if _turning(status) != _turning(stands):
        return 0.0
    return max(SENTENCES_SECONDS, counts_seconds) if _silent(status) == _silent(stands) else counts_seconds


def _turning(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of a status that are written at once: job, attempt, phase and conditions."""
    conditions = {each["type"]: (each.get("status"), each.get("reason")) for each in status.get("conditions") or ()}
    return status.get("jobId"), status.get("attempt"), status.get("phase"), conditions


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _version(document: Document) -> str:
    return str(document.get("metadata", {}).get("resourceVersion", ""))


def _head(kind: ObjectKind) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _timed(value: Any, now: str) -> Any:
    """The status with the current time in place of `NOW`."""
    if isinstance(value, dict):
        return {key: _timed(inner, now) for key, inner in value.items()}
    if isinstance(value, list):
        return [_timed(inner, now) for inner in value]
    return now if value is NOW else value


def _silent(value: Any) -> Any:
    """The status without its messages."""
    if isinstance(value, dict):
        return {key: _silent(inner) for key, inner in value.items() if key not in ("message", "observedGeneration")}
    return [_silent(inner) for inner in value] if isinstance(value, list) else value
