"""Why: an object is written only where it differs from what it should show, and never so often that a cluster suffers.

The main part of an object has two things of Corral's, the finalizer and the targets, and both are always applied
together: what an apply leaves out it gives up. A status is written at once when the phase or a condition is another; when
only counts are, once a second at most, or so seldom as its size calls for; when only its sentences are (how many are
ahead), every few seconds at most.

Every write is for one version of the object, and refused at any other: what a server sends that no longer leads never
stands over what its successor wrote. What Corral's own writes made of a version is known before it is seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from corral.engines.base import Documents
from corral.kernel.clock import Clock
from corral.model.objects import ObjectRef
from corral.model.records import rfc3339
from corral.spec.objects import FINALIZER, NOW, Document, ObjectKind, ObjectState

SENTENCES_SECONDS: Final = 5.0
"""So long a status stands in which only sentences have changed."""
COUNTS_SECONDS: Final = 1.0
"""So long a status stands in which neither the phase nor a condition has changed; of a job whose tasks the object shows
one by one, a second longer for each thousand of them."""
MOST_AT_ONCE: Final = 500
"""A status of so many tasks is made beside the event loop."""
_AGAIN_SECONDS: Final = 60.0
"""A cluster that drops a part of what is written (an older definition) is not written to without end."""
_MOST_VERSIONS: Final = 20
"""So many of its own writes to one object a server may be ahead of what it has seen of it."""


class Writer:
    """Makes objects show what they should."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._written: dict[str, tuple[float, str]] = {}
        """By UID: when a status was written, and which."""
        self._owned: dict[str, tuple[str, str]] = {}
        """By UID: at which version of the object its main part was written, and what."""
        self._versions: dict[str, list[str]] = {}
        """By UID: a version that was seen, and those that writes made of it, one after the other."""

    async def scale(self, kind: ObjectKind, ref: ObjectRef, document: Document, replicas: int) -> None:
        """Have the object ask for so many replicas; raises Conflict when it is not as `document` says any more."""
        fields = {**_head(kind), **kind.scaled(document, replicas)}
        version = self._latest(ref.uid, document)
        self._wrote(ref.uid, version, await self._documents.merge(ref, fields, version=version))

    async def own(
        self, kind: ObjectKind, ref: ObjectRef, document: Document, targets: Mapping[str, int], *, keep: bool
    ) -> None:
        """Have the object be kept (or no longer), and have the scheduler's targets in it."""
        part = kind.targets(document, targets) if targets or kind.targets_in(document) else None
        held = FINALIZER in (document.get("metadata", {}).get("finalizers") or ())
        if held == keep and (part is None or kind.targets_in(document) == kind.targets_in(part)):
            return
        fields = {**_head(kind), **(part or {})}
        if keep:
            fields["metadata"] = {"finalizers": [FINALIZER]}
        seen = (_version(document), _digest(fields))
        if self._owned.get(ref.uid) != seen:  # else it was written already, and is only not seen yet
            version = self._latest(ref.uid, document)
            self._wrote(ref.uid, version, await self._documents.apply(ref, fields, version=version))
            self._owned[ref.uid] = seen

    def early(self, kind: ObjectKind, ref: ObjectRef, document: Document, state: ObjectState) -> float | None:
        """How long to wait before the object is to show `state`, whose tasks need not be known yet; None: not at all."""
        at, _ = self._written.get(ref.uid, (0.0, ""))
        passed, least = self._clock.now() - at, _counts_seconds(kind, state)
        if not 0 <= passed < least or _turning(kind.status(state, document)) != _turning(kind.shown(document)):
            return None
        return least - passed

    async def show(self, kind: ObjectKind, ref: ObjectRef, document: Document, state: ObjectState) -> float | None:
        """Have the object show `state`; when to do so again, if that is put off."""
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
        """The object is gone."""
        for kept in (self._written, self._owned, self._versions):
            kept.pop(uid, None)

    def _latest(self, uid: str, document: Document) -> str:
        """The version that the object has now, if nobody else has written it since it was as `document` says."""
        version, chain = _version(document), self._versions.get(uid, [])
        return chain[-1] if version in chain else version

    def _wrote(self, uid: str, version: str, after: str) -> None:
        """A write for `version` made this of the object."""
        chain = self._versions.get(uid, [])
        before = chain if chain[-1:] == [version] else [version]
        self._versions[uid] = [*before[-_MOST_VERSIONS:], after]


def _counts_seconds(kind: ObjectKind, state: ObjectState) -> float:
    tasks = sum(role.total for role in state.roles) if kind.wants_tasks else 0
    return COUNTS_SECONDS + tasks / 1000


def _least(status: Mapping[str, Any], stands: Mapping[str, Any], counts_seconds: float) -> float:
    """How long a status stands that was written, before this one takes its place."""
    if _turning(status) != _turning(stands):
        return 0.0
    return max(SENTENCES_SECONDS, counts_seconds) if _silent(status) == _silent(stands) else counts_seconds


def _turning(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a status nobody should wait for: which job it is of, its phase, and what is so and what not."""
    conditions = {each["type"]: (each.get("status"), each.get("reason")) for each in status.get("conditions") or ()}
    return status.get("jobId"), status.get("attempt"), status.get("phase"), conditions


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _version(document: Document) -> str:
    return str(document.get("metadata", {}).get("resourceVersion", ""))


def _head(kind: ObjectKind) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _timed(value: Any, now: str) -> Any:
    """The status with the time of now where it says so."""
    if isinstance(value, dict):
        return {key: _timed(inner, now) for key, inner in value.items()}
    if isinstance(value, list):
        return [_timed(inner, now) for inner in value]
    return now if value is NOW else value


def _silent(value: Any) -> Any:
    """A status without its sentences."""
    if isinstance(value, dict):
        return {key: _silent(inner) for key, inner in value.items() if key not in ("message", "observedGeneration")}
    return [_silent(inner) for inner in value] if isinstance(value, list) else value
