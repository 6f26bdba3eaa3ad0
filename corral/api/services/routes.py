"""The API's routes of services: list those of a job, and get an address that opens one."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import Index, Ref, Role
from corral.api.routers import router_of
from corral.api.services.gate import OPEN_PATH
from corral.api.services.origins import origin_for
from corral.model.records import rfc3339
from corral.model.views import JobDetail, OpenedService, ServicesView
from corral.service.jobs.tensorboards import MOST_JOBS

router = router_of("services")

Port = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="The name or number of a port that the job declares.")
]


@router.get("/jobs/{ref}/services", responses=answers(ServicesView))
async def services(request: Request, actor: Caller, ref: Ref) -> Json:
    """List the services of a job: the declared ports of its running tasks, those of the first 200."""
    return Json(await service_of(request).job_services.all(actor, ref))


class TensorBoardBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jobs whose outputs are shown together."""

    jobs: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=200)]], msgspec.Meta(min_length=1, max_length=MOST_JOBS)
    ]


@router.post(
    "/tensorboards",
    status_code=202,
    responses=answers(JobDetail, 202, also=(409, 413, 429)),
    openapi_extra=json_body(TensorBoardBody),
)
async def start_tensorboard(request: Request, actor: Caller) -> Json:
    """Start TensorBoard for the outputs of jobs as a job without devices, or return the one that shows the same."""
    asked: TensorBoardBody = read_json(await request.body(), TensorBoardBody)
    return Json(await service_of(request).tensorboards.start(actor, asked.jobs), 202)


@router.post("/jobs/{ref}/services/{role}/{index}/{port}", responses=answers(OpenedService, also=(409,)))
async def open_service(request: Request, actor: Caller, ref: Ref, role: Role, index: Index, port: Port) -> Json:
    """Return an address that opens a service in a browser: within a minute, and once."""
    ticket = await service_of(request).job_services.ticket(actor, ref, role, index, port)
    origin = origin_for(request, ticket.job)
    return Json(OpenedService(f"{origin}{OPEN_PATH}?ticket={ticket.text}", rfc3339(ticket.expires_at)))
