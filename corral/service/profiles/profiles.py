"""Profiles of running jobs: take, list, read, compare and remove them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog

from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, TooManyRequests, Unavailable
from corral.kernel.ids import AttemptId
from corral.kernel.units import counted
from corral.model.profiles import (
    ROW_DOC,
    ProfileComparison,
    ProfileDoc,
    ProfileList,
    ProfileProblem,
    ProfileReport,
    ProfileRow,
    ProfileView,
)
from corral.model.records import rfc3339
from corral.model.states import TaskState
from corral.model.store_writes import JobRecord
from corral.profiles.advice import Given
from corral.profiles.answers import Room
from corral.profiles.kinds import MOST_BYTES, MOST_SECONDS, read
from corral.profiles.taken import Taken
from corral.service.access.job_access import job_resource
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.task_connections import started_task
from corral.service.profiles.report import REPORT, compare, member_of, pack, read_report, report_of
from corral.service.profiles.task_session import Answered, Enter, profile_task
from corral.spec.job import UnifiedJob
from corral.storage.code_archives import BlobStore
from corral.workers.pool import LimitExceeded, Limits

log = structlog.get_logger()
TASKS: Final = 64
"""Tasks of a job that are profiled together."""
PROCESSES: Final = 8
"""Processes of a task that are profiled together."""
_RATE: Final = 50
"""Samples in a second."""
START_SECONDS: Final = 11
"""PyTorch asks every five seconds whether a trace is wanted, and all ranks begin at the same moment."""
_AT_ONCE: Final = 4
"""Profiles that one front takes at once; each holds its answers in memory."""
_MOST_ANSWERS: Final = 128 * 1024**2
"""Bytes of all answers of one profile."""
_TOLD_SECONDS: Final = 10.0
_LOST_SECONDS: Final = 120.0
"""Seconds after which a profile counts as failed that its front no longer tells of."""
_LOST: Final = "The server ended while it took the profile; take it again."
_READING: Final = Limits(memory=1 << 30, cpu_seconds=120)
_MOST_ARCHIVE: Final = 256 * 1024**2


class Profiles:
    """Profiles that the server takes in the tasks of running jobs, and keeps."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store, self._clock = context.store, context.clock
        self._running: set[asyncio.Task[None]] = set()
        context.at_close(self._close)

    async def take(
        self, actor: Actor, ref: str, enter: Enter, *, what: str, seconds: int, tasks: Sequence[str]
    ) -> ProfileView:
        """Begin to take a profile of some tasks of a job, or of all that run; it is done in the background.

        Raises Conflict `task-not-running`, `no-running-task` and `profile-being-taken`, NotFound, InvalidInput,
        TooManyRequests.
        """
        record, decision = await self._context.job_for(actor, ref, "job.profile")
        self._blobs()
        _check(what, seconds)
        chosen = await self._tasks(record, tasks)
        if len(self._running) >= _AT_ONCE:
            raise TooManyRequests("too-many-profiles", f"The server takes {_AT_ONCE} profiles already; try again soon.")
        now, id = self._clock.now(), f"{record.id}-{secrets.token_hex(4)}"
        doc = ProfileDoc(tuple(chosen))
        row = ProfileRow(
            id, record.id, record.user, actor.user, what, seconds, now, now + _LOST_SECONDS, "taking", _encoded(doc)
        )
        await self._store.begin_profile(row)
        said = {"profile": id, "what": what, "tasks": len(chosen)}
        await self._context.note(actor, "job.profile", job_resource(record), decision, **said)
        work = asyncio.create_task(self._live(row, record, chosen, enter), name="profile")
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        return self._view(row, record.name)

    async def kept(self, actor: Actor, *, job: str = "") -> ProfileList:
        """The profiles of a job, or of all the caller's jobs.

        Raises NotFound, Forbidden.
        """
        if job:
            record, _ = await self._context.job_for(actor, job, "job.profile")
            user, found = record.user, await self._store.profiles(job=record.id)
        else:
            own = Resource("job", owner=actor.user)
            await self._context.check(actor, "job.profile", own)
            user, found = actor.user, await self._store.profiles(user=actor.user)
        names = {each: await self._name(each) for each in {row.job for row in found}}
        allowance = self._context.allowance
        return ProfileList(
            tuple(self._view(row, names[row.job]) for row in found),
            await self._store.profile_bytes(user),
            allowance.profile_bytes,
            allowance.profile_days,
        )

    async def profile(self, actor: Actor, id: str) -> ProfileView:
        """One profile, also while it is being taken.

        Raises NotFound `no-such-profile`, Forbidden.
        """
        row, record, _ = await self._row(actor, id)
        return self._view(row, record.name)

    async def report(self, actor: Actor, id: str) -> ProfileReport:
        """What was read of a profile.

        Raises NotFound, Forbidden, Conflict `no-report` while there is none.
        """
        row, record, decision = await self._row(actor, id)
        content = await self._member(row, REPORT)
        await self._context.note(actor, "job.profile", job_resource(record), decision, profile=id, read="report")
        return await asyncio.to_thread(read_report, content)

    async def file(self, actor: Actor, id: str, name: str) -> bytes:
        """A file of a profile: the flame graph, stacks or a trace of one process.

        Raises NotFound, Forbidden, Conflict `no-report` while there is none.
        """
        row, record, decision = await self._row(actor, id)
        content = await self._member(row, name)
        await self._context.note(actor, "job.profile", job_resource(record), decision, profile=id, read=name)
        return content

    async def compare(self, actor: Actor, before: str, after: str) -> ProfileComparison:
        """Two profiles beside each other.

        Raises InvalidInput `not-comparable`, NotFound, Forbidden, Conflict.
        """
        first, second = await self.report(actor, before), await self.report(actor, after)
        return compare((before, first), (after, second))

    async def remove(self, actor: Actor, id: str) -> None:
        """Remove a profile and its files; one that is being taken is not kept then.

        Raises NotFound, Forbidden.
        """
        row, record, decision = await self._row(actor, id)
        await self._store.remove_profiles([id])
        await self._context.note(actor, "job.profile", job_resource(record), decision, profile=id, removed=True)
        if row.digest:
            await self._blobs().remove(row.digest)
            await self._store.forget_profile(id)

    async def _live(self, row: ProfileRow, record: JobRecord, tasks: Mapping[str, AttemptId], enter: Enter) -> None:
        """Take, read and keep a profile; whatever happens is told in its row."""
        problem = _LOST
        telling = asyncio.create_task(self._tell(row.id))
        try:
            await self._taken(row, record, tasks, enter)
            problem = ""
        except CorralError as error:
            problem = error.message
        except LimitExceeded as error:
            problem = f"To read it is too much work for the server: {error}."
        except Exception:
            problem = "The server failed to read it; its log says more."
            log.exception("a profile failed", profile=row.id)
        finally:
            telling.cancel()
            if problem:
                await self._fail(row.id, ProfileDoc(tuple(tasks), problem=problem))

    async def _fail(self, id: str, doc: ProfileDoc) -> None:
        try:
            await self._store.tell_profile(id, state="failed", doc=_encoded(doc))
        except Unavailable as error:
            log.warning("a profile's end could not be stored", code=error.code, message=error.message)

    async def _tell(self, id: str) -> None:
        """Tell every ten seconds that this front goes on with a profile."""
        while True:
            await asyncio.sleep(_TOLD_SECONDS)
            try:
                await self._store.tell_profile(id, until=self._clock.now() + _LOST_SECONDS)
            except Unavailable as error:
                log.warning("a profile's progress could not be stored", code=error.code, message=error.message)

    async def _taken(self, row: ProfileRow, record: JobRecord, tasks: Mapping[str, AttemptId], enter: Enter) -> None:
        request = {
            "what": row.what,
            "seconds": row.seconds,
            "rate": _RATE,
            "processes": PROCESSES,
            "bytes": MOST_BYTES[row.what],
            "start": row.at + START_SECONDS,
        }
        room = Room(_MOST_ANSWERS)
        answers: list[Answered] = await asyncio.gather(
            *(profile_task(enter, task, attempt, request, room) for task, attempt in tasks.items())
        )
        await self._store.tell_profile(row.id, state="reading")
        problems = [
            (task, f"{counted(each.left_out, 'rank')} beyond {PROCESSES} of one task were left out.")
            for task, each in zip(tasks, answers, strict=True)
            if each.left_out
        ]
        good: list[tuple[Taken, Any]] = []
        for taken in (each for answer in answers for each in answer.taken):
            found, problem = await self._read(taken, row.what)
            if found is not None:
                good.append((taken, found))
            if problem:
                problems.append((taken.rank, problem))
        doc = ProfileDoc(
            tuple(tasks), len(good), problems=tuple(ProfileProblem(rank, problem) for rank, problem in problems)
        )
        if not good:
            doc = msgspec.structs.replace(doc, problem="Nothing could be read of any process.")
            await self._fail(row.id, doc)
            return
        await self._keep(row, record, doc, good)

    async def _read(self, taken: Taken, what: str) -> tuple[Any, str]:
        if taken.problem:
            return None, taken.problem
        try:
            return await self._context.workers.call(read, taken, what, limits=_READING)
        except LimitExceeded as error:
            return None, f"To read its profile is too much work for the server: {error}."

    async def _keep(self, row: ProfileRow, record: JobRecord, doc: ProfileDoc, good: list[tuple[Taken, Any]]) -> None:
        workers, blobs = self._context.workers, self._blobs()
        bare = [(taken._replace(text="", trace=b""), found) for taken, found in good]
        report, flames = await workers.call(
            report_of, row.what, bare, record.name, _given(record, doc.tasks), limits=_READING
        )
        packed = await asyncio.to_thread(pack, row.id, report, flames, [taken for taken, _ in good])
        doc = msgspec.structs.replace(doc, files=packed.files)
        if not await self._store.tell_profile(row.id, digest=packed.digest, doc=_encoded(doc)):
            return
        await blobs.put(_pieces(packed.content), _MOST_ARCHIVE, workers, packed.digest)
        wanted = await self._store.tell_profile(row.id, size=len(packed.content))
        if wanted and (most := self._context.allowance.profile_bytes):
            await self._store.trim_profiles(row.user, most, row.id)
        if not await self._store.tell_profile(row.id, state="done"):
            await blobs.remove(packed.digest)  # it was removed meanwhile, perhaps before its file was there

    async def _tasks(self, record: JobRecord, names: Sequence[str]) -> dict[str, AttemptId]:
        """The attempts of the named tasks, or of the first running ones."""
        if len(names) > TASKS:
            raise InvalidInput("too-many-tasks", f"At most {TASKS} tasks are profiled together.")
        if not names:
            running = [each for each in await self._store.tasks_of(record.id) if each.state is TaskState.RUNNING]
            if not running:
                raise Conflict("no-running-task", f"{record.name} has no running task to look at.")
            return {f"{each.role}-{each.index}": record.run.attempt_of(each) for each in running[:TASKS]}
        found = {}
        for name in dict.fromkeys(names):
            role, _, index = name.rpartition("-")
            if not role or not index.isascii() or not index.isdigit() or len(index) > 7:
                raise InvalidInput("no-task-name", f"A task is called such as worker-0, not {name[:60]!r}.")
            now, task = await started_task(self._store, record, role, int(index))
            found[f"{role}-{int(index)}"] = now.run.attempt_of(task)
        return found

    async def _row(self, actor: Actor, id: str) -> tuple[ProfileRow, JobRecord, Decision]:
        row = await self._store.profile(id)
        if row is None:
            raise NotFound("no-such-profile", f"There is no profile {id[:60]!r}; corral profile list shows yours.")
        record, decision = await self._context.job_for(actor, row.job, "job.profile")
        return row, record, decision

    async def _member(self, row: ProfileRow, name: str) -> bytes:
        if row.state != "done":
            raise Conflict("no-report", "The profile has no report: it is still being taken, or it failed.")
        path = await self._blobs().fetch(row.digest)
        return await asyncio.to_thread(member_of, str(path), name)

    async def _name(self, job: str) -> str:
        record = await self._store.find_job(job, None)
        return record.name if record else job

    def _view(self, row: ProfileRow, name: str) -> ProfileView:
        doc = ROW_DOC.decode(row.doc)
        state, problem = row.state, doc.problem
        if state in ("taking", "reading") and row.until < self._clock.now():
            state, problem = "failed", _LOST
        starts = row.at + (START_SECONDS if row.what == "torch" else 0)
        return ProfileView(
            row.id, row.job, name, row.what, row.seconds, state, row.taken_by, rfc3339(row.at), rfc3339(starts),
            doc.tasks, doc.ranks, problem, doc.problems, doc.files if state == "done" else (), row.size,
        )  # fmt: skip

    def _blobs(self) -> BlobStore:
        if self._context.profiles is None:
            raise Unavailable("no-blob-store", "Profiles cannot be stored on this server.")
        return self._context.profiles

    async def _close(self) -> None:
        running = list(self._running)
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _check(what: str, seconds: int) -> None:
    most = MOST_SECONDS[what]
    if not min(1, most) <= seconds <= most:
        bounds = f"takes 1 to {most} seconds" if most else "takes no time, so 0 seconds"
        raise InvalidInput("bad-duration", f"A profile of the kind {what} {bounds}, not {seconds}.")


def _given(record: JobRecord, tasks: Iterable[str]) -> dict[str, Given]:
    """What tasks of a job asked for."""
    job = UnifiedJob.model_validate_json(record.doc)
    asked = {task: job.role(task.rpartition("-")[0]).resources for task in tasks}
    return {task: Given(each.cpu_millis, each.memory_bytes) for task, each in asked.items()}


def _encoded(doc: ProfileDoc) -> str:
    return msgspec.json.encode(doc).decode()


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 1 << 20):
        yield content[at : at + (1 << 20)]
