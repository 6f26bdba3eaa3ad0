"""HiveD's inspection endpoints, for OpenPAI's pages and for HiveD's clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request

from corral.api.authentication import Caller
from corral.api.json_responses import Json, answers, refused_with
from corral.api.late_routes import late_router, routes_below
from corral.compat.hived.service import HivedInspection

router = late_router(tags=["hived"])

_REFUSED: dict[Any, Any] = {status: refused_with(status) for status in (400, 401, 403, 404, 422, 429, 503)}


class HivedRoutes:
    """HiveD's part of the application; see `Routes`."""

    errors = None

    def __init__(self, part: HivedInspection | None, options: Mapping[str, Any]) -> None:
        """`part` is None where only the OpenAPI document is made. HiveD has no settings here."""
        self._part = part

    def mount(self, app: FastAPI) -> None:
        """Add the inspection endpoints."""
        app.state.hived = self._part
        app.router.routes.extend(routes_below("/v1/inspect", router, response_class=Json))


def _inspection(request: Request) -> HivedInspection:
    part: HivedInspection = request.app.state.hived
    return part


def _answers(schema: dict[str, Any]) -> dict[Any, Any]:
    content = {"application/json": {"schema": schema}}
    return {200: {"description": "HiveD's document", "content": content}, **_REFUSED}


_LIST = _answers({"type": "array", "items": {"type": "object"}})
_OBJECT = answers(dict[str, Any], text="HiveD's document")
GroupName = Annotated[str, Path(min_length=1, max_length=300, description="The affinity group: a job's id.")]
VcName = Annotated[str, Path(min_length=1, max_length=200, description="The virtual cluster: a queue's name.")]


@router.get("/affinitygroups", responses=_OBJECT)
@router.get("/affinitygroups/", include_in_schema=False)
async def inspect_affinity_groups(request: Request, actor: Caller) -> Json:
    """List every affinity group that holds or has reserved devices, in HiveD's format."""
    return Json(await _inspection(request).inspect(actor, "affinitygroups"))


@router.get("/affinitygroups/{name}", responses=_OBJECT)
async def inspect_affinity_group(request: Request, actor: Caller, name: GroupName) -> Json:
    """Return one affinity group that holds or has reserved devices."""
    return Json(await _inspection(request).inspect(actor, f"affinitygroups/{name}"))


@router.get("/clusterstatus", responses=_OBJECT)
@router.get("/clusterstatus/", include_in_schema=False)
async def inspect_cluster_status(request: Request, actor: Caller) -> Json:
    """Return all physical cells, and the cells that each virtual cluster owns, in HiveD's format."""
    return Json(await _inspection(request).inspect(actor, "clusterstatus"))


@router.get("/clusterstatus/physicalcluster", responses=_LIST)
@router.get("/clusterstatus/physicalcluster/", include_in_schema=False)
async def inspect_physical_cluster(request: Request, actor: Caller) -> Json:
    """Return the physical cells, from the top down to the devices."""
    return Json(await _inspection(request).inspect(actor, "clusterstatus/physicalcluster"))


@router.get("/clusterstatus/virtualclusters", responses=_OBJECT)
@router.get("/clusterstatus/virtualclusters/", include_in_schema=False)
async def inspect_virtual_clusters(request: Request, actor: Caller) -> Json:
    """Return the cells that each virtual cluster owns, and its use beyond them."""
    return Json(await _inspection(request).inspect(actor, "clusterstatus/virtualclusters"))


@router.get("/clusterstatus/virtualclusters/{vc}", responses=_LIST)
async def inspect_virtual_cluster(request: Request, actor: Caller, vc: VcName) -> Json:
    """Return the cells of one virtual cluster."""
    return Json(await _inspection(request).inspect(actor, f"clusterstatus/virtualclusters/{vc}"))
