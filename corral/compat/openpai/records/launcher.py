"""Convert a stored job to FrameworkLauncher's JSON: Framework requests, statuses and summaries.

There is no YARN application master, so an application is a job attempt and a container a task attempt. Corral has fewer
states than FrameworkLauncher: states of the application master's own work have no counterpart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.terms import milliseconds
from corral.kernel.ids import attempt_id
from corral.model import exits
from corral.model.outcome import Completion, ExitClass
from corral.model.runs import Retries, TaskRun
from corral.model.states import JobState, TaskState
from corral.model.store_writes import JobRecord

_STATES: Final = {
    JobState.CREATION_PENDING: "FRAMEWORK_WAITING",
    JobState.CREATION_REQUESTED: "APPLICATION_WAITING",
    JobState.PREPARING: "APPLICATION_WAITING",
    JobState.RUNNING: "APPLICATION_RUNNING",
    JobState.DELETION_PENDING: "APPLICATION_RETRIEVING_DIAGNOSTICS",
    JobState.DELETING: "APPLICATION_RETRIEVING_DIAGNOSTICS",
    JobState.ATTEMPT_COMPLETED: "APPLICATION_COMPLETED",
    JobState.COMPLETED: "FRAMEWORK_COMPLETED",
}
_TASK_STATES: Final = {
    TaskState.CREATION_PENDING: "TASK_WAITING",
    TaskState.CREATION_REQUESTED: "CONTAINER_REQUESTED",
    TaskState.PREPARING: "CONTAINER_ALLOCATED",
    TaskState.RUNNING: "CONTAINER_RUNNING",
    TaskState.DELETION_PENDING: "CONTAINER_RUNNING",
    TaskState.ATTEMPT_COMPLETED: "CONTAINER_COMPLETED",
    TaskState.COMPLETED: "TASK_COMPLETED",
}
_TYPES: Final = {
    ExitClass.SUCCEEDED: "SUCCEEDED",
    ExitClass.TRANSIENT: "TRANSIENT_NORMAL",
    ExitClass.CONFLICT: "TRANSIENT_CONFLICT",
    ExitClass.PERMANENT: "NON_TRANSIENT",
    ExitClass.UNKNOWN: "UNKNOWN",
}
STOPPED: Final = -7351
_TASK_STOPPED: Final = -7400
_CODES: Final = {
    exits.EXTERNALLY_DELETED: -7110,
    -110: -7112,
    exits.START_TIMED_OUT: -7112,
    exits.START_FAILED_TRANSIENTLY: -7150,
    exits.START_FAILED: -7150,
    -1000: -7110,
    exits.NODE_LOST: -7111,
    exits.PREEMPTED: -7120,
    -1200: -7122,
    -1300: -7122,
    exits.GANG_TIMED_OUT: -7252,
    253: -7103,
    exits.UNDEFINED_NEGATIVE: -7100,
}
"""By OpenPAI's code, FrameworkLauncher's code for ends that neither the program nor a person caused."""
_ENDED: Final = frozenset({JobState.ATTEMPT_COMPLETED, JobState.COMPLETED})


class Launching(msgspec.Struct, frozen=True):
    """A creation of a Framework's next job that is in progress; `id` identifies this try."""

    id: str
    user: str
    asks: str
    """The digest of the requested descriptor."""
    at: float


class Asked(msgspec.Struct, frozen=True):
    """The stored part of a Framework that a client requested."""

    descriptor: dict[str, Any]
    job: str
    """The id of its current job; "" while the job is being created."""
    first_at: float
    last_at: float
    progress: float | None = None
    """The progress that a client reported."""
    migrations: dict[str, dict[str, Any]] = {}
    """By container, the client's migration request."""
    launching: Launching | None = None
    """Set until its next job exists."""
    namespace: str = ""
    """The id of the account in whose namespace it was created; "" is the namespace's name."""


class Framework(msgspec.Struct, frozen=True):
    """A Framework's request, with the record and tasks of its job."""

    name: str
    asked: Asked
    record: JobRecord
    tasks: tuple[TaskRun, ...] = ()
    address: str = ""
    """This server's base URL."""


def framework_state(record: JobRecord) -> str:
    """FrameworkLauncher's state of a job."""
    return _STATES[record.run.state]


def application_code(completion: Completion | None) -> int | None:
    """FrameworkLauncher's exit code of a job attempt."""
    if completion is None:
        return None
    if completion.code in (exits.STOP_REQUESTED, exits.DEADLINE_EXCEEDED):
        return STOPPED
    return _CODES.get(completion.code, completion.code)


def container_code(completion: Completion | None) -> int | None:
    """FrameworkLauncher's exit code of a task attempt."""
    if completion is None:
        return None
    if completion.phrase == exits.MIGRATED:
        return -7153
    if completion.code == exits.ATTEMPT_COMPLETED:
        return -7125
    if completion.code in (exits.STOP_REQUESTED, exits.DELETE_TASK_REQUESTED):
        return _TASK_STOPPED
    return _CODES.get(completion.code, completion.code)


def framework_request(framework: Framework) -> dict[str, Any]:
    """Build a FrameworkRequest."""
    return {
        "frameworkName": framework.name,
        "frameworkDescriptor": framework.asked.descriptor,
        "launchClientType": "UNKNOWN",
        "launchClientHostName": None,
        "launchClientUserName": framework.record.user,
        "firstRequestTimestamp": milliseconds(framework.asked.first_at),
        "lastRequestTimestamp": milliseconds(framework.asked.last_at),
    }


def aggregated_request(framework: Framework) -> dict[str, Any]:
    """Build an AggregatedFrameworkRequest: the request, plus progress overrides and migrations."""
    progress = framework.asked.progress
    return {
        "frameworkRequest": framework_request(framework),
        "overrideApplicationProgressRequest": None if progress is None else {"applicationProgress": progress},
        "migrateTaskRequests": framework.asked.migrations or None,
    }


def framework_status(framework: Framework) -> dict[str, Any]:
    """Build a FrameworkStatus."""
    record, run = framework.record, framework.record.run
    over = run.state in _ENDED
    begun = run.state not in (JobState.CREATION_PENDING,)
    ended = run.completion if over else None
    return {
        "frameworkName": framework.name,
        "frameworkVersion": framework.asked.descriptor["version"],
        "frameworkState": framework_state(record),
        "frameworkRetryPolicyState": _retries(run.retries, framework.asked.descriptor["retryPolicy"]),
        "frameworkCreatedTimestamp": milliseconds(framework.asked.first_at),
        "frameworkCompletedTimestamp": milliseconds(run.ended_at) if run.state is JobState.COMPLETED else None,
        "applicationId": f"application_{record.id}_{run.attempt:04d}" if begun else None,
        "applicationProgress": _progress(framework),
        "applicationTrackingUrl": f"{framework.address}/jobs/{record.id}" if begun else None,
        "applicationLaunchedTimestamp": milliseconds(run.started_at),
        "applicationCompletedTimestamp": milliseconds(run.ended_at) if over else None,
        "applicationExitCode": application_code(ended),
        "applicationExitDiagnostics": None if ended is None else ended.diagnostics or ended.phrase,
        "applicationExitType": None if ended is None else _TYPES[ended.exit_class],
    }


def aggregated_status(framework: Framework) -> dict[str, Any]:
    """Build an AggregatedFrameworkStatus: the status, and that of every task by its role."""
    document = json.loads(framework.record.doc)
    notes = document["metadata"]["annotations"]
    names: Mapping[str, str] = json.loads(notes.get("openpai.corral.dev/roles", "{}"))
    labels: Mapping[str, str] = json.loads(notes.get("openpai.corral.dev/ports", "{}"))
    roles: dict[str, list[dict[str, Any]]] = {role: [] for role in framework.asked.descriptor["taskRoles"]}
    for task in sorted(framework.tasks, key=lambda each: each.index):
        role = names.get(task.role, task.role)
        roles.setdefault(role, []).append(_task(framework, role, task, labels))
    return {
        "frameworkStatus": framework_status(framework),
        "aggregatedTaskRoleStatuses": {
            role: {
                "taskRoleStatus": {
                    "taskRoleName": role,
                    "taskRoleRolloutStatus": None,
                    "frameworkVersion": framework.asked.descriptor["version"],
                },
                "taskStatuses": {
                    "taskRoleName": role,
                    "taskStatusArray": tasks,
                    "frameworkVersion": framework.asked.descriptor["version"],
                },
            }
            for role, tasks in roles.items()
        },
    }


def summarized(framework: Framework) -> dict[str, Any]:
    """Build a SummarizedFrameworkInfo."""
    descriptor, status = framework.asked.descriptor, framework_status(framework)
    roles = descriptor["taskRoles"]
    gpus = sum(role["taskNumber"] * role["taskService"]["resource"]["gpuNumber"] for role in roles.values())
    return {
        "frameworkName": framework.name,
        "frameworkVersion": descriptor["version"],
        "executionType": descriptor["executionType"],
        "frameworkDescription": descriptor["description"],
        "userName": descriptor["user"]["name"],
        "queue": descriptor["platformSpecificParameters"]["queue"],
        "totalGpuNumber": gpus,
        "totalTaskNumber": sum(role["taskNumber"] for role in roles.values()),
        "totalTaskRoleNumber": len(roles),
        "firstRequestTimestamp": milliseconds(framework.asked.first_at),
        "lastRequestTimestamp": milliseconds(framework.asked.last_at),
        **{
            name: status[name]
            for name in (
                "frameworkState",
                "frameworkRetryPolicyState",
                "frameworkCompletedTimestamp",
                "applicationExitCode",
            )
        },
    }


def framework_info(framework: Framework) -> dict[str, Any]:
    """Build a FrameworkInfo: the summary, the request and the status of one Framework."""
    return {
        "summarizedFrameworkInfo": summarized(framework),
        "aggregatedFrameworkRequest": aggregated_request(framework),
        "aggregatedFrameworkStatus": aggregated_status(framework),
    }


def _task(framework: Framework, role: str, task: TaskRun, labels: Mapping[str, str]) -> dict[str, Any]:
    record, placed = framework.record, task.placement if task.holds or task.started_at is not None else None
    said = framework.asked.descriptor["taskRoles"].get(role, {})
    ended = task.completion if task.state in (TaskState.ATTEMPT_COMPLETED, TaskState.COMPLETED) else None
    container = attempt_id(record.id, record.run.attempt, task.role, task.index, task.attempt) if placed else None
    log = f"{framework.address}/api/v3/jobs/{record.id}/tasks/{task.role}/{task.index}/logs"
    return {
        "taskIndex": task.index,
        "taskRoleName": role,
        "taskState": _TASK_STATES[task.state],
        "taskRetryPolicyState": _retries(task.retries, said.get("taskRetryPolicy", {})),
        "taskCreatedTimestamp": milliseconds(task.created_at),
        "taskCompletedTimestamp": milliseconds(task.ended_at) if task.state is TaskState.COMPLETED else None,
        "taskServiceStatus": {"serviceVersion": said.get("taskService", {}).get("version")},
        "containerId": container,
        "containerHost": placed.node.rpartition("/")[2] if placed else None,
        "containerIp": task.host or None,
        "containerPorts": _ports(task.ports, labels),
        "containerGpus": sum(1 << index for index in set(placed.devices)) if placed else None,
        "containerLogHttpAddress": log if placed else None,
        "containerConnectionLostCount": 0 if placed else None,
        "containerIsDecommissioning": False if placed else None,
        "containerLaunchedTimestamp": milliseconds(task.started_at),
        "containerCompletedTimestamp": milliseconds(task.ended_at),
        "containerExitCode": container_code(ended),
        "containerExitDiagnostics": None if ended is None else ended.diagnostics or ended.phrase,
        "containerExitType": None if ended is None else _TYPES[ended.exit_class],
    }


def _ports(ports: Mapping[str, Iterable[int]], labels: Mapping[str, str]) -> str | None:
    """Format ports as `label:1,2;label:3;`."""
    listed = [f"{labels.get(name, name)}:{','.join(map(str, numbers))};" for name, numbers in ports.items()]
    return "".join(listed) or None


def _retries(retries: Retries, policy: Mapping[str, Any]) -> dict[str, int]:
    """Build a RetryPolicyState; retries from before kinds were counted go to `unKnownRetriedCount`."""
    after = retries.after
    return {
        "retriedCount": retries.accountable if policy.get("fancyRetryPolicy") else retries.total,
        "succeededRetriedCount": after.succeeded,
        "transientNormalRetriedCount": after.transient,
        "transientConflictRetriedCount": after.conflict,
        "nonTransientRetriedCount": after.permanent,
        "unKnownRetriedCount": retries.total - after.succeeded - after.transient - after.conflict - after.permanent,
    }


def _progress(framework: Framework) -> float | None:
    """The progress from 0 to 1: the client's report, or else the fraction of tasks that have ended."""
    if framework.asked.progress is not None:
        return framework.asked.progress
    counts = framework.record.run.roles.values()
    total = sum(count.total for count in counts)
    return sum(count.ended for count in counts) / total if total else 0.0


def launcher_status(user: str, address: str, host: str, most_tasks: int, retained: int) -> dict[str, Any]:
    """Build a LauncherStatus, with the fields of FrameworkLauncher's configuration that apply here."""
    return {
        "launcherConfiguration": {
            "hdfsRootDir": "/Launcher",
            "rootAdminUsers": [],
            "applicationTransientConflictMinDelaySec": 60,
            "applicationTransientConflictMaxDelaySec": 900,
            "frameworkCompletedRetainSec": retained,
            "maxTotalTaskNumber": most_tasks,
            "amVersion": 0,
            "amPriority": 1,
            "amContainerMinPort": 1,
            "amAllowNoneGpuJobOnGpuNode": True,
            "webServerBindHost": host,
            "webServerAddress": address,
            "webServerAclEnable": True,
            "webServerAclIgnoreWithoutNamespace": False,
        },
        "loggedInUser": {"name": user},
        "hadoopLibrarySupportsGpu": True,
        "hadoopLibrarySupportsPort": True,
        "serviceHost": host,
        "serviceIp": host,
    }
