"""Routes for the runtime in a task: peers, code, reports, checkpoints and progress, with a token of that job."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from fastapi import Query, Request
from fastapi.responses import FileResponse

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.rate_limits import SCALARS_A_MINUTE, CallLimit
from corral.api.routers import router_of
from corral.kernel.ids import AttemptId, JobId
from corral.model.metrics.told_scalars import LONGEST_RUN, LONGEST_TAG, MOST_TOLD, ToldScalar
from corral.model.runs import WorkReport
from corral.model.views import PeersView

router = router_of("runtime", prefix="/runtime")
_DAY: Final = 86_400.0
_ARCHIVE: Final = {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}
_ANSWERS: Final = {status: shown for status, shown in answers(None).items() if status != 200} | {
    200: {"description": "A tar.gz archive", **_ARCHIVE},
}


class CheckpointBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A checkpoint: the task attempt that saved it, and its age in seconds (at most a day)."""

    attempt: Annotated[str, msgspec.Meta(max_length=200)]
    age_seconds: Annotated[float, msgspec.Meta(ge=0, le=_DAY)] = 0.0


Count = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class ProgressBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a program says of its work: the task attempt that it is, how long ago it said it, and the values.

    Every value may be left out. `progress` is the fraction of the work that is done; without it, it is step / steps.
    """

    attempt: Annotated[str, msgspec.Meta(max_length=200)]
    age_seconds: Annotated[float, msgspec.Meta(ge=0, le=_DAY)] = 0.0
    step: Count | None = None
    steps: Annotated[float, msgspec.Meta(gt=0, le=1e15)] | None = None
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    throughput: Count | None = None
    loss: Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)] | None = None
    gradient_noise: Count | None = None
    batch_size: Count | None = None
    active: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    waited: Count | None = None

    def report(self, now: float) -> WorkReport:
        """The report as it is stored."""
        progress = self.progress
        if progress is None and self.step is not None and self.steps is not None:
            progress = min(1.0, self.step / self.steps)
        return WorkReport(
            now - self.age_seconds,
            progress,
            self.step,
            self.steps,
            self.throughput,
            self.loss,
            self.gradient_noise,
            self.batch_size,
            self.active,
            self.waited,
        )


class ScalarBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A value of a curve, and how long before the report it was written, in seconds."""

    run: Annotated[str, msgspec.Meta(max_length=LONGEST_RUN)]
    tag: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TAG)]
    age_seconds: Annotated[float, msgspec.Meta(ge=-60, le=_DAY)]
    value: Annotated[float, msgspec.Meta(ge=-1e308, le=1e308)]


class ScalarsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Values from the event files of a task attempt, and how long ago the report was made."""

    attempt: Annotated[str, msgspec.Meta(max_length=200)]
    scalars: Annotated[list[ScalarBody], msgspec.Meta(max_length=MOST_TOLD)]
    age_seconds: Annotated[float, msgspec.Meta(ge=0, le=_DAY)] = 0.0


@router.get("/peers", responses=answers(PeersView))
async def peers(
    request: Request,
    actor: Caller,
    attempt: Annotated[str, Query(max_length=200, description="The asking task's own attempt id.")] = "",
) -> Json:
    """List the started tasks of the same job attempt, and whether all have started."""
    return Json(await service_of(request).runtime_calls.peers(actor, attempt=attempt))


@router.get("/code", response_class=FileResponse, responses=_ANSWERS)
async def code(request: Request, actor: Caller) -> FileResponse:
    """Return the code archive of the token's job, for tasks that started without it because it is too large."""
    return FileResponse(await service_of(request).runtime_calls.code(actor), media_type="application/gzip")


@router.post(
    "/report",
    status_code=204,
    responses=answers(None, 204, also=(409,)),
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def report(request: Request, actor: Caller) -> Json:
    """Record a report of the runtime: stages passed, the exit pattern that matched."""
    reports: CallLimit = request.app.state.reports
    reports.take(f"{actor.kind}:{actor.job or actor.user}", "reports")
    body: dict[str, Any] = read_json(await request.body(), dict[str, Any])
    await service_of(request).runtime_calls.report(actor, body)
    return no_content()


@router.post(
    "/checkpoint", status_code=204, responses=answers(None, 204, also=(409,)), openapi_extra=json_body(CheckpointBody)
)
async def checkpoint(request: Request, actor: Caller) -> Json:
    """Record that the job saved its work, which is then not lost when the job has to yield."""
    body: CheckpointBody = read_json(await request.body(), CheckpointBody)
    await service_of(request).runtime_calls.checkpointed(actor, attempt=body.attempt, age_seconds=body.age_seconds)
    return no_content()


@router.post(
    "/progress", status_code=204, responses=answers(None, 204, also=(409,)), openapi_extra=json_body(ProgressBody)
)
async def progress(request: Request, actor: Caller) -> Json:
    """Record what the program of a task says of its work: progress, throughput, loss and gradient noise."""
    body: ProgressBody = read_json(await request.body(), ProgressBody)
    report = body.report(request.app.state.clock.now())
    await service_of(request).runtime_calls.work_reported(actor, attempt=body.attempt, report=report)
    return no_content()


@router.post(
    "/scalars", status_code=204, responses=answers(None, 204, also=(409,)), openapi_extra=json_body(ScalarsBody)
)
async def scalars(request: Request, actor: Caller) -> Json:
    """Record scalars of the event files that a task writes for TensorBoard, as curves of its job."""
    body: ScalarsBody = read_json(await request.body(), ScalarsBody)
    calls: CallLimit = request.app.state.scalars

    def count(job: JobId, tasks: int, attempt: AttemptId) -> None:
        calls.take(job, "reports of scalars", tasks * SCALARS_A_MINUTE)
        calls.take(attempt, "reports of scalars")

    told = [ToldScalar(each.run, each.tag, body.age_seconds + each.age_seconds, each.value) for each in body.scalars]
    await service_of(request).runtime_calls.scalars_told(actor, attempt=body.attempt, scalars=told, count=count)
    return no_content()
