"""The job routes of OpenPAI's YARN era, `/api/v1/jobs`, with or without a namespace.

States have FrameworkLauncher's names. Fields of later releases are kept where they do no harm. Reads need a token,
unless the server allows anonymous reads, as OpenPAI did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from fastapi import Path, Request
from starlette.responses import Response

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.language.v1 import OBSOLETE, OBSOLETE_WARNING
from corral.compat.openpai.records.terms import OpenPaiFilter
from corral.compat.openpai.records.views import JobDetail, JobLine
from corral.compat.openpai.routes.anonymous_reads import ANONYMOUS, Reader
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.jobs import Accepted, as_yaml, value_of
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import document_of
from corral.compat.openpai.routes.tasks import folder_address
from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.compat.openpai.service.v1 import LEGACY
from corral.service.actor import Actor

router = late_router()

Name = Annotated[str, Path(max_length=300)]
_MOST: Final = 50_000
_SUB_STATES: Final = {
    "AttemptCreationPending": "FRAMEWORK_WAITING",
    "AttemptCreationRequested": "APPLICATION_WAITING",
    "AttemptPreparing": "APPLICATION_WAITING",
    "AttemptRunning": "APPLICATION_RUNNING",
    "AttemptDeletionPending": "APPLICATION_RETRIEVING_DIAGNOSTICS",
    "AttemptDeleting": "APPLICATION_RETRIEVING_DIAGNOSTICS",
    "AttemptCompleted": "APPLICATION_COMPLETED",
    "Completed": "FRAMEWORK_COMPLETED",
}
_STOPPING: Final = "STOPPING"
_SSH: Final = "ssh"


@router.get("/jobs")
async def list_jobs(request: Request, actor: Reader) -> Json:
    """List all jobs, or those of one user, newest first."""
    user = request.query_params.get("username", "")
    return await _list(request, actor, user)


@router.get("/user/{user}/jobs")
async def list_jobs_of(request: Request, actor: Reader, user: Name) -> Json:
    """List the jobs of one namespace, newest first."""
    return await _list(request, actor, user)


@router.post("/jobs")
async def submit(request: Request, actor: AnyCaller) -> Json:
    """Submit a job under a name that is unique in the cluster."""
    return await _submit(request, actor)


@router.post("/user/{user}/jobs")
async def submit_into(request: Request, actor: AnyCaller, user: Name) -> Json:
    """Submit a job into a namespace."""
    return await _submit(request, actor, user)


@router.get("/jobs/{name}")
async def get_job(request: Request, actor: Reader, name: Name) -> Json:
    """Return one job."""
    return await _get(request, actor, name)


@router.get("/user/{user}/jobs/{name}")
async def get_job_of(request: Request, actor: Reader, user: Name, name: Name) -> Json:
    """Return one job of a namespace."""
    return await _get(request, actor, name, user)


@router.put("/jobs/{name}")
async def put_job(request: Request, actor: AnyCaller, name: Name) -> Json:
    """Submit a job under the name in the URL."""
    return await _submit(request, actor, name=name)


@router.put("/user/{user}/jobs/{name}")
async def put_job_into(request: Request, actor: AnyCaller, user: Name, name: Name) -> Json:
    """Submit a job into a namespace, under the name in the URL."""
    return await _submit(request, actor, user, name)


@router.delete("/jobs/{name}")
async def delete_job(request: Request, actor: AnyCaller, name: Name) -> Json:
    """Stop and remove a job."""
    return await _delete(request, actor, name)


@router.delete("/user/{user}/jobs/{name}")
async def delete_job_of(request: Request, actor: AnyCaller, user: Name, name: Name) -> Json:
    """Stop and remove a job of a namespace."""
    return await _delete(request, actor, name, user)


@router.put("/jobs/{name}/executionType")
async def execute(request: Request, actor: AnyCaller, name: Name) -> Json:
    """Stop or restart a job."""
    return await _execute(request, actor, name)


@router.put("/user/{user}/jobs/{name}/executionType")
async def execute_of(request: Request, actor: AnyCaller, user: Name, name: Name) -> Json:
    """Stop or restart a job of a namespace."""
    return await _execute(request, actor, name, user)


@router.get("/jobs/{name}/config")
async def get_config(request: Request, actor: Reader, name: Name) -> Response:
    """Return the document that a job was submitted as."""
    return await _config(request, actor, name)


@router.get("/user/{user}/jobs/{name}/config")
async def get_config_of(request: Request, actor: Reader, user: Name, name: Name) -> Response:
    """Return the document that a job of a namespace was submitted as."""
    return await _config(request, actor, name, user)


@router.get("/jobs/{name}/ssh")
async def get_ssh(request: Request, actor: Reader, name: Name) -> Json:
    """Return the SSH addresses of a job's tasks."""
    return await _ssh(request, actor, name)


@router.get("/user/{user}/jobs/{name}/ssh")
async def get_ssh_of(request: Request, actor: Reader, user: Name, name: Name) -> Json:
    """Return the SSH addresses of a namespaced job's tasks."""
    return await _ssh(request, actor, name, user)


@router.get("/user/{user}/jobs/{name}/ssh/keyFiles/{file}")
async def get_key(request: Request, actor: AnyCaller, user: Name, name: Name, file: Name) -> Response:
    """Return the private or the public SSH key of a job's tasks."""
    pair = await openpai_of(request).v1.ssh_key(actor, name, user)
    halves = {f"{user}~{name}": pair.private, f"{user}~{name}.pub": f"{pair.public}\n"}
    if file not in halves:
        raise OpenPaiRefusal("NoJobSshInfoError", f"SSH info of job {name[:300]} is not found.")
    return Response(halves[file], media_type="text/plain")


def job_line(line: JobLine) -> dict[str, Any]:
    """Return one entry of the job list in v1's format."""
    told: dict[str, Any] = msgspec.to_builtins(line)
    shown = {
        "name": told["name"],
        "username": told["username"],
        "state": _state(told["state"]),
        "subState": _SUB_STATES[told["subState"]],
        "executionType": told["executionType"],
        "retries": told["retries"],
        "retryDetails": told["retryDetails"],
        "createdTime": told["createdTime"],
        "completedTime": told["completedTime"],
        "appExitCode": told["appExitCode"],
        "virtualCluster": told["virtualCluster"],
        "totalGpuNumber": told["totalGpuNumber"],
        "totalTaskNumber": told["totalTaskNumber"],
        "totalTaskRoleNumber": told["totalTaskRoleNumber"],
    }
    return {**shown, "legacy": True} if LEGACY in line.tags else shown


def job_detail(detail: JobDetail, logs: Mapping[str, str]) -> dict[str, Any]:
    """Return one job in v1's format; `logs` has the URLs of log folders by container."""
    told: dict[str, Any] = msgspec.to_builtins(detail)
    status = told["jobStatus"]
    status["name"] = told["name"]
    status["state"] = _state(status["state"])
    status["subState"] = _SUB_STATES[status["subState"]]
    for role in told["taskRoles"].values():
        for task in role["taskStatuses"]:
            task["containerGpus"] = _bitmap(task["containerGpus"])
            task["containerLog"] = logs.get(task["containerId"] or "", "")
    return {"name": told["name"], "jobStatus": status, "taskRoles": told["taskRoles"]}


def _bitmap(devices: str | None) -> int | None:
    """Return the GPUs of a container as a bit mask: GPUs 0 and 1 are 3."""
    return None if devices is None else sum(1 << int(index) for index in set(devices.split(",")))


def _state(state: str) -> str:
    """Return v1's name of a state; v1 has none for a stopping job, which counts as running."""
    return "RUNNING" if state == _STOPPING else state


async def _list(request: Request, actor: Actor, user: str) -> Json:
    wanted = OpenPaiFilter(users=(user,) if user else (), limit=_MOST)
    found = await openpai_of(request).jobs.lines(actor, wanted)
    return Json([job_line(line) for line in found.data])


async def _submit(request: Request, actor: Actor, namespace: str = "", name: str = "") -> Json:
    v1 = await openpai_of(request).v1.submit(actor, await document_of(request), namespace=namespace, name=name)
    made = v1["jobName"]
    address = str(request.url.replace(query="", fragment=""))
    location = address if name else f"{address.rstrip('/')}/{quote(made, safe='~')}"
    headers = {"Location": location}
    if OBSOLETE in v1:
        headers["X-Warning"] = OBSOLETE_WARNING
    return Json(Accepted(f"update job {made} successfully"), 202, headers)


async def _get(request: Request, actor: Actor, name: str, namespace: str = "") -> Json:
    openpai = openpai_of(request)
    user, found = await openpai.v1.find(actor, *await openpai.v1.place(name, namespace))
    return Json(job_detail(found, await _logs(request, actor, user, found)))


async def _logs(request: Request, actor: Actor, user: str, found: JobDetail) -> dict[str, str]:
    """Return the URL of each container's log folder; an anonymous caller gets none."""
    if actor is ANONYMOUS:
        return {}
    lines = [line for role in found.task_roles.values() for line in role.task_statuses]
    containers = [line.container_id for line in lines if line.container_id]
    folders = await openpai_of(request).logs.folders(actor, user, found.name, containers)
    return {container: folder_address(request, folder) for container, folder in folders.items()}


async def _delete(request: Request, actor: Actor, name: str, namespace: str = "") -> Json:
    openpai = openpai_of(request)
    await openpai.v1.remove(actor, *await openpai.v1.place(name, namespace))
    return Json(Accepted(f"deleted job {name} successfully"), 202)


async def _execute(request: Request, actor: Actor, name: str, namespace: str = "") -> Json:
    openpai = openpai_of(request)
    own, user = await openpai.v1.place(name, namespace)
    await openpai.v1.execute(actor, own, await value_of(request), user)
    return Json(Accepted(f"execute job {name} successfully"), 202)


async def _config(request: Request, actor: Actor, name: str, namespace: str = "") -> Response:
    openpai = openpai_of(request)
    found = await openpai.v1.config(actor, *await openpai.v1.place(name, namespace))
    if "yaml" in request.headers.get("accept", ""):
        return Response(as_yaml(found), media_type="text/yaml; charset=utf-8")
    return Json(found)


async def _ssh(request: Request, actor: Actor, name: str, namespace: str = "") -> Json:
    """Return the tasks that listen for SSH, and the URL of the job's own key if it has one."""
    openpai = openpai_of(request)
    name, namespace = await openpai.v1.place(name, namespace)
    user, found = await openpai.v1.find(actor, name, namespace)
    told = msgspec.to_builtins(found)
    reached = [
        {"id": task["containerId"], "sshIp": task["containerIp"], "sshPort": str(task["containerPorts"][_SSH])}
        for role in told["taskRoles"].values()
        for task in role["taskStatuses"]
        if task["containerId"] and task["containerIp"] and _SSH in task["containerPorts"]
    ]
    if not reached:
        raise OpenPaiRefusal("NoJobSshInfoError", f"SSH info of job {name[:300]} is not found.")
    own = f"{user}~{name}"
    folder = f"{request.base_url}api/v1/user/{quote(user)}/jobs/{quote(name)}/ssh/keyFiles"
    there = await openpai.v1.has_ssh_key(user, name)
    pair = {
        "folderPath": folder,
        "publicKeyFileName": f"{own}.pub",
        "privateKeyFileName": own,
        "privateKeyDirectDownloadLink": f"{folder}/{quote(own, safe='~')}" if there else "",
    }
    return Json({"containers": reached, "keyPair": pair})
