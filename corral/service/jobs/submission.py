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

from corral.frameworks import port_counts
from corral.frameworks.runnable_job import read_runnable_job
from corral.kernel.errors import Conflict, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import devices
from corral.model.inventory import Node
from corral.model.kubernetes_objects import Birth, ObjectLink
from corral.model.messages import array_index, held_by_array, waits_for_jobs
from corral.model.records import JobSummary, TaskCounts, WaitingView, rfc3339
from corral.model.request_builder import gang_terms
from corral.model.requests import GangRequest
from corral.model.runs import JobRun
from corral.model.store_writes import JobRecord, NewJob
from corral.model.views import JobDetail, ProblemView, ReasonsView, ReasonView, Trial, Validation
from corral.service.access.priority_limit import check_priority
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.base import INLINE_BYTES, allowed_to
from corral.service.jobs.capacity import Capacity, capacity_obstacle
from corral.service.jobs.job_detail import HIDDEN, job_detail, reasons_view
from corral.service.jobs.source_file import NOT_KEPT, JobFiles
from corral.service.openpai.list_fields import listing_of
from corral.service.openpai.quota import OpenPaiQuota
from corral.service.storages.browsing import Browsing
from corral.spec.document_splitter import left_out
from corral.spec.errors import Path, Problem, SpecError, did_you_mean
from corral.spec.job import UnifiedJob
from corral.spec.job_parts import Array, Dependency
from corral.spec.job_reader import OwnFile, ReadJob
from corral.spec.openpai.names import (
    DEFAULT_FILES,
    FOLDER,
    JOB_TYPE,
    OWN_TAG_SAID,
    OWN_TAGS,
    PROTOCOL,
    SECRET_PREFIX,
    SSH_KEYS,
    USER,
    VERSION,
)
from corral.spec.openpai.secret_masking import no_secret_because
from corral.spec.openpai.translation import public_keys, secret_name
from corral.storage.code_archives import BLOB_SCHEME
from corral.store.cluster_views import Admission

MAX_ARRAY: Final = 1000
"""Most jobs of one array, which are stored at once."""
MAX_ARRAY_BYTES: Final = 16 * 1024**2
"""Most characters of all documents of an array together, each of which is made and stored."""


EXTERNAL: Final = "external"
"""The `jobType` of jobs whose tasks another controller runs."""
STARTS_NOW: Final = "starts-now"
"""The scheduler's code for a job that the next cycle would start."""
FIT_SECONDS: Final = 5.0
"""Seconds that a positive /fit answer is cached per shape."""
_MAX_FITS: Final = 1000
_LONGEST_NAME: Final = 63
_SSH: Final = '"ssh"'
"""Occurs in the protocol of each job that has the plug-in ssh."""


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


class Submitting(OpenPaiQuota, Browsing, JobFiles):
    """Submit and validate jobs."""

    _fits: set[bytes] = set()  # replaced before anything is added
    _fits_on: tuple[Node, ...] | None = None
    _fits_at = 0.0
    _counted: tuple[tuple[Node, ...], Capacity] | None = None

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
        await self.check(actor, "job.validate", Resource("job"))
        try:
            read = await self._read(actor, text, parameters, filename, source)
        except SpecError as error:
            problems = (msgspec.convert(problem.to_document(), ProblemView) for problem in error.problems)
            return Validation(False, tuple(problems))
        return Validation(True, document=read.job.to_document(), notes=_notes(read))

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
        - `own_secrets`: secrets of an OpenPAI protocol, by their names in it; they belong to this job alone.
        - `unique_name`: which jobs must not have the job's name already; see `NewJob`.
        - `own_tags`: tags by which the server knows the job; its document may have none of their kind.
        - `own_priority`: the priority was granted elsewhere, so maxPriority is not checked.
        - `file`: the submitter's text, to be kept with the document; True means `text`.
        - `source`: the submitter's own job from whose file the text came; it has the secrets of its placeholders.
        - `dry_run`: report the outcome or refuse the job, and store nothing.

        Raises SpecError with every problem, InvalidInput, Forbidden, Conflict (a name taken, an impossible request).
        """
        read = await self._read(actor, text, parameters, filename, source)
        job, own_secrets = await self._as_openpai(actor, _tagged(read.job, own_tags)), {**read.secrets, **own_secrets}
        data = text.encode() if isinstance(text, str) else text
        asked = json.dumps([sorted((parameters or {}).items()), no_image, code_digest, *sorted(own_secrets.items())])
        waits = wait_for_capacity or job.spec.job_type == JOB_TYPE  # OpenPAI's jobs always wait
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
        admission = await self.store.admission()
        decision = await self._check_queue(actor, job, admission)
        if not own_priority:
            check_priority(actor, job.priority, job.spec.queue, admission.most_priority)
        job = await self._in_cells(job, admission)
        job = await self._with_code(actor, self._with_image(job, no_image), code_digest)
        self._check_container(job, admission)
        sealed = await self._sealed_secrets(actor, job, own_secrets, source)
        job, needs = await self._with_dependencies(actor, await self._with_storages(actor, job))
        obstacle = await self._obstacle(actor, job, admission)
        if obstacle and not waits:
            raise Conflict(
                "impossible-request",
                f"{obstacle} Ask for less, or submit it all the same, to wait until it can run (--wait-for-capacity).",
            )
        if dry_run:
            trial = await self._try(actor, job, needs, obstacle)
            return SubmitResult(False, trial=msgspec.structs.replace(trial, notes=notes))
        new = self._new_jobs(actor, job, terms, needs, sealed)
        audit = self.line(
            actor, "job.submit", Resource("job", new[0].id, queue=job.spec.queue), decision, name=job.name
        )
        submitted = (
            await self.store.submit_all(new, audit=audit, most_tasks=self.allowance.tasks, limit=actor.submits)
        )[0]
        record = _as_stored(new[0]) if submitted.created else await self.store.find_job(submitted.id)
        if record is None:
            raise NotFound("job-not-found", f"Job {submitted.id} of this idempotency key has been removed.")
        detail = job_detail(record, [], hide=False, allowed=allowed_to(actor, record))
        detail = msgspec.structs.replace(detail, notes=(*detail.notes, *notes))
        return SubmitResult(submitted.created, detail=detail)

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
        asked["fs_uri"], asked["sealed"] = self.openpai_fs_uri, await self.file_secrets(actor, source)
        if (b"jobName" if isinstance(text, bytes) else "jobName") in text:  # type: ignore[operator]  # OpenPAI's version 1
            asked["folder"] = await self._folder_of(actor)
        try:
            read = await self.run_in_worker(len(text) <= INLINE_BYTES, partial(read_runnable_job, text, **asked))
        except SpecError as error:
            why = await self.why_no_secret(actor, source)
            raise no_secret_because(error, why) if why else error from None
        _refuse_hidden(read.job, filename)
        job = read.job.with_targets({}) if read.job.spec.replica_spec.target_replicas else read.job
        return replace(read, job=job)

    async def _as_openpai(self, actor: Actor, job: UnifiedJob) -> UnifiedJob:
        """Add the submitter's name to a job of OpenPAI, and their public keys if it uses ssh."""
        if job.spec.job_type != JOB_TYPE:
            return job
        files = {DEFAULT_FILES: self.openpai_fs_uri} if self.openpai_fs_uri else {}
        annotations = {**files, **job.metadata.annotations, USER: actor.user}
        annotations.pop(SSH_KEYS, None)
        annotations.pop(FOLDER, None)
        if annotations.get(VERSION) == "1" and (folder := await self._folder_of(actor)) != actor.user:
            annotations[FOLDER] = folder
        if _SSH in annotations.get(PROTOCOL, ""):
            user = await self.store.user(actor.user)
            if keys := public_keys({} if user is None else user.extension):
                annotations[SSH_KEYS] = keys
        return job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": annotations})})

    async def _check_queue(
        self, actor: Actor, job: UnifiedJob, admission: Admission, *, by: Actor | None = None
    ) -> Decision:
        """Check that a user may submit to the job's queue; `by` is the caller where that is not the user.

        Raises InvalidInput `unknown-queue`, Forbidden, Conflict `queue-closed`.
        """
        queue = job.spec.queue
        there = admission.queues or ("default",)
        if queue not in there:
            near = did_you_mean(queue, there) or f"; there are {len(there)} (corral get queue)"
            end = "" if near.endswith("?") else "."
            raise InvalidInput("unknown-queue", f'There is no queue "{queue}"{near}{end}')
        restricted = queue in admission.granted
        resource = Resource("queue", queue, queue=queue, restricted=restricted)
        decision = await self.check(actor, "job.submit", resource, by=by)
        if queue in admission.closed:
            message = f"The queue {queue} takes no new jobs now; choose another, or ask an administrator to open it."
            raise Conflict("queue-closed", message)
        return decision

    async def _obstacle(self, actor: Actor, job: UnifiedJob, admission: Admission) -> str:
        """Why the known machines could never hold the job: counts are checked here, then cells by control."""
        counted = capacity_obstacle(job, self._counting(admission)) if admission.nodes else ""
        bounded = job.spec.queue in admission.bounded
        if counted or not admission.nodes or not (job.total_devices or _names_levels(job) or bounded):
            return counted
        # Only the sign of the priority matters here: it decides whether the job may claim its queue's own cells.
        gang = _gang(job)
        asked = msgspec.structs.replace(gang, priority=min(gang.priority, 0), groups=actor.groups if bounded else ())
        return await self._fit(asked, admission)

    def _counting(self, admission: Admission) -> Capacity:
        if self._counted is None or self._counted[0] is not admission.nodes:
            self._counted = (admission.nodes, Capacity(admission.nodes))
        return self._counted[1]

    async def _try(self, actor: Actor, job: UnifiedJob, needs: tuple[JobId, ...], obstacle: str) -> Trial:
        """The result of a dry run; the scheduler tries the job on a fork of its state."""
        document = job.to_document()
        if obstacle:
            reason = ReasonView("impossible-request", obstacle)
            return Trial(document, would_start=False, reasons=ReasonsView(reason, possible=False))
        if needs:
            wait = _first_wait(needs)
            return Trial(document, would_start=False, reasons=ReasonsView(ReasonView(wait.code, wait.message)))
        asked = _gang(job, user=actor.user, created_at=self.clock.now())
        try:
            found = await self.control.request("/trial", msgspec.to_builtins(asked))
        except Unavailable:
            return Trial(document)
        reasons = reasons_view(found)
        if reasons.binding.code == STARTS_NOW:
            return Trial(document, would_start=True)
        return Trial(document, would_start=False, reasons=reasons)

    async def _fit(self, asked: GangRequest, admission: Admission) -> str:
        """Control's reason why no gang of this shape could ever be held; "" is cached per shape for `FIT_SECONDS`."""
        now = self.clock.now()
        if admission.nodes is not self._fits_on or not 0 <= now - self._fits_at < FIT_SECONDS:
            self._fits, self._fits_on, self._fits_at = set(), admission.nodes, now
        shape = msgspec.json.encode(asked) + admission.bounded.get(asked.queue, "").encode()
        known = self._fits
        if shape in known:
            return ""
        try:
            found = await self.control.request("/fit", msgspec.to_builtins(asked))
        except Unavailable:
            return ""
        if found:
            return str(found["binding"]["message"])
        if len(known) < _MAX_FITS:
            known.add(shape)
        return ""

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
        owner_has = await self.store.use_blob(uri.removeprefix(BLOB_SCHEME), actor.user, self.clock.now())
        if owner_has is None:
            raise InvalidInput("no-such-code", "The code was never uploaded by you; upload it and submit again.")
        return _with_spec(job, code=job.spec.code.model_copy(update={"uri": uri}))

    async def _sealed_secrets(
        self, actor: Actor, job: UnifiedJob, own: Mapping[str, str], source: str
    ) -> dict[str, str]:
        known = {secret_name(name): value for name, value in own.items()}
        asked = {secret.name for role in job.spec.roles for secret in role.secrets}
        names = asked - known.keys()
        if of_job := [
            name for name in names if name.startswith(SECRET_PREFIX)
        ]:  # a stored document came without its file
            given = await self.job_secrets(actor, source)
            known |= {name: given[name] for name in of_job if name in given}
            names -= known.keys()
        if not names:
            return known
        stored = await self.store.secrets(f"user:{actor.user}")
        missing = sorted(names - stored.keys())
        if missing and missing[0].startswith(SECRET_PREFIX):
            name = missing[0].removeprefix(SECRET_PREFIX)[:100]
            why = await self.why_no_secret(actor, source)
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
        return known | {name: self.secret_box.open(f"user:{actor.user}", name, stored[name]) for name in names}

    async def _with_dependencies(self, actor: Actor, job: UnifiedJob) -> tuple[UnifiedJob, tuple[JobId, ...]]:
        found = []
        for need in job.spec.depends_on:
            record = await self.store.find_job(need.job, actor.user)
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
            return [self._new_job(actor, job, terms, needs, opened, self._new_id())]
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
        ids = [self._new_id() for _ in range(size)]
        made = []
        for index, own in enumerate(ids):
            before = (ids[index - parallel],) if parallel and index >= parallel else ()
            child = _array_child(job, index, before)
            first = terms if index == 0 else msgspec.structs.replace(terms, idempotency_key="", file=None)
            waited = f"{job.name}-{index - parallel}" if before else ""
            own_needs = (*needs, *before)
            made.append(self._new_job(actor, child, first, own_needs, opened, own, parent=ids[0], before=waited))
        return made

    def _new_id(self) -> JobId:
        return self._ids.next(int(self.clock.now() * 1000))

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
        now, spec, birth = self.clock.now(), job.spec, terms.birth
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
        return NewJob(
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
            secrets={name: self.secret_box.seal(f"job:{own}", name, value) for name, value in opened.items()},
            file=self.stored_file(own, terms.file, terms.parameters),
            hold="dependency" if needs else "",
            depends_on=needs,
            array_parent=parent,
            unique_name=terms.unique_name,
            openpai=listing_of(job),
            idempotency_key=terms.idempotency_key,
            request_hash=terms.request_hash,
            object=None if birth is None else ObjectLink(birth.ref, own, birth.fingerprint, now),
            external=birth is not None and spec.job_type == EXTERNAL,
            suspended=birth is not None and birth.suspended,
        )


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
    return WaitingView("submitted", "Waits for the scheduler's next look.")


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


def _tagged(job: UnifiedJob, own: Sequence[str]) -> UnifiedJob:
    """The job with the server's own tags.

    Raises InvalidInput `own-tag` if its document has a tag of their kind.
    """
    if any(tag.startswith(OWN_TAGS) for tag in job.spec.tags):
        raise InvalidInput("own-tag", OWN_TAG_SAID)
    return _with_spec(job, tags=[*job.spec.tags, *own]) if own else job


def _array_child(job: UnifiedJob, index: int, before: tuple[JobId, ...]) -> UnifiedJob:
    """One job of an array; `before` are the jobs that must end first because of maxParallel."""
    numbers = {"CORRAL_ARRAY_INDEX": str(index), "CORRAL_ARRAY_SIZE": str(job.spec.array.size)}
    roles = [role.model_copy(update={"env": {**role.env, **numbers}}) for role in job.spec.roles]
    needs = [*job.spec.depends_on, *(Dependency(job=each, condition="ended") for each in before)]
    child = _with_spec(job, roles=roles, depends_on=needs, array=Array())
    return child.model_copy(update={"metadata": job.metadata.model_copy(update={"name": f"{job.name}-{index}"})})


def _gang(job: UnifiedJob, *, user: str = "", created_at: float = 0.0) -> GangRequest:
    """The gang request that the job would have if it were stored."""
    tasks = [TaskKey(role.name, index) for role in job.spec.roles for index in range(job.replicas_of(role.name))]
    return gang_terms(job, port_counts(job)).request(JobId("?"), 0, tasks, user=user, created_at=created_at)


def _names_levels(job: UnifiedJob) -> bool:
    return bool(job.spec.topology.required) or any(role.topology.required for role in job.spec.roles)
