"""Reconcile one object with its job, from their current states alone.

No history is kept: the object, its link and the stored job decide. So a killed server, a broken watch and a store
restored from a backup need no special handling.

- An object without a link becomes a job, once (the link is stored with it), unless its status shows an ended job.
- A different number of replicas scales the job. A difference in any other field is reported in the object's status.
- A deleted object has its job stopped; the finalizer is removed when the job has ended.
- An object whose status belongs to another Corral's job is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog

from corral.control.bridge.difference import differences
from corral.control.bridge.namespace_accounts import AccountsOfNamespaces
from corral.control.bridge.object_state import refused, state_of
from corral.control.bridge.object_writer import MOST_AT_ONCE, Writer
from corral.control.external_jobs import ControllerReport, controller_report, engine_events
from corral.control.loop import Control
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, TooManyRequests, Unavailable
from corral.kernel.ids import JobId
from corral.model.kubernetes_objects import Birth, ObjectLink, ObjectRef
from corral.model.records import TaskRecord
from corral.model.store_writes import JobRecord
from corral.service.actor import Actor
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_objects import FINALIZER, Condition, Document, ObjectKind, ObjectState, Wish

log = structlog.get_logger()

_AGAIN_SECONDS: Final = 10.0
"""First wait in seconds before an object is tried again after a refusal that may pass (name taken, queue missing)."""
_LONGEST_SECONDS: Final = 600.0
_UNMAPPED_SECONDS: Final = 5.0
"""Seconds that another server on the cluster has to take an object whose namespace is not mapped here."""
_SCALING_SECONDS: Final = 10.0
"""Seconds after which a job that still has the old number of replicas is scaled again."""
_MOST_TASKS: Final = 10_000
_TOO_MANY_TASKS: Final = "TooManyTasks"
"""The reason of a refusal to scale that passes when other tasks of the account have ended."""
_APPLIED: Final = Condition("Applied", "True", "Applied", "The job is as the object asks.")


class Reconciler:
    """Brings one object and its job together; may be called any number of times."""

    def __init__(
        self, control: Control, service: Service, writer: Writer, accounts: AccountsOfNamespaces, *, server: str
    ) -> None:
        """`server` is this Corral's UID."""
        self._control, self._service, self._writer = control, service, writer
        self._accounts, self._server = accounts, server
        self._store = control.store
        self._scaling: dict[str, _Told] = {}
        """By UID, the size that its job was asked to have and does not have yet."""
        self._others: set[str] = set()
        """The UIDs of other Corrals whose objects were found in namespaces that are mapped here."""
        self._unmapped: dict[str, float] = {}
        """By UID, the time when an object of an unmapped namespace was first seen."""
        self._refused: dict[str, tuple[int, float]] = {}
        """By UID, the generation that was refused, and the seconds until the next try."""

    async def reconcile(self, kind: ObjectKind, document: Document, link: ObjectLink | None) -> ReconcileResult:
        """Reconcile one object now."""
        ref = ref_of(kind, document)
        leaving = bool(document.get("metadata", {}).get("deletionTimestamp"))
        other = kind.server_of(document)
        free = leaving and (other == self._server or not kind.job_of(document))  # nobody else would release it
        if link is None and not free and not self._accounts.of(ref.namespace):
            return ReconcileResult(None, await self._not_ours(kind, ref, document))
        if link is None and other not in ("", self._server):
            self._met(other, ref)
            return ReconcileResult(None, None)
        if leaving:
            link = link or await self._store.link_of(ref.uid)  # the answer to a submit may have been lost
            return ReconcileResult(link, await self._leaving(kind, ref, document, link))
        if link is None:
            return await self._taken(kind, ref, document)
        return ReconcileResult(link, await self._mirrored(kind, ref, document, link))

    def _met(self, other: str, ref: ObjectRef) -> None:
        """Log once for each other Corral that its objects are left alone."""
        if other not in self._others:
            self._others.add(other)
            message = (
                "The object's status is of a job of another Corral (or of this one before it had a new store), so it is "
                "left alone, its finalizer included, and so are all others of that Corral. Once that Corral is gone for "
                "good, take their finalizers away, delete them, and apply them anew."
            )
            log.warning("objects of another server", object=str(ref), server=other, message=message)

    async def gone(self, link: ObjectLink) -> bool:
        """Stop the job of a deleted object, then delete the link; returns whether the job has ended.

        The controller of an external job can no longer report, and its objects are garbage-collected, so the tasks are
        ended.
        """
        record = await self._store.find_job(link.job)
        if record is not None and record.live:
            await self._stop(record)
            self._hear(record, None, caught_up=True)
            return False
        await self._store.unlink(link.ref.uid)
        return True

    def forget(self, uid: str) -> None:
        """Drop everything kept about an object that is gone."""
        self._writer.forget(uid)
        for kept in (self._scaling, self._unmapped, self._refused):
            kept.pop(uid, None)

    # ---- becoming a job

    async def _taken(self, kind: ObjectKind, ref: ObjectRef, document: Document) -> ReconcileResult:
        if kind.over(document):
            return ReconcileResult(None, None)
        try:
            job = kind.job(document)
            await self._writer.own(kind, ref, document, {}, keep=True)
            link = await self._submitted(kind, ref, document, job)
        except Unavailable:
            raise
        except CorralError as error:
            if error.code.startswith("kubernetes-"):
                raise
            log.info("object refused", object=str(ref), code=error.code, message=error.message)
            state = refused(_generation(document), _reason(error), error.message)
            wait = await self._writer.show(kind, ref, document, state)
            return ReconcileResult(None, wait if isinstance(error, SpecError) else self._again(ref.uid, document))
        self._refused.pop(ref.uid, None)
        # no write here: if it failed, the link would be lost; the caller looks again
        return ReconcileResult(link, None)

    def _again(self, uid: str, document: Document) -> float:
        """Seconds until a refused object is tried again; doubles while its generation is the same."""
        generation = _generation(document)
        before, seconds = self._refused.get(uid, (generation, 0.0))
        seconds = min(seconds * 2, _LONGEST_SECONDS) if seconds and before == generation else _AGAIN_SECONDS
        self._refused[uid] = (generation, seconds)
        return seconds

    async def _submitted(self, kind: ObjectKind, ref: ObjectRef, document: Document, job: UnifiedJob) -> ObjectLink:
        actor = await self._service.authentication.account(self._accounts.of(ref.namespace))
        birth = Birth(ref, kind.fingerprint(document), kind.wish(document) is Wish.HOLD)
        own = kind.granted(document)
        result = await self._service.submission.submit(
            actor, job.to_json(), filename="", wait_for_capacity=True, birth=birth, own_priority=own
        )
        if result.detail is None:
            raise NotFound("job-not-found", "The job that this object became is gone.")
        if kind.job_of(document) not in ("", result.detail.id):
            log.warning("object submitted again", object=str(ref), before=kind.job_of(document), job=result.detail.id)
        return ObjectLink(ref, JobId(result.detail.id), birth.fingerprint, self._control.clock.now())

    async def _not_ours(self, kind: ObjectKind, ref: ObjectRef, document: Document) -> float | None:
        """Report in an object's status that its namespace is not mapped, unless another server takes it."""
        if kind.shown(document):
            return None
        now = self._control.clock.now()
        since = self._unmapped.setdefault(ref.uid, now)
        if now - since < _UNMAPPED_SECONDS:
            return _UNMAPPED_SECONDS - (now - since)
        message = (
            f"The namespace {ref.namespace} is mapped to no account of Corral; an administrator says whose jobs are made "
            f"of its objects with CORRAL_OBJECT_ACCOUNTS={ref.namespace}=ACCOUNT."
        )
        state = refused(_generation(document), "NamespaceNotMapped", message)
        return await self._writer.show(kind, ref, document, state)

    # ---- following a job

    async def _mirrored(self, kind: ObjectKind, ref: ObjectRef, document: Document, link: ObjectLink) -> float | None:
        record = await self._store.find_job(link.job)
        if record is None:
            return await self._lost(kind, ref, document, link)
        if _knows_better(kind, document, record):
            if record.live:
                await self._stop(record)
            await self._writer.own(kind, ref, document, {}, keep=True)
            return None
        applied = await self._followed(kind, document, link, record) if record.live else _ended(kind, document, link)
        await self._writer.own(kind, ref, document, record.run.targets, keep=True)
        self._external(kind, document, record)
        again = await self._shown(kind, ref, document, record, applied)
        if record.live and (ref.uid in self._scaling or applied.reason == _TOO_MANY_TASKS):
            return min(again or _SCALING_SECONDS, _SCALING_SECONDS)
        return again

    async def _shown(
        self, kind: ObjectKind, ref: ObjectRef, document: Document, record: JobRecord, applied: Condition
    ) -> float | None:
        def state(tasks: Sequence[TaskRecord] = ()) -> ObjectState:
            return state_of(record, applied, generation=_generation(document), server=self._server, tasks=tasks)

        if not kind.wants_tasks:
            return await self._writer.show(kind, ref, document, state())
        if wait := self._writer.early(kind, ref, document, state()):
            return wait
        tasks = (await self._store.job_tasks(record.id, limit=_MOST_TASKS)).items
        whole = await asyncio.to_thread(state, tasks) if len(tasks) > MOST_AT_ONCE else state(tasks)
        return await self._writer.show(kind, ref, document, whole)

    async def _lost(self, kind: ObjectKind, ref: ObjectRef, document: Document, link: ObjectLink) -> float | None:
        """Report that the job was removed (`corral rm`, or retention), unless the object shows the job's end."""
        if kind.over(document):
            return None
        message = f"Job {link.job} was removed from Corral; delete the object and apply it again to rerun it."
        return await self._writer.show(kind, ref, document, refused(_generation(document), "JobRemoved", message))

    async def _followed(self, kind: ObjectKind, document: Document, link: ObjectLink, record: JobRecord) -> Condition:
        """Make the job follow its object; returns the condition that says whether it does."""
        actor, uid = Actor(record.user), link.ref.uid
        wish = kind.wish(document)
        if wish is Wish.STOP:
            await self._stop(record)
            return _APPLIED
        if kind.holds and wish is Wish.RUN and record.run.suspended and not record.run.attempt:
            await self._service.job_commands.resume(actor, record.id)
        try:
            job = kind.job(document)
            if (fingerprint := kind.fingerprint(document)) != link.fingerprint:
                if paths := differences(job, record):
                    return _unchangeable(paths)
                await self._store.keep_fingerprint(uid, fingerprint)
            return await self._scaled(actor, uid, record, kind.replicas(document))
        except (InvalidInput, Conflict, TooManyRequests) as error:
            return Condition("Applied", "False", _reason(error), error.message)

    async def _scaled(self, actor: Actor, uid: str, record: JobRecord, asked: int) -> Condition:
        """Scale the job to the size that its object asks for, and again while it does not have it."""
        has, now = _replicas(record), self._control.clock.now()
        if asked == has:
            self._scaling.pop(uid, None)
            return _APPLIED
        told = self._scaling.get(uid)
        if told is None or told.replicas != asked or now - told.last >= _SCALING_SECONDS:
            await self._service.job_commands.scale(actor, record.id, replicas=asked, by_object=True)
            first = told.first if told is not None and told.replicas == asked else now
            told = self._scaling[uid] = _Told(asked, first, now)
        if now - told.first < _SCALING_SECONDS:
            return _APPLIED
        message = f"The job was told to have {asked} replicas and still is to have {has}; it is told again and again."
        return Condition("Applied", "False", "NotScaled", message)

    def _external(self, kind: ObjectKind, document: Document, record: JobRecord) -> None:
        """Tell control the report of an external job's own controller."""
        job = self._control.world.jobs.get(record.id)
        if not record.run.external or job is None:
            return
        report = controller_report(document.get("status") or {})
        wanted = kind.targets(document, job.tasks_by_node.targets) or {}
        stands = kind.targets_in(document) == kind.targets_in(wanted)
        caught_up = stands and report is not None and report.observed_generation >= _generation(document)
        self._hear(record, report, caught_up=caught_up)

    def _hear(self, record: JobRecord, report: ControllerReport | None, *, caught_up: bool) -> None:
        job = self._control.world.jobs.get(record.id)
        if record.run.external and job is not None:
            for event in engine_events(job, report, caught_up=caught_up, now=self._control.clock.now()):
                self._control.report(event)

    # ---- going

    async def _leaving(
        self, kind: ObjectKind, ref: ObjectRef, document: Document, link: ObjectLink | None
    ) -> float | None:
        if FINALIZER not in (document.get("metadata", {}).get("finalizers") or ()):
            return None
        record = None if link is None else await self._store.find_job(link.job)
        if record is not None and record.live and link is not None:
            await self._stop(record)
            return await self._mirrored_end(kind, ref, document, record)
        await self._writer.own(kind, ref, document, {}, keep=False)
        return None

    async def _mirrored_end(
        self, kind: ObjectKind, ref: ObjectRef, document: Document, record: JobRecord
    ) -> float | None:
        applied = Condition("Applied", "True", "Deleting", "The object is deleted once the job has stopped.")
        await self._writer.own(kind, ref, document, record.run.targets, keep=True)
        self._external(kind, document, record)
        return await self._shown(kind, ref, document, record, applied)

    async def _stop(self, record: JobRecord) -> None:
        if record.live and not record.run.stop_requested:
            await self._service.job_commands.stop(Actor(record.user), record.id)


class _Told(msgspec.Struct, frozen=True):
    """A size that a job was asked to have, with the times of the first and the last request."""

    replicas: int
    first: float
    last: float


class ReconcileResult(msgspec.Struct, frozen=True):
    """The result of reconciling: the object's link, and the seconds until the next look."""

    link: ObjectLink | None
    again: float | None


def ref_of(kind: ObjectKind, document: Document) -> ObjectRef:
    """The reference to the object in a document."""
    metadata: Mapping[str, Any] = document.get("metadata", {})
    return ObjectRef(kind.title, metadata.get("namespace", ""), metadata.get("name", ""), metadata.get("uid", ""))


def _generation(document: Document) -> int:
    return int(document.get("metadata", {}).get("generation", 0))


def _reason(error: CorralError) -> str:
    return "".join(part.capitalize() for part in error.code.split("-"))


def _replicas(record: JobRecord) -> int:
    """The replicas of the counted role that the job is asked to have now."""
    counted = msgspec.json.decode(record.doc)["spec"]["replicaSpec"]
    count = record.run.roles.get(counted["role"])
    return int(counted["replicas"]) if count is None else count.target


def _knows_better(kind: ObjectKind, document: Document, record: JobRecord) -> bool:
    """Whether the object shows an end that the store lacks.

    The store was then restored from a backup, and the object is right.
    """
    if not kind.over(document) or kind.job_of(document) != record.id:
        return False
    return kind.attempt_of(document) >= record.run.attempt and kind.phase_of(document) != record.phase


def _unchangeable(paths: list[str]) -> Condition:
    named = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
    message = f"Only replicas of a live job can change, and {named} differ; delete the object and apply it again."
    return Condition("Applied", "False", "NotChangeable", message)


def _ended(kind: ObjectKind, document: Document, link: ObjectLink) -> Condition:
    if kind.fingerprint(document) == link.fingerprint:
        return _APPLIED
    message = "The job is over, so the change has no effect; delete the object and apply it again to rerun it."
    return Condition("Applied", "False", "JobOver", message)
