"""FrameworkLauncher's own REST API, such as `/v1/Frameworks`.

A call needs a token. The header `UserName` names the user for whom an administrator's program acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from fastapi import Header, Query, Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.records import launcher as views
from corral.compat.openpai.records.launcher import Framework
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.service.framework_launcher import ACL, CLUSTER, COMPLETED_RETAIN_SECONDS
from corral.kernel.errors import InvalidInput

router = late_router()

AsUser = Annotated[str, Header(alias="UserName", max_length=254)]
OfUser = Annotated[str, Query(alias="UserName", max_length=254)]
_PARTS: Final[dict[str, Callable[[Framework], dict[str, Any]]]] = {
    "FrameworkStatus": views.framework_status,
    "FrameworkRequest": views.framework_request,
    "AggregatedFrameworkStatus": views.aggregated_status,
    "AggregatedFrameworkRequest": views.aggregated_request,
}


@router.get("/Frameworks")
async def list_frameworks(request: Request, actor: AnyCaller, user: OfUser = "") -> Json:
    """List the requested Frameworks, as summaries."""
    found = await openpai_of(request).launcher.all(actor, user, _address(request))
    return Json({"summarizedFrameworkInfos": [views.summarized(each) for each in found]})


@router.put("/Frameworks/{name}")
async def put_framework(request: Request, actor: AnyCaller, name: str, as_user: AsUser = "") -> Json:
    """Launch or change a Framework."""
    body = await _body(request)
    await openpai_of(request).launcher.launch(actor, name, body, as_user=as_user, address=_address(request))
    return _accepted()


@router.get("/Frameworks/{name}")
async def get_framework(request: Request, actor: AnyCaller, name: str) -> Json:
    """Return all information about one Framework."""
    return Json(views.framework_info(await openpai_of(request).launcher.get(actor, name, _address(request))))


@router.delete("/Frameworks/{name}")
async def delete_framework(request: Request, actor: AnyCaller, name: str, as_user: AsUser = "") -> Json:
    """Stop and remove a Framework."""
    await openpai_of(request).launcher.remove(actor, name, as_user=as_user)
    return _accepted()


@router.get("/Frameworks/{name}/{part}")
async def get_framework_part(request: Request, actor: AnyCaller, name: str, part: str) -> Json:
    """Return the status or the request of a Framework, with or without its tasks."""
    view = _PARTS.get(part)
    if view is None:
        raise InvalidInput("no-such-part", f"A Framework has {', '.join(_PARTS)}, and no {part[:60]}.")
    return Json(view(await openpai_of(request).launcher.get(actor, name, _address(request))))


@router.put("/Frameworks/{name}/TaskRoles/{role}/TaskNumber")
async def put_task_number(request: Request, actor: AnyCaller, name: str, role: str, as_user: AsUser = "") -> Json:
    """Set the number of tasks of a role."""
    await openpai_of(request).launcher.rescale(actor, name, role, await _body(request), as_user=as_user)
    return _accepted()


@router.put("/Frameworks/{name}/ExecutionType")
async def put_execution_type(request: Request, actor: AnyCaller, name: str, as_user: AsUser = "") -> Json:
    """Set a Framework's execution type: stop it, or let it run."""
    await openpai_of(request).launcher.execute(actor, name, await _body(request), as_user=as_user)
    return _accepted()


@router.put("/Frameworks/{name}/MigrateTasks/{container}")
async def put_migrate_task(request: Request, actor: AnyCaller, name: str, container: str, as_user: AsUser = "") -> Json:
    """Restart the task of a container on another node."""
    await openpai_of(request).launcher.migrate_task(actor, name, container, await _body(request), as_user=as_user)
    return _accepted()


@router.put("/Frameworks/{name}/ApplicationProgress")
async def put_progress(request: Request, actor: AnyCaller, name: str, as_user: AsUser = "") -> Json:
    """Set the progress of a Framework."""
    await openpai_of(request).launcher.override_progress(actor, name, await _body(request), as_user=as_user)
    return _accepted()


@router.get("/LauncherRequest")
async def get_launcher_request(request: Request, actor: AnyCaller) -> Json:
    """Return the configuration that administrators requested."""
    openpai = openpai_of(request)
    return Json(
        {
            "launchingDataDeploymentVersion": None,
            "launchedDataDeploymentVersion": None,
            "clusterConfiguration": await openpai.launcher.configuration(actor, CLUSTER),
            "aclConfiguration": await openpai.launcher.configuration(actor, ACL),
        }
    )


@router.get("/LauncherStatus")
async def get_launcher_status(request: Request, actor: AnyCaller) -> Json:
    """Return the launcher's configuration."""
    most = openpai_of(request).launcher.most_launched_tasks
    host = request.url.hostname or ""
    return Json(views.launcher_status(actor.user, _address(request), host, most, COMPLETED_RETAIN_SECONDS))


@router.get("/LauncherRequest/ClusterConfiguration")
async def get_cluster_configuration(request: Request, actor: AnyCaller) -> Json:
    """Return the configured GPU types of the nodes."""
    return Json(await openpai_of(request).launcher.configuration(actor, CLUSTER))


@router.put("/LauncherRequest/ClusterConfiguration")
async def put_cluster_configuration(request: Request, actor: AnyCaller) -> Json:
    """Set the GPU types of the nodes."""
    await openpai_of(request).launcher.configure(actor, CLUSTER, await _body(request))
    return _accepted()


@router.get("/LauncherRequest/AclConfiguration")
async def get_acl_configuration(request: Request, actor: AnyCaller) -> Json:
    """Return the write permissions of namespaces."""
    return Json(await openpai_of(request).launcher.configuration(actor, ACL))


@router.put("/LauncherRequest/AclConfiguration")
async def put_acl_configuration(request: Request, actor: AnyCaller) -> Json:
    """Set the write permissions of namespaces; they take effect before the answer."""
    await openpai_of(request).launcher.configure(actor, ACL, await _body(request))
    return Json(None)


async def _body(request: Request) -> Any:
    try:
        return msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput("malformed-body", f"The body is not JSON: {error}.") from None


def _accepted() -> Json:
    return Json(None, 202)


def _address(request: Request) -> str:
    return str(request.base_url).rstrip("/")
