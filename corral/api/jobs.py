"""Routes for jobs: submit, list, inspect, change and stop."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from fastapi import Header, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import TIME, After, Index, Limit, Ref, Role, parameters
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput
from corral.model.job_edits import EditView
from corral.model.records import (
    JOB_ORDERS,
    AttemptRecord,
    EventRecord,
    JobFilter,
    JobSummary,
    Page,
    TaskRecord,
)
from corral.model.views import Explanation, JobDetail, JobFile, PlacementRecord, Trial, Validation
from corral.service.jobs.job_tags import LONGEST_TAG, MOST_TAGS
from corral.service.times import read_time

router = router_of("jobs")

_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9._/-]{1,317}", re.ASCII)
_JOB_FILE: Final = {
    "requestBody": {
        "required": True,
        "description": "A job file, short or canonical. Of several documents exactly one may be a job; objects of a "
        "Kubernetes cluster beside it are left out, and named in `notes`.",
        "content": {
            "application/yaml": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}
Set = Annotated[list[str], Query(alias="set", description="A parameter of the job file as NAME=VALUE; repeat it.")]
Many = Annotated[list[str], Query(max_length=20, description="Only jobs with this; repeat it for several.")]
Labels = Annotated[
    list[str], Query(max_length=20, description="Only jobs with this label, as NAME=VALUE; repeat it for several.")
]
Stop = Annotated[bool, Query(description="Stop the job first if it has not ended.")]
InRole = Annotated[str, Query(max_length=200, description="Only tasks of this role.")]
InState = Annotated[str, Query(max_length=200, description="Only tasks in this state of the launcher.")]
Since = Annotated[
    str, Query(alias="createdAfter", max_length=50, description=f"Only jobs submitted after this time. {TIME}")
]
Until = Annotated[
    str, Query(alias="createdBefore", max_length=50, description=f"Only jobs submitted before this time. {TIME}")
]
LeastPriority = Annotated[
    int | None, Query(alias="minPriority", ge=-(10**9), le=10**9, description="Only jobs of this priority and above.")
]
MostPriority = Annotated[
    int | None, Query(alias="maxPriority", ge=-(10**9), le=10**9, description="Only jobs of this priority and below.")
]
Wait = Annotated[
    bool, Query(alias="waitForCapacity", description="Accept what is larger than the whole inventory, and wait for it.")
]
DryRun = Annotated[
    bool,
    Query(alias="dryRun", description="Store nothing; say whether it would start, or refuse what a submit refuses."),
]
DryEdit = Annotated[bool, Query(alias="dryRun", description="Store nothing; say what would change.")]
NoImage = Annotated[
    bool, Query(alias="noImage", description="Ignore the images and run in the node's own environment.")
]
Short = Annotated[bool, Query(description="The short form, which people edit and share.")]
From = Annotated[
    str,
    Query(
        alias="from",
        max_length=300,
        description="Your job that this file comes from; its secrets replace `******`.",
    ),
]
RequestKey = Annotated[
    str, Header(max_length=200, description="Names this submit: sent again, it answers with the first one's job.")
]


_Tags = Annotated[tuple[Annotated[str, msgspec.Meta(max_length=LONGEST_TAG)], ...], msgspec.Meta(max_length=MOST_TAGS)]


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The size to set for an elastic job."""

    replicas: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    role: Annotated[str, msgspec.Meta(max_length=63)] = ""


class TagChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags to add to a job, and tags to remove from it."""

    add: _Tags = ()
    remove: _Tags = ()


class JobEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """New values for a waiting job; a field without a value stays as it is."""

    priority: (
        Annotated[str, msgspec.Meta(max_length=20)] | Annotated[int, msgspec.Meta(ge=-(10**9), le=10**9)] | None
    ) = None
    """A priority class (crit, prod, test, oppo) or a number."""
    max_duration: Annotated[str, msgspec.Meta(max_length=50)] | Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None = (
        None
    )
    """A duration such as 90m or 2h, or seconds; 0 is no limit."""
    queue: Annotated[str, msgspec.Meta(min_length=1, max_length=63)] | None = None


@router.post(
    "/jobs",
    status_code=201,
    responses=answers(JobDetail, 201, text="The job, stored", also=(409, 413))
    | {200: answers(JobDetail | Trial, text="The job of the same Idempotency-Key, or what a dry run found")[200]},
    openapi_extra=_JOB_FILE,
)
async def submit(
    request: Request,
    actor: Caller,
    set_: Set = [],  # noqa: B006 (FastAPI copies it)
    wait_for_capacity: Wait = False,
    dry_run: DryRun = False,
    no_image: NoImage = False,
    code: Annotated[str, Query(pattern="^([0-9a-f]{64})?$", description="The digest of uploaded code.")] = "",
    source: From = "",
    idempotency_key: RequestKey = "",
) -> Json:
    """Submit a job; an answer of 201 means that it is stored and survives a crash of the server."""
    result = await service_of(request).submission.submit(
        actor,
        await request.body(),
        filename="the job file",
        parameters=parameters(set_),
        idempotency_key=idempotency_key,
        wait_for_capacity=wait_for_capacity,
        dry_run=dry_run,
        no_image=no_image,
        code_digest=code,
        file=True,
        source=source,
    )
    if result.detail is None:
        return Json(result.trial)
    return Json(result.detail, 201 if result.created else 200, {"Location": f"/api/v3/jobs/{result.detail.id}"})


@router.post("/validate", responses=answers(Validation, also=(413,)), openapi_extra=_JOB_FILE)
async def validate(request: Request, actor: Caller, set_: Set = [], source: From = "") -> Json:  # noqa: B006
    """Return all problems of a job file, with lines and columns, or its canonical form."""
    body, given = await request.body(), parameters(set_)
    work = service_of(request).submission.validate(
        actor, body, filename="the job file", parameters=given, source=source
    )
    return Json(await cancel_on_disconnect(request, work))


@router.get("/jobs", responses=answers(Page[JobSummary]))
async def list_jobs(
    request: Request,
    actor: Caller,
    state: Many = [],  # noqa: B006
    user: Many = [],  # noqa: B006
    queue: Many = [],  # noqa: B006
    q: Annotated[str, Query(max_length=200, description="A part of the name, or the beginning of the id.")] = "",
    tag: Annotated[str, Query(max_length=200, description="Only jobs with this tag.")] = "",
    label: Labels = [],  # noqa: B006
    arrays: Annotated[bool, Query(description="One line for each array instead of one for each of its jobs.")] = False,
    type_: Annotated[str, Query(alias="type", max_length=100, description="Only jobs of this job type.")] = "",
    min_priority: LeastPriority = None,
    max_priority: MostPriority = None,
    created_after: Since = "",
    created_before: Until = "",
    order: Annotated[str, Query(description=f"One of {', '.join(JOB_ORDERS)}.", max_length=20)] = "newest",
    limit: Limit = 50,
    after: After = "",
) -> Json:
    """List jobs, newest first, filtered and in pages."""
    if order not in JOB_ORDERS:
        raise InvalidInput("invalid-order", f"The order is one of {', '.join(JOB_ORDERS)}.")
    wanted = JobFilter(
        phases=tuple(state),
        users=tuple(user),
        queues=tuple(queue),
        search=q,
        tag=tag,
        labels=tuple(_label(each) for each in label),
        arrays=arrays,
        job_type=type_,
        min_priority=min_priority,
        max_priority=max_priority,
        created_after=read_time("createdAfter", created_after) if created_after else None,
        created_before=read_time("createdBefore", created_before) if created_before else None,
        order=order,
    )
    return Json(await service_of(request).jobs.page(actor, wanted, limit=limit, after=after))


def _label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not _LABEL_NAME.fullmatch(name):
        raise InvalidInput("invalid-label", "A label is asked for as NAME=VALUE, such as team=vision.")
    return name, value


@router.get("/history", responses=answers(Page[JobSummary]))
async def list_history(
    request: Request,
    actor: Caller,
    user: Annotated[str, Query(max_length=200, description="Only this user's jobs.")] = "",
    limit: Limit = 50,
    after: After = "",
) -> Json:
    """List the summaries kept of removed jobs and of jobs past the retention, newest first."""
    return Json(await service_of(request).jobs.history(actor, user=user, limit=limit, after=after))


@router.get("/jobs/{ref}", responses=answers(JobDetail))
async def get_job(request: Request, actor: Caller, ref: Ref) -> Json:
    """Return one job: its document, roles, placement, reasons for waiting, and result."""
    return Json(await service_of(request).jobs.get(actor, ref))


@router.patch(
    "/jobs/{ref}",
    status_code=202,
    responses=answers(EditView, 202, text="What becomes another, unless the job starts this moment", also=(409, 413))
    | {200: answers(EditView, text="What a dry run would change")[200]},
    openapi_extra=json_body(JobEdit),
)
async def edit_job(
    request: Request, actor: Caller, ref: Ref, wait_for_capacity: Wait = False, dry_run: DryEdit = False
) -> Json:
    """Change the priority, maxDuration or queue of a waiting job, which keeps its submission time."""
    asked: JobEdit = read_json(await request.body(), JobEdit)
    found = await service_of(request).job_editor.edit(
        actor,
        ref,
        priority=asked.priority,
        max_duration=asked.max_duration,
        queue=asked.queue,
        wait_for_capacity=wait_for_capacity,
        dry_run=dry_run,
    )
    return Json(found, 200 if dry_run else 202)


@router.delete("/jobs/{ref}", status_code=202, responses=answers(dict[str, Any], 202, text="It goes", also=(409,)))
async def delete_job(request: Request, actor: Caller, ref: Ref, stop: Stop = False) -> Json:
    """Remove an ended job; with `stop=true` a running job is stopped first."""
    await service_of(request).job_commands.delete(actor, ref, stop=stop)
    return Json({}, 202)


@router.get("/jobs/{ref}/document", responses=answers(dict[str, Any]))
async def get_document(request: Request, actor: Caller, ref: Ref, short: Short = False) -> Json:
    """Return the job's canonical document, or its short form."""
    return Json(await service_of(request).jobs.document(actor, ref, short=short))


@router.get("/jobs/{ref}/file", responses=answers(JobFile))
async def get_file(request: Request, actor: Caller, ref: Ref) -> Json:
    """Return the file that the job was submitted as, with its comments, and `******` for each secret in it."""
    return Json(await service_of(request).job_files.get(actor, ref))


@router.get("/jobs/{ref}/tasks", responses=answers(Page[TaskRecord]))
async def list_tasks(
    request: Request,
    actor: Caller,
    ref: Ref,
    role: InRole = "",
    state: InState = "",
    limit: Limit = 100,
    after: After = "",
) -> Json:
    """List the tasks of the job's current attempt."""
    found = await service_of(request).jobs.tasks(actor, ref, role=role, state=state, limit=limit, after=after)
    return Json(found)


@router.get("/jobs/{ref}/tasks/{role}/{index}/attempts", responses=answers(Page[AttemptRecord]))
async def list_attempts(
    request: Request, actor: Caller, ref: Ref, role: Role, index: Index, limit: Limit = 100, after: After = ""
) -> Json:
    """List the attempts of one task, newest first."""
    return Json(await service_of(request).jobs.attempts(actor, ref, role, index, limit=limit, after=after))


@router.get("/jobs/{ref}/events", responses=answers(Page[EventRecord]))
async def list_events(request: Request, actor: Caller, ref: Ref, limit: Limit = 200, after: After = "") -> Json:
    """List the job's events, in order."""
    return Json(await service_of(request).events.of_job(actor, ref, limit=limit, after=after))


@router.get("/jobs/{ref}/placement", responses=answers(Page[PlacementRecord]))
async def list_placement(request: Request, actor: Caller, ref: Ref, limit: Limit = 500, after: After = "") -> Json:
    """List the placement of the job's tasks: node, devices, host, ports, rank."""
    return Json(await service_of(request).jobs.placement(actor, ref, limit=limit, after=after))


@router.get("/jobs/{ref}/explain", responses=answers(Explanation))
async def explain(request: Request, actor: Caller, ref: Ref) -> Json:
    """Explain why a job waits: the binding constraint, the jobs ahead, and changes that would start it."""
    return Json(await service_of(request).explanations.explain(actor, ref))


@router.post("/jobs/{ref}/stop", status_code=202, responses=answers(JobDetail, 202, also=(409,)))
async def stop(request: Request, actor: Caller, ref: Ref) -> Json:
    """Stop the job: its tasks get the stop signal, and are killed after their grace period."""
    return Json(await service_of(request).job_commands.stop(actor, ref), 202)


@router.post("/jobs/{ref}/restart", status_code=202, responses=answers(JobDetail, 202, also=(409,)))
async def restart(request: Request, actor: Caller, ref: Ref) -> Json:
    """Restart the job, whether it runs or has ended."""
    return Json(await service_of(request).job_commands.restart(actor, ref), 202)


@router.post(
    "/jobs/{ref}/scale",
    status_code=202,
    responses=answers(JobDetail, 202, also=(409, 413)),
    openapi_extra=json_body(Scale),
)
async def scale(request: Request, actor: Caller, ref: Ref) -> Json:
    """Set the number of replicas that an elastic job requests, within its bounds."""
    asked: Scale = read_json(await request.body(), Scale)
    return Json(await service_of(request).job_commands.scale(actor, ref, replicas=asked.replicas, role=asked.role), 202)


@router.post("/jobs/{ref}/tags", responses=answers(JobDetail, also=(409, 413)), openapi_extra=json_body(TagChange))
async def change_tags(request: Request, actor: Caller, ref: Ref) -> Json:
    """Add and remove tags of the job, live or ended; the document that the scheduler reads keeps its own."""
    asked: TagChange = read_json(await request.body(), TagChange)
    return Json(await service_of(request).job_tags.change(actor, ref, add=asked.add, remove=asked.remove))
