"""Watch objects and jobs, and reconcile each changed object in one of eight workers.

One object is handled by one worker at a time, and again after each change. A failed reconciliation is repeated after a
growing wait. A kind without a definition in the cluster is reported once, and the other kinds go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Final

import structlog

from corral.control.bridge.namespace_accounts import AccountsOfNamespaces
from corral.control.bridge.object_writer import Writer
from corral.control.bridge.reconciler import Reconciler, ref_of
from corral.control.loop import Control
from corral.engines.base import Documents
from corral.kernel.errors import Conflict, CorralError, NotFound, Unavailable
from corral.kernel.ids import JobId
from corral.model.kubernetes_objects import ObjectLink
from corral.service.service import Service
from corral.spec.crd import SCHEMA_ANNOTATION, schema_digest
from corral.spec.job_objects import Document, ObjectKind, UnifiedJobKind

log = structlog.get_logger()

_WORKERS: Final = 8
_LOOK_SECONDS: Final = 1.0
_TRIES: Final = 5
_LOOKS_UNTIL_MENDED: Final = 30
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0


class Bridge:
    """Follows the objects of a cluster and the jobs made from them."""

    def __init__(
        self,
        control: Control,
        service: Service,
        documents: Documents,
        kinds: Sequence[ObjectKind],
        accounts: AccountsOfNamespaces,
        *,
        server: str,
    ) -> None:
        """`server` is this Corral's UID, which marks its own writes in objects."""
        self._control, self._documents = control, documents
        self._kinds = {kind.title: kind for kind in kinds}
        self._writer = Writer(documents, control.clock)
        self._reconciler = Reconciler(control, service, self._writer, accounts, server=server)
        self._objects: dict[str, tuple[ObjectKind, dict[str, Any]]] = {}
        self._links: dict[str, ObjectLink] = {}
        self._uids: dict[JobId, str] = {}
        self._waiting: dict[str, None] = {}
        self._busy: set[str] = set()
        self._hidden: set[str] = set()
        """UIDs of linked objects that the cluster lists and of which no change was received yet."""
        self._wanted, self._linked, self._taken = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._pauses: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.notes: dict[str, str] = {}
        """By kind, the problem with its definition: missing, or of another version; "" for none."""
        self._elsewhere: frozenset[str] = frozenset()
        """The UIDs of objects whose live jobs are run by their own controllers."""
        control.recovering = self._recovering
        control.changed = self._jobs_changed
        control.scale_object = self.scale
        control.external.look = lambda job: self._jobs_changed((job,))

    async def run(self) -> None:
        """Follow objects and jobs until cancelled, through any failure of the cluster or the store."""
        await self._control.ready.wait()
        for link in await self._stored():
            self._know(link)
        self._linked.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._documents.run())
            group.create_task(self._take())
            for title in self._kinds:
                group.create_task(self._begin(title))
            group.create_task(self._watch_definitions())
            group.create_task(self._watch_hidden())
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def scale(self, job: JobId, replicas: int) -> bool:
        """Set the replicas in the object that a job was made from; False when there is no such object.

        Raises CorralError: Unavailable when the cluster does not answer, its objects are not read yet, or others keep
        changing the object; Conflict when the cluster no longer has a definition of such objects.
        """
        uid = self._uids.get(job, "")
        for _ in range(_TRIES):
            if uid not in self._objects:
                return self._missing(uid)
            kind, document = self._objects[uid]
            try:
                await self._writer.scale(kind, ref_of(kind, document), document, replicas)
            except NotFound:
                return False
            except Conflict:
                await self._another(uid, document)
            else:
                return True
        raise Unavailable("object-changing", "The job's object is being changed by others; try again in a moment.")

    def _missing(self, uid: str) -> bool:
        """Return False when there is no such object; raises like `scale` when that is not known."""
        if self._linked.is_set() and (not uid or not self._untold(self._links[uid])):
            return False
        if uid and self._linked.is_set():
            title = self._links[uid].ref.kind
            if isinstance(self._documents.trouble(title), NotFound):
                message = (
                    f"The job comes from an object, and the cluster no longer defines {title}, so the job cannot be "
                    "scaled; apply the definition again, or resubmit the job."
                )
                raise Conflict("objects-undefined", message)
        raise Unavailable("objects-not-read", "The objects of the cluster are not read yet; try again in a moment.")

    async def _another(self, uid: str, document: Document) -> None:
        """Wait for a newer document of an object, for at most a second."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                while uid in self._objects and self._objects[uid][1] is document:
                    await self._taken.wait()

    # ---- what happens

    async def _recovering(self, external: frozenset[JobId]) -> None:
        """Before control looks at the machines: name the objects whose pods external jobs own.

        Raises Unavailable like the store.
        """
        links = await self._control.store.object_links()
        self._tell_elsewhere({link.ref.uid for link in links if link.job in external})

    def _is_external(self, link: ObjectLink | None) -> bool:
        job = None if link is None else self._control.world.jobs.get(link.job)
        return job is not None and job.run.external

    def _tell_elsewhere(self, uids: Iterable[str]) -> None:
        self._elsewhere = frozenset(uids)
        self._documents.set_external_jobs(self._elsewhere)

    async def _stored(self) -> list[ObjectLink]:
        """Every link in the store, once it answers."""
        while True:
            try:
                return await self._control.store.object_links()
            except Unavailable as error:
                log.warning("links not read", code=error.code, message=error.message)
                await asyncio.sleep(_LOOK_SECONDS)

    def _jobs_changed(self, jobs: Iterable[JobId]) -> None:
        for job in jobs:
            if (uid := self._uids.get(job)) is not None:
                self._mark(uid)

    async def _take(self) -> None:
        while True:
            for change in await self._documents.changes():
                uid = change.document.get("metadata", {}).get("uid", "")
                if change.gone:
                    self._objects.pop(uid, None)
                    self._reconciler.forget(uid)
                    if (timer := self._timers.pop(uid, None)) is not None:
                        timer.cancel()
                else:
                    self._objects[uid] = (self._kinds[change.kind], change.document)
                self._pauses.pop(uid, None)
                self._mark(uid)
            taken, self._taken = self._taken, asyncio.Event()
            taken.set()

    async def _begin(self, title: str) -> None:
        """Check every link of a kind once its objects are listed: some may have gone while no server ran."""
        await self._documents.whole(title)
        self._hidden |= {
            uid for uid, link in self._links.items() if link.ref.kind == title and uid not in self._objects
        }
        self._look_for_hidden()

    async def _watch_hidden(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._look_for_hidden()

    def _look_for_hidden(self) -> None:
        """Reconcile links whose hidden objects are gone; no change event arrives for those."""
        self._hidden = {uid for uid in self._hidden if uid in self._links and uid not in self._objects}
        gone = {uid for uid in self._hidden if not self._untold(self._links[uid])}
        self._hidden -= gone
        for uid in gone:
            self._mark(uid)

    async def _watch_definitions(self) -> None:
        """Report problems with the definitions of kinds, each time that they change."""
        told: dict[str, str] = {}
        for look in count():
            for title in self._kinds:
                trouble = self._documents.trouble(title)
                if trouble is None and self._documents.listed(title) is None:
                    continue
                standing = trouble.message if trouble is not None else "followed"
                mended = bool(self.notes.get(title)) and look % _LOOKS_UNTIL_MENDED == 0
                if told.get(title) != standing or mended:
                    told[title] = standing
                    self._say(title, await self._note(title, trouble))
            await asyncio.sleep(_LOOK_SECONDS)

    def _say(self, title: str, note: str) -> None:
        if note and note != self.notes.get(title):
            log.warning("objects are not as they should be", kind=title, message=note)
        self.notes[title] = note

    async def _note(self, title: str, trouble: CorralError | None) -> str:
        if isinstance(trouble, NotFound):
            return f"The cluster has no definition of {title}, so no jobs are taken from such objects."
        if trouble is not None:
            return trouble.message
        return await self._age(title) if title == UnifiedJobKind().title else ""

    async def _age(self, title: str) -> str:
        """The message about an older or newer definition in the cluster, "" for none."""
        try:
            annotations = await self._documents.definition(title)
        except CorralError as error:
            log.debug("definition not read", kind=title, message=error.message)
            return ""
        if annotations is None or annotations.get(SCHEMA_ANNOTATION) == schema_digest():
            return ""
        return (
            f"The cluster's definition of {title} is older or newer than this server: fields that it does not know are "
            "dropped or refused by the cluster. Apply what `corral crd` prints."
        )

    # ---- the work

    def _mark(self, uid: str) -> None:
        self._waiting[uid] = None
        self._wanted.set()

    def _later(self, uid: str, seconds: float) -> None:
        if (timer := self._timers.pop(uid, None)) is not None:
            timer.cancel()
        self._timers[uid] = asyncio.get_running_loop().call_later(seconds, self._mark, uid)

    def _know(self, link: ObjectLink) -> None:
        self._links[link.ref.uid] = link
        self._uids[link.job] = link.ref.uid

    async def _work(self) -> None:
        while True:
            uid = next((uid for uid in self._waiting if uid not in self._busy), None)
            if uid is None:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            del self._waiting[uid]
            self._busy.add(uid)
            try:
                await self._look_at(uid)
            finally:
                self._busy.discard(uid)
                if self._waiting:
                    self._wanted.set()

    async def _look_at(self, uid: str) -> None:
        if self._is_external(self._links.get(uid)) != (uid in self._elsewhere):
            self._tell_elsewhere(self._elsewhere ^ {uid})
        try:
            again = await self._settle(uid)
        except (NotFound, Conflict) as error:
            log.info("object changed meanwhile", uid=uid, message=error.message)
            again = self._pause(uid)
        except CorralError as error:
            log.warning("object left for later", uid=uid, code=error.code, message=error.message)
            again = self._pause(uid)
        except Exception:
            log.exception("object could not be looked at", uid=uid)
            again = self._pause(uid)
        else:
            self._pauses.pop(uid, None)
        if again is not None:
            self._later(uid, again)

    async def _settle(self, uid: str) -> float | None:
        link = self._links.get(uid)
        if uid not in self._objects:
            if link is None and (link := await self._control.store.link_of(uid)) is not None:
                self._know(link)  # the answer to its submit was lost
            if link is None or link.ref.kind not in self._kinds:
                return None
            if self._untold(link):
                self._hidden.add(uid)
                return None
            if await self._reconciler.gone(link):
                self._links.pop(uid, None)
                self._uids.pop(link.job, None)
            return None
        kind, document = self._objects[uid]
        result = await self._reconciler.reconcile(kind, document, link)
        if result.link is not None and result.link is not link:
            self._know(result.link)
            self._mark(uid)  # what became of the job in the meantime was told to nobody
        return result.again

    def _untold(self, link: ObjectLink) -> bool:
        """Whether an object may exist of which no change was received yet."""
        listed = self._documents.listed(link.ref.kind) if link.ref.kind in self._kinds else ()
        return listed is None or link.ref.uid in listed

    def _pause(self, uid: str) -> float:
        pause = self._pauses.get(uid, _FIRST_PAUSE)
        self._pauses[uid] = min(pause * 2, _LONGEST_PAUSE)
        return pause
