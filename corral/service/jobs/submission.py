"""Validate and submit jobs, and report every problem before a job is stored.

A stored job is accepted: it is not refused later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from corral.frameworks.runnable_job import read_runnable_job
from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.kernel.units import devices
from corral.model.compile_caches import cache_terms, kept_by_default
from corral.model.kubernetes_objects import Birth, ObjectLink
from corral.model.messages import array_index, held_by_array, waits_for_jobs
from corral.model.records import JobSummary, TaskCounts, WaitingView, rfc3339
from corral.model.runs import JobRun
from corral.model.store_writes import JobRecord, NewJob
from corral.model.views import JobDetail, ProblemView, Trial, Validation
from corral.service.access.job_access import allowed_to
from corral.service.access.priority_limit import check_priority
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.feasibility import Feasibility
from corral.service.jobs.job_detail import HIDDEN, job_detail
from corral.service.jobs.job_rule import JobRules, own_tag_said
from corral.service.jobs.source_file import NOT_KEPT, JobFiles
from corral.service.storages.grants import Storages
from corral.service.usage.budgets import Budgets
from corral.spec.dialects.registry import of_job_type, own_secret
from corral.spec.document_splitter import left_out
from corral.spec.errors import Path, Problem, SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_parts import Array, Dependency
from corral.spec.job_reader import ReadJob
from corral.spec.own_file import OwnFile, no_secret_because
from corral.storage.code_archives import BLOB_SCHEME
from corral.store.cluster_views import Admission
from corral.workers.pool import INLINE_BYTES

MAX_ARRAY: Final = 1000
"""Most jobs of one array, which are stored at once."""
MAX_ARRAY_BYTES: Final = 16 * 1024**2
"""Most characters of all documents of an array together, each of which is made and stored."""
EXTERNAL: Final = "external"
"""The `jobType` of jobs whose tasks another controller runs."""
_LONGEST_NAME: Final = 63


class SubmitResult(msgspec.Struct, frozen=True):
    """The submitted job, or the result of a dry run.

    `created` is False when the idempotency key or the object had created the job before.
    """

    created: bool
    detail: JobDetail | None = None
    trial: Trial | None = None


class _Terms(msgspec.Struct, frozen=True):
    idempotency_key: str
    request_hash: str
    wait_for_capacity: bool
    no_image: bool
    code_digest: str
    birth: Birth | None = None
    unique_name: str = "live"
    file: OwnFile | None = None
    parameters: Mapping[str, str] = {}


class Submission:
    """Submit and validate jobs."""

    def __init__(
        self,
        context: Context,
        feasibility: Feasibility,
        storages: Storages,
        job_files: JobFiles,
        rules: JobRules,
        budgets: Budgets,
    ) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._feasibility = feasibility
        self._storages = storages
        self._job_files = job_files
        self._rules = rules
        self._budgets = budgets

    async def validate(
        self,
        actor: Actor,
        text: bytes | str,
        *,
        filename: str = "job.yaml",
        parameters: Mapping[str, str] | None = None,
        source: str = "",
    ) -> Validation:
        """Every problem of a document, or its canonical form; `source` as in `submit`."""
        await self._context.check(actor, "job.validate", Resource("job"))
        try:
            read = await self._read(actor, text, parameters, filename, source)
        except SpecError as error:
            problems = (msgspec.convert(problem.to_document(), ProblemView) for problem in error.problems)
            return Validation(False, tuple(problems))
        admission = await self._store.admission()
        notes = (*_notes(read), *self._cache_note(read.job, admission))
        return Validation(True, document=read.job.to_document(), notes=notes)

    async def submit(
        self,
        actor: Actor,
        text: bytes | str,
        *,
        filename: str = "job.yaml",
        parameters: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        wait_for_capacity: bool = False,
        dry_run: bool = False,
        no_image: bool = False,
        code_digest: str = "",
        birth: Birth | None = None,
        own_secrets: Mapping[str, str] = {},
        unique_name: str = "live",
        own_tags: Sequence[str] = (),
        own_priority: bool = False,
        file: OwnFile | bool = False,
        source: str = "",
    ) -> SubmitResult:
        """Accept a job: it is stored when this returns.

        - `birth`: the Kubernetes object that the job is created from.
        - `own_secrets`: secrets of a document in a dialect, by their names in it; they belong to this job alone.
        - `unique_name`: which jobs must not have the job's name already; see `NewJob`.
        - `own_tags`: tags by which the server knows the job; its document may have none of their kind.
        - `own_priority`: the priority was granted elsewhere, so maxPriority is not checked.
        - `file`: the submitter's text, to be kept with the document; True means `text`.
        - `source`: the submitter's own job from whose file the text came; it has the secrets of its placeholders.
        - `dry_run`: report the outcome or refuse the job, and store nothing.

        Raises SpecError with every problem, InvalidInput, Forbidden, Conflict (a name taken, an impossible request).
        """
        read = await self._read(actor, text, parameters, filename, source)
        job = await self._rules.complete(actor, self._tagged(read.job, own_tags))
        own_secrets = {**read.secrets, **own_secrets}
        data = text.encode() if isinstance(text, str) else text
        asked = json.dumps([sorted((parameters or {}).items()), no_image, code_digest, *sorted(own_secrets.items())])
        waits = wait_for_capacity or self._rules.always_waits(job)
        terms = _Terms(
            idempotency_key,
            hashlib.sha256(data + b"\0" + asked.encode()).hexdigest(),
            waits,
            no_image,
            code_digest,
            birth,
            unique_name,
            (read.file if file else None) if isinstance(file, bool) else file,
            parameters or {},
        )
        notes = (*_notes(read), *((NOT_KEPT,) if file is True and read.file is None else ()))
        if birth is not None and job.is_array:
            raise InvalidInput("array-object", "An object is one job; submit an array with `corral submit`.")
        admission = await self._store.admission()
        decision = await self._feasibility.check_queue(actor, job, admission)
        if not own_priority:
            check_priority(actor, job.priority, job.spec.queue, admission.most_priority)
        job = await self._rules.admit(job, admission)
        job = await self._with_code(actor, self._with_image(job, no_image), code_digest)
        self._check_container(job, admission)
        sealed = await self._sealed_secrets(actor, job, own_secrets, source)
        job, needs = await self._with_dependencies(actor, await self._storages.for_job(actor, job))
        obstacle = await self._feasibility.obstacle(actor, job, admission, waits=waits)
        if obstacle and not waits:
            raise Conflict(
                "impossible-request",
                f"{obstacle} Ask for less, or submit it to wait until it can run (--wait-for-capacity).",
            )
        budgets = await self._budgets.of_job(job.spec.queue, actor.user) if admission.has_budgets else ()
        if dry_run:
            notes = (*notes, *self._cache_note(job, admission), *self._budgets.trial(budgets, actor.user, None, job))
            trial = await self._feasibility.trial(actor, job, _first_wait(needs) if needs else None, obstacle)
            return SubmitResult(False, trial=msgspec.structs.replace(trial, notes=notes))
        new = self._new_jobs(actor, job, terms, needs, sealed)
        audit = self._context.line(
            actor, "job.submit", Resource("job", new[0].id, queue=job.spec.queue), decision, name=job.name
        )
        submitted = (
            await self._store.submit_all(
                new, audit=audit, most_tasks=self._context.allowance.tasks, limit=actor.submits, budgets=budgets
            )
        )[0]
        record = _as_stored(new[0]) if submitted.created else await self._store.find_job(submitted.id)
        if record is None:
            raise NotFound("job-not-found", f"Job {submitted.id} of this idempotency key has been removed.")
        detail = job_detail(record, [], hide=False, allowed=allowed_to(actor, record))
        detail = msgspec.structs.replace(detail, notes=(*detail.notes, *notes, *submitted.notes))
        return SubmitResult(submitted.created, detail=detail)

    def _cache_note(self, job: UnifiedJob, admission: Admission) -> tuple[str, ...]:
        """What a default of the queue or server keeps of the job's compiled code; nothing where the job decides."""
        of_queue, of_server = admission.compile_cache.get(job.spec.queue), self._context.allowance.compile_cache
        terms = cache_terms(job.spec.compile_cache.share, of_queue, of_server)
        if terms.source == "job" or terms.share == "none":
            return ()
        return (kept_by_default(terms),)

    async def _read(
        self,
        actor: Actor,
        text: bytes | str,
        parameters: Mapping[str, str] | None,
        filename: str,
        source: str,
    ) -> ReadJob:
        """Read the job of a document, without the targets of a job that it was copied from.

        A large document is read by a worker.
        """
        asked: dict[str, Any] = {"parameters": parameters, "filename": filename, "user": actor.user}
        asked["sealed"] = await self._job_files.file_secrets(actor, source)
        asked |= await self._rules.reader_options(actor, text)
        try:
            read = await self._context.run_in_worker(
                len(text) <= INLINE_BYTES, partial(read_runnable_job, text, **asked)
            )
        except SpecError as error:
            why = await self._job_files.why_no_secret(actor, source)
            raise no_secret_because(error, why) if why else error from None
        _refuse_hidden(read.job, filename)
        job = read.job.with_targets({}) if read.job.spec.replica_spec.target_replicas else read.job
        return replace(read, job=job)

    def _tagged(self, job: UnifiedJob, own: Sequence[str]) -> UnifiedJob:
        """The job with the server's own tags.

        Raises InvalidInput `own-tag` if its document has a tag of their kind.
        """
        prefix = next((kept for kept in map(self._rules.own_tags, job.spec.tags) if kept), "")
        if prefix:
            raise InvalidInput("own-tag", own_tag_said(prefix))
        return _with_spec(job, tags=[*job.spec.tags, *own]) if own else job

    def _with_image(self, job: UnifiedJob, no_image: bool) -> UnifiedJob:
        if not no_image:
            return job
        roles = [role.model_copy(update={"image": ""}) for role in job.spec.roles]
        return _with_spec(job, roles=roles)

    def _check_container(self, job: UnifiedJob, admission: Admission) -> None:
        images = [role.image for role in job.spec.roles if role.image]
        if images and not admission.container_runtime:
            raise Conflict(
                "no-container-runtime",
                f"The job names the image {images[0][:200]}, and no container runtime is here; "
                "install Docker or Podman, or submit it without the image (--no-image).",
            )

    async def _with_code(self, actor: Actor, job: UnifiedJob, digest: str) -> UnifiedJob:
        uri = job.spec.code.uri
        if digest:
            uri = BLOB_SCHEME + digest
        if not uri:
            return job
        if not uri.startswith(BLOB_SCHEME):
            if "://" in uri:
                return job
            raise InvalidInput(
                "code-not-uploaded",
                f"The code folder {uri[:200]} is on your machine; the command line and the SDK upload it when they submit.",
            )
        owner_has = await self._store.use_blob(uri.removeprefix(BLOB_SCHEME), actor.user, self._clock.now())
        if owner_has is None:
            raise InvalidInput("no-such-code", "The code was never uploaded by you; upload it and submit again.")
        return _with_spec(job, code=job.spec.code.model_copy(update={"uri": uri}))

    async def _sealed_secrets(
        self, actor: Actor, job: UnifiedJob, own: Mapping[str, str], source: str
    ) -> dict[str, str]:
        dialect = of_job_type(job.spec.job_type)
        prefix = "" if dialect is None else dialect.secret_prefix
        known = {f"{prefix}{name}": value for name, value in own.items()}
        asked = {secret.name for role in job.spec.roles for secret in role.secrets}
        names = asked - known.keys()
        if of_job := [name for name in names if own_secret(name)]:  # a stored document came without its file
            given = await self._job_files.job_secrets(actor, source)
            known |= {name: given[name] for name in of_job if name in given}
            names -= known.keys()
        if not names:
            return known
        stored = await self._store.secrets(f"user:{actor.user}")
        missing = sorted(names - stored.keys())
        if missing and (name := own_secret(missing[0])[:100]):
            why = await self._job_files.why_no_secret(actor, source)
            raise InvalidInput(
                "unknown-secret",
                f"The document needs the secret {name} of the job that it came from{why and f': {why}'}; name that job, "
                "if it is yours (`corral submit FILE --from JOB`).",
            )
        if missing:
            raise InvalidInput(
                "unknown-secret",
                f"You have no secret called {missing[0][:100]}; store it with `corral secret set NAME`.",
            )
        return known | {name: self._context.secret_box.open(f"user:{actor.user}", name, stored[name]) for name in names}

    async def _with_dependencies(self, actor: Actor, job: UnifiedJob) -> tuple[UnifiedJob, tuple[JobId, ...]]:
        found = []
        for need in job.spec.depends_on:
            record = await self._store.find_job(need.job, actor.user)
            if record is None:
                raise InvalidInput(
                    "unknown-dependency", f"There is no job {need.job[:100]} that this one could wait for."
                )
            found.append(need.model_copy(update={"job": record.id}))
        if not found:
            return job, ()
        return _with_spec(job, depends_on=found), tuple(JobId(need.job) for need in found)

    def _new_jobs(
        self, actor: Actor, job: UnifiedJob, terms: _Terms, needs: tuple[JobId, ...], opened: dict[str, str]
    ) -> list[NewJob]:
        if not job.is_array:
            return [self._new_job(actor, job, terms, needs, opened, self._context.new_job_id())]
        size, parallel = job.spec.array.size, job.spec.array.max_parallel
        if size > MAX_ARRAY:
            raise InvalidInput("array-too-large", f"An array has at most {MAX_ARRAY} jobs; split it.")
        if size * len(job.to_json()) > MAX_ARRAY_BYTES:
            shown = MAX_ARRAY_BYTES // 1024**2
            raise InvalidInput(
                "array-too-large",
                f"The documents of all jobs of an array have {shown} MiB at most; put large things in code or inputs.",
            )
        if len(f"{job.name}-{size - 1}") > _LONGEST_NAME:
            raise InvalidInput(
                "name-too-long", f"The jobs of an array are called {job.name}-0 and so on; choose a shorter name."
            )
        ids = [self._context.new_job_id() for _ in range(size)]
        made = []
        for index, own in enumerate(ids):
            before = (ids[index - parallel],) if parallel and index >= parallel else ()
            child = _array_child(job, index, before)
            first = terms if index == 0 else msgspec.structs.replace(terms, idempotency_key="", file=None)
            waited = f"{job.name}-{index - parallel}" if before else ""
            own_needs = (*needs, *before)
            made.append(self._new_job(actor, child, first, own_needs, opened, own, parent=ids[0], before=waited))
        return made

    def _new_job(
        self,
        actor: Actor,
        job: UnifiedJob,
        terms: _Terms,
        needs: tuple[JobId, ...],
        opened: dict[str, str],
        own: JobId,
        parent: str = "",
        before: str = "",
    ) -> NewJob:
        now, spec, birth = self._clock.now(), job.spec, terms.birth
        tags = (*spec.tags, f"array:{parent}") if parent else tuple(spec.tags)
        summary = JobSummary(
            own,
            job.name,
            actor.user,
            spec.queue,
            job.priority,
            spec.job_type,
            "waiting",
            rfc3339(now),
            tasks=TaskCounts(job.total_tasks, job.total_tasks),
            devices=devices(job.device_millis),
            waiting=_first_wait(needs, job.name, before),
            tags=tags,
        )
        new = NewJob(
            id=own,
            user=actor.user,
            name=job.name,
            queue=spec.queue,
            priority=job.priority,
            doc=job.to_json(),
            summary=summary,
            created_at=now,
            job_type=spec.job_type,
            tags=tags,
            secrets={name: self._context.secret_box.seal(f"job:{own}", name, value) for name, value in opened.items()},
            file=self._job_files.sealed(own, terms.file, terms.parameters),
            hold="dependency" if needs else "",
            depends_on=needs,
            array_parent=parent,
            unique_name=terms.unique_name,
            idempotency_key=terms.idempotency_key,
            request_hash=terms.request_hash,
            object=None if birth is None else ObjectLink(birth.ref, own, birth.fingerprint, now),
            external=birth is not None and spec.job_type == EXTERNAL,
            suspended=birth is not None and birth.suspended,
        )
        return self._rules.stored(new, job)


def _notes(read: ReadJob) -> tuple[str, ...]:
    return (left_out(read.others),) if read.others else ()


def _as_stored(new: NewJob) -> JobRecord:
    """The record of a job that was just stored, built without reading the store."""
    return JobRecord(
        id=new.id,
        name=new.name,
        user=new.user,
        queue=new.queue,
        priority=new.priority,
        job_type=new.job_type,
        phase=new.summary.state,
        created_at=new.created_at,
        started_at=None,
        ended_at=None,
        revision=0,
        doc=new.doc,
        run=JobRun(job=new.id, created_at=new.created_at, hold=new.hold),
        summary=new.summary,
        live=True,
        array_parent=new.array_parent,
    )


def _first_wait(needs: tuple[JobId, ...], name: str = "", before: str = "") -> WaitingView:
    """The wait reason of a new job; `before` is the job of its array that must end first."""
    if before and len(needs) == 1:
        return WaitingView("dependency", held_by_array(before, array_index(name) - array_index(before)))
    if needs:
        return WaitingView("dependency", waits_for_jobs((), len(needs)))
    return WaitingView("submitted", "Waits for the scheduler's next cycle.")


def _with_spec(job: UnifiedJob, **changes: Any) -> UnifiedJob:
    return job.model_copy(update={"spec": job.spec.model_copy(update=changes)})


def _refuse_hidden(job: UnifiedJob, filename: str) -> None:
    """Refuse values that stand for hidden values of another user's job.

    Raises SpecError with each.
    """
    named: list[tuple[Path, str]] = [
        (("spec", "roles", role.name, "env", key), value) for role in job.spec.roles for key, value in role.env.items()
    ]
    named += [(("spec", "parameters", key), str(value)) for key, value in job.spec.parameters.items()]
    problems = [
        Problem(f'"{HIDDEN}" stands for a value of another\'s job; write your own', path, filename=filename)
        for path, value in named
        if value == HIDDEN
    ]
    if problems:
        raise SpecError(problems)


def _array_child(job: UnifiedJob, index: int, before: tuple[JobId, ...]) -> UnifiedJob:
    """One job of an array; `before` are the jobs that must end first because of maxParallel."""
    numbers = {"CORRAL_ARRAY_INDEX": str(index), "CORRAL_ARRAY_SIZE": str(job.spec.array.size)}
    roles = [role.model_copy(update={"env": {**role.env, **numbers}}) for role in job.spec.roles]
    needs = [*job.spec.depends_on, *(Dependency(job=each, condition="ended") for each in before)]
    child = _with_spec(job, roles=roles, depends_on=needs, array=Array())
    return child.model_copy(update={"metadata": job.metadata.model_copy(update={"name": f"{job.name}-{index}"})})
