"""Jobs through OpenPAI's REST API: the usual operations, with OpenPAI's names, views and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from corral.compat.openpai.language.names import OWN_TAGS
from corral.compat.openpai.language.protocol import ProtocolError, checked
from corral.compat.openpai.language.secret_masking import fill_in, without_secrets
from corral.compat.openpai.language.translation import OpenPaiJob, to_job, to_protocol
from corral.compat.openpai.records.terms import OpenPaiFilter
from corral.compat.openpai.records.views import JobAttempt, JobDetail, JobEvents, JobLines, RoleLines, TaskDetail
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters, no_attempt, no_job, no_virtual_cluster
from corral.compat.openpai.service.events import events_view
from corral.compat.openpai.service.task_views import roles_of_rows, roles_of_tasks, task_detail
from corral.compat.openpai.service.views import (
    ATTEMPT_KINDS,
    DEMOTED,
    Attempt,
    Shown,
    attempts_told,
    current_attempt,
    job_attempt,
    job_detail,
    job_line,
    seconds_of,
    shown,
)
from corral.compat.openpai.tables.job_lists import OpenPaiLists
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.store_writes import JobRecord
from corral.service.access.job_access import job_resource
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context, json_size
from corral.service.jobs.job_commands import JobCommands
from corral.service.jobs.job_rule import own_tag_said
from corral.service.jobs.submission import Submission
from corral.spec.errors import SpecError
from corral.spec.own_file import OwnFile
from corral.spec.yaml_source import parse_source
from corral.workers.pool import INLINE_BYTES

START, STOP = "START", "STOP"
LONGEST_TAG: Final = 100
_PAGE: Final = 500
"""Job lines made before other coroutines get a turn."""


class OpenPaiJobs:
    """Jobs as in OpenPAI's REST API; every refusal is one of OpenPAI's (`OpenPaiRefusal`)."""

    def __init__(self, context: Context, submission: Submission, job_commands: JobCommands) -> None:
        self._context = context
        self._store = context.store
        self._lists = OpenPaiLists(context.store)
        self._clock = context.clock
        self._submission = submission
        self._job_commands = job_commands

    async def submit(self, actor: Actor, text: bytes | str) -> str:
        """Accept a job of protocol v2, and return its name."""
        try:
            protocol, file = await self._context.run_in_worker(len(text) <= INLINE_BYTES, _read, text)
            job = await self._context.run_in_worker(
                json_size(protocol) <= INLINE_BYTES, partial(to_job, protocol, user=actor.user)
            )
        except SpecError as error:
            raise _invalid_protocol(error) from None
        return await self.submit_job(actor, job, str(protocol["name"]), file=file)

    async def submit_job(
        self, actor: Actor, job: OpenPaiJob, name: str, own_tags: Sequence[str] = (), file: OwnFile | None = None
    ) -> str:
        """Accept a job translated from a file, with the server's own tags, and return its name."""
        queue = job.document["spec"]["queue"]
        admission = await self._store.admission()
        try:
            await self._submission.submit(
                actor,
                json.dumps(job.document),
                wait_for_capacity=True,
                no_image=not admission.container_runtime,
                own_secrets=job.secrets,
                unique_name="ever",
                own_tags=own_tags,
                file=file or False,
            )
        except SpecError as error:
            raise _invalid_protocol(error) from None
        except Forbidden:
            message = f"User {actor.user} is not allowed to do operation in {queue}"
            raise OpenPaiRefusal("ForbiddenUserError", message) from None
        except NotFound as error:
            if error.code == "storage-not-found":
                raise OpenPaiRefusal("NoStorageError", error.message) from None
            raise
        except InvalidInput as error:
            if error.code == "unknown-queue":
                raise no_virtual_cluster(queue, status=400) from None
            raise
        except Conflict as error:
            if error.code == "name-taken":
                raise OpenPaiRefusal("ConflictJobError", f"Job name {actor.user}~{name} already exists.") from None
            raise
        return name

    async def lines(self, actor: Actor, wanted: OpenPaiFilter) -> JobLines:
        """Part of the list of all jobs."""
        await self._context.check(actor, "job.list", Resource("job"))
        found = await self._lists.page(wanted)
        lines = []
        for begin in range(0, len(found.jobs), _PAGE):
            lines += [job_line(job) for job in found.jobs[begin : begin + _PAGE]]
            await asyncio.sleep(0)
        return JobLines(tuple(lines), found.total)

    async def find(self, user: str, name: str) -> JobRecord:
        """The job that was submitted under a name."""
        return (await self._shown(user, name)).record

    async def get(self, actor: Actor, user: str, name: str, attempt: int | None = None) -> JobDetail:
        """A job as it is now, or as it was in one of its attempts."""
        job = await self.readable(actor, user, name)
        tags = await self._store.tags_of(job.record.id)
        number = job.record.run.attempt if attempt is None else attempt
        if number == job.record.run.attempt:
            tasks = await self._store.tasks_of(job.record.id)
            job = await self._demoted(job)
            told = (await self._attempts(job))[-1] if number else current_attempt(job.record)
            return job_detail(job, told, tags, roles_of_tasks(job, tasks))
        found = await self._attempt(job, number)
        return job_detail(job, found, tags, await self._past_roles(job, number))

    async def config(self, actor: Actor, user: str, name: str) -> dict[str, Any]:
        """The protocol that a job was submitted with, its secrets masked."""
        job = await self.readable(actor, user, name)
        try:
            return to_protocol(json.loads(job.record.doc))
        except SpecError:
            raise OpenPaiRefusal("NoJobConfigError", f"Config of job {job.ref} is not found.") from None

    async def ssh(self, actor: Actor, user: str, name: str) -> None:
        """Refuse with NoJobSshInfoError, because no SSH access is stored.

        The ports of OpenPAI's SSH plug-in are in the job's detail.
        """
        job = await self.readable(actor, user, name)
        raise OpenPaiRefusal("NoJobSshInfoError", f"SSH info of job {job.ref} is not found.")

    async def attempts(self, actor: Actor, user: str, name: str) -> tuple[JobAttempt, ...]:
        """All attempts of a job: the latest, then the earlier ones in order, as in OpenPAI."""
        job = await self.readable(actor, user, name)
        *past, latest = [await self._told(job, each) for each in await self._attempts(job)]
        return latest, *past

    async def attempt(self, actor: Actor, user: str, name: str, number: int) -> JobAttempt:
        """One attempt of a job."""
        job = await self.readable(actor, user, name)
        return await self._told(job, await self._attempt(job, number))

    async def task(self, actor: Actor, user: str, name: str, attempt: int, role: str, index: int) -> TaskDetail:
        """One task of one attempt of a job, with all its own attempts."""
        job = await self.readable(actor, user, name)
        own = job.role_of(role)
        if own is None:
            raise _no_task(role, index)
        rows = await self._store.attempts_of(job.record.id, attempt, role=own, index=index)
        task = await self._store.task(job.record.id, own, index) if attempt == job.record.run.attempt else None
        if task is None and not rows:
            raise _no_task(role, index)
        return task_detail(job, attempt, (own, index), task, rows)

    async def events(self, actor: Actor, user: str, name: str, kind: str = "") -> JobEvents:
        """The events of a job, the latest first; if `kind` is given, only those of this type."""
        job = await self.readable(actor, user, name)
        found = events_view(job, await self._store.events_of(job.record.id), self._clock.now(), kind)
        return JobEvents(len(found), found)

    async def execute(self, actor: Actor, user: str, name: str, value: str) -> None:
        """Stop or start a job: START restarts a stopped or ended job, and leaves a running one alone."""
        if value not in (START, STOP):
            raise bad_parameters(f"The value is {START} or {STOP}.")
        job = await self._shown(user, name)
        record = job.record
        with _owners_only(actor, job, "execute"):
            if value == STOP and record.live:
                await self._job_commands.stop(actor, record.id)
            elif value == START and (record.run.stop_requested or not record.live):
                await self._job_commands.restart(actor, record.id)
            else:
                await self._context.check(actor, "job.stop", job_resource(record))

    async def tag(self, actor: Actor, user: str, name: str, tag: str, *, there: bool) -> None:
        """Add a tag to a job, or remove one from it."""
        if not tag or "," in tag or len(tag) > LONGEST_TAG or "\0" in tag:
            raise bad_parameters(f"A tag has 1 to {LONGEST_TAG} characters, and no comma.")
        if tag.startswith(OWN_TAGS):
            raise bad_parameters(own_tag_said(OWN_TAGS))
        job = await self._shown(user, name)
        resource = job_resource(job.record)
        with _owners_only(actor, job, "add tag to" if there else "delete tag from"):
            decision = await self._context.check(actor, "job.tag", resource, tag=tag)
        line = self._context.line(actor, "job.tag", resource, decision, tag=tag, there=there)
        changed = await self._store.change_tag(
            JobId(job.record.id), tag, there=there, actor=actor.user, at=self._clock.now(), audit=line
        )
        if not changed and not there:
            raise OpenPaiRefusal("NoTagError", f"Tag {tag} is not found for job {job.ref} .")

    async def _shown(self, user: str, name: str) -> Shown:
        found = await self._lists.find(user, name)
        if found is None:
            raise no_job(f"{user}~{name}")
        return shown(*found)

    async def readable(self, actor: Actor, user: str, name: str) -> Shown:
        """A job that the actor may read."""
        job = await self._shown(user, name)
        await self._context.check(actor, "job.read", job_resource(job.record))
        return job

    async def _demoted(self, job: Shown) -> Shown:
        """The job with the event that made its current attempt opportunistic; only if it enables lazy preemption."""
        since = job.record.run.placed_at
        if not job.lazy or since is None:
            return job
        events = await self._store.events_of(job.record.id, kinds=(DEMOTED,))
        return job._replace(demoted=events[0]) if events and seconds_of(events[0].at) >= since - 0.001 else job

    async def _attempts(self, job: Shown) -> list[Attempt]:
        """All attempts of a job, in order."""
        record = job.record
        if record.run.attempt == 0:
            return [current_attempt(record)]
        events = await self._store.events_of(record.id, kinds=ATTEMPT_KINDS)
        return attempts_told(record, events, await self._store.attempt_ends(record.id))

    async def _attempt(self, job: Shown, number: int) -> Attempt:
        if not 0 <= number <= job.record.run.attempt:
            raise no_attempt(str(number), job.ref)
        return (await self._attempts(job))[number]

    async def _told(self, job: Shown, attempt: Attempt) -> JobAttempt:
        if attempt.number == job.record.run.attempt:
            return job_attempt(job, attempt, roles_of_tasks(job, await self._store.tasks_of(job.record.id)))
        return job_attempt(job, attempt, await self._past_roles(job, attempt.number))

    async def _past_roles(self, job: Shown, number: int) -> dict[str, RoleLines]:
        return roles_of_rows(job, await self._store.attempts_of(job.record.id, number))


@contextmanager
def _owners_only(actor: Actor, job: Shown, doing: str) -> Iterator[None]:
    """Turn Forbidden and NotFound into OpenPAI's refusals for this job and operation; ignore `job-over`."""
    try:
        yield
    except Forbidden:
        message = f"User {actor.user} is not allowed to {doing} job {job.ref}."
        raise OpenPaiRefusal("ForbiddenUserError", message) from None
    except NotFound:
        raise no_job(job.ref) from None
    except Conflict as error:
        if error.code != "job-over":
            raise


def _read(text: bytes | str) -> tuple[dict[str, Any], OwnFile | None]:
    """Return the checked protocol of a text, and the text without its secrets.

    Raises SpecError, also for a placeholder: the job that has its secret cannot be named here.
    """
    source = parse_source(text, "job.yaml")
    protocol = checked(source)
    fill_in(source, {})
    kept = without_secrets(text.decode() if isinstance(text, bytes) else text, source.data, "job.yaml")
    return protocol, None if kept is None else OwnFile(*kept)


def _invalid_protocol(error: SpecError) -> OpenPaiRefusal:
    message = error.wire if isinstance(error, ProtocolError) else error.message
    return OpenPaiRefusal("InvalidProtocolError", message)


def _no_task(role: str, index: int) -> OpenPaiRefusal:
    return OpenPaiRefusal("NoTaskError", f"Task {role[:200]}-{index} is not found.")
