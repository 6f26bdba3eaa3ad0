"""OpenPAI's routes for virtual clusters and SKU types, and for dividing the nodes among virtual clusters."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import Administrator, AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import body_of
from corral.compat.openpai.service.virtual_clusters import check_name

router = late_router()


class Division(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the nodes that a virtual cluster gets, in percent."""

    vc_capacity: float
    vc_max_capacity: float | None = None
    description: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    external_name: Annotated[str, msgspec.Meta(max_length=4096)] = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a virtual cluster accepts jobs: `stopped` or `running`."""

    vc_status: str


@router.get("/virtual-clusters")
async def list_virtual_clusters(request: Request, actor: AnyCaller) -> Json:
    """List the virtual clusters by name; with `nodes` in the query, the devices of each node instead."""
    openpai = openpai_of(request)
    if "nodes" in request.query_params:
        return Json(await openpai.virtual_clusters.devices_by_node(actor))
    return Json(await openpai.virtual_clusters.all(actor))


@router.get("/virtual-clusters/{name}")
async def get_virtual_cluster(request: Request, actor: AnyCaller, name: str) -> Json:
    """Return one virtual cluster."""
    return Json(await openpai_of(request).virtual_clusters.get(actor, name))


@router.put("/virtual-clusters/{name}")
async def put_virtual_cluster(request: Request, actor: Administrator, name: str) -> Json:
    """Create a virtual cluster, or change its part of the nodes."""
    check_name(name)
    asked = await body_of(request, Division)
    made = await openpai_of(request).virtual_clusters.put(
        actor,
        name,
        asked.vc_capacity,
        asked.vc_max_capacity,
        description=asked.description,
        external_name=asked.external_name,
    )
    word = "Create" if made else "Update"
    return _done(f"{word} virtual cluster {name} to capacity {asked.vc_capacity:g} successfully.")


@router.put("/virtual-clusters/{name}/status")
async def put_virtual_cluster_status(request: Request, actor: Administrator, name: str) -> Json:
    """Stop or resume the acceptance of new jobs by a virtual cluster."""
    check_name(name)
    asked = await body_of(request, Status)
    await openpai_of(request).virtual_clusters.set_status(actor, name, asked.vc_status)
    word = "Stop" if asked.vc_status == "stopped" else "Activate"
    return _done(f"{word} virtual cluster {name} successfully.")


@router.delete("/virtual-clusters/{name}")
async def delete_virtual_cluster(request: Request, actor: Administrator, name: str) -> Json:
    """Delete a virtual cluster without jobs."""
    await openpai_of(request).virtual_clusters.remove(actor, name)
    return _done(f"Remove virtual cluster {name} successfully.")


@router.get("/cluster/sku-types")
async def sku_types(request: Request, actor: AnyCaller) -> Json:
    """Return the CPU and memory that come with one device of each model; `vc` limits it to one virtual cluster."""
    return Json(await openpai_of(request).virtual_clusters.sku_types(actor, request.query_params.get("vc", "")))


def _done(message: str) -> Json:
    body: dict[str, Any] = {"status": HTTPStatus.CREATED.value, "message": message}
    return Json(body, status_code=HTTPStatus.CREATED)
