"""The API's routes of services: list those of a job, and get an address that opens one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.parameters import Index, Ref, Role
from corral.api.routers import router_of
from corral.api.services.gate import OPEN_PATH
from corral.api.services.origins import origin_for
from corral.model.records import rfc3339
from corral.model.views import OpenedService, ServicesView

router = router_of("services")

Port = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="The name or number of a port that the job declares.")
]


@router.get("/jobs/{ref}/services", responses=answers(ServicesView))
async def services(request: Request, actor: Caller, ref: Ref) -> Json:
    """List the services of a job: the declared ports of its running tasks, those of the first 200."""
    return Json(await service_of(request).job_services.all(actor, ref))


@router.post("/jobs/{ref}/services/{role}/{index}/{port}", responses=answers(OpenedService, also=(409,)))
async def open_service(request: Request, actor: Caller, ref: Ref, role: Role, index: Index, port: Port) -> Json:
    """Return an address that opens a service in a browser: within a minute, and once."""
    ticket = await service_of(request).job_services.ticket(actor, ref, role, index, port)
    origin = origin_for(request, ticket.job)
    return Json(OpenedService(f"{origin}{OPEN_PATH}?ticket={ticket.text}", rfc3339(ticket.expires_at)))
