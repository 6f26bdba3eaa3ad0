"""Frameworks as Kubernetes objects: read the job, and write FrameworkController's status of every task attempt.

The launcher's states are FrameworkController's, so each has a name there. Corral's ids stand in for the ConfigMap of an
attempt. Source: FrameworkController, pkg/apis/frameworkcontroller/v1/types.go.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.frameworkcontroller.language.framework import API_VERSION, CREATE, KIND, START, STOP, execution_type
from corral.spec.job import UnifiedJob
from corral.spec.job_objects import NOW, Document, ObjectKind, ObjectState, TaskState, Wish, added, conditions_of
from corral.spec.job_reader import load_job

_WISHES: Final = {CREATE: Wish.HOLD, START: Wish.RUN, STOP: Wish.STOP}
_OF_PHASE: Final = {
    "waiting": "creation-requested", "starting": "preparing", "running": "running", "stopping": "deleting",
    "succeeded": "completed", "failed": "completed", "stopped": "completed",
}  # fmt: skip
COMPLETED: Final = "Completed"
MOST_PLAIN_TASKS: Final = 500
"""Maximum tasks listed uncompressed in an object's status.

An API server accepts objects of at most 1.5 MB.
"""
_ATTRIBUTES: Final = {
    "transient": ["Transient"], "conflict": ["Transient", "Conflict"], "permanent": ["Permanent"],
}  # fmt: skip


class FrameworkKind(ObjectKind):
    """`frameworks.frameworkcontroller.microsoft.com`."""

    group, version = API_VERSION.split("/")
    kind = KIND
    plural = "frameworks"
    holds = True
    wants_tasks = True

    def job(self, document: Document) -> UnifiedJob:
        """The job that a Framework describes, whatever its executionType."""
        spec = document.get("spec")
        if isinstance(spec, dict) and spec.get("executionType") in _WISHES:
            document = {**document, "spec": {**spec, "executionType": START}}
        return load_job(document, filename="")

    def wish(self, document: Document) -> Wish:
        """The state that `executionType` requests."""
        return _WISHES[execution_type(document)]

    def lasting(self, document: Document) -> Any:
        """All fields but executionType, description, and the number of tasks of the first role."""
        spec = document.get("spec")
        if not isinstance(spec, dict):
            return spec
        kept = {key: value for key, value in spec.items() if key not in ("executionType", "description")}
        roles = kept.get("taskRoles")
        if isinstance(roles, list) and roles and isinstance(roles[0], dict):
            first = {key: value for key, value in roles[0].items() if key != "taskNumber"}
            kept["taskRoles"] = [first, *roles[1:]]
        return kept

    def scaled(self, document: Document, replicas: int) -> dict[str, Any]:
        """All roles, the first with another number of tasks, because a merge patch replaces whole lists."""
        roles = document["spec"]["taskRoles"]
        return {"spec": {"taskRoles": [{**roles[0], "taskNumber": replicas}, *roles[1:]]}}

    def targets(self, document: Document, targets: Mapping[str, int]) -> dict[str, Any] | None:
        """None: a Framework has no field for nodes of pods that do not exist yet."""
        return None

    def targets_in(self, document: Document) -> Mapping[str, int]:
        """Always empty."""
        return {}

    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """FrameworkController's status, with the fields that Corral adds."""
        known = document.get("status")
        before = known if isinstance(known, dict) else {}
        conditions = conditions_of(state, document)
        if not state.job:
            return added(state) | {"conditions": conditions}
        now = _state(state.state or _OF_PHASE.get(state.phase, "creation-pending"))
        same = before.get("state") == now and before.get("transitionTime")
        return {
            "startTime": state.created_at,
            "runTime": state.started_at,
            "completionTime": state.ended_at if now == COMPLETED else None,
            "state": now,
            "transitionTime": before["transitionTime"] if same else NOW,
            "retryPolicyStatus": _retries(state.retries, state.counted_retries, state.retry_seconds),
            "attemptStatus": _attempt(state, document),
            **added(state),
            "conditions": conditions,
        }


def _state(state: str) -> str:
    """FrameworkController's name for a state of the launcher: all but Completed begin with Attempt."""
    word = "".join(part.capitalize() for part in state.split("-"))
    return word if word in (COMPLETED, "AttemptCompleted") else f"Attempt{word}"


def _retries(total: int, counted: int, delay: float | None) -> dict[str, Any]:
    return {
        "totalRetriedCount": total,
        "accountableRetriedCount": counted,
        "retryDelaySec": None if delay is None else round(delay),
    }


def _attempt(state: ObjectState, document: Document) -> dict[str, Any]:
    name = (document.get("metadata") or {}).get("name", state.name)
    run = f"{state.job}.{state.attempt}"
    roles: dict[str, list[TaskState]] = {role.name: [] for role in state.roles}
    for task in state.tasks:
        roles.setdefault(task.role, []).append(task)
    ended = None
    if state.exit_code is not None:
        ended = _completion(state.exit_code, state.exit_phrase, state.exit_class, state.exit_message)
        message, role, index = state.trigger
        ended["trigger"] = {
            "message": message,
            "taskRoleName": role or None,
            "taskIndex": index if index >= 0 else None,
        }
    return {
        "id": state.attempt,
        "startTime": state.created_at,
        "runTime": state.started_at,
        "completionTime": state.ended_at,
        "instanceUID": f"{state.attempt}_{run}",
        "configMapName": f"{name}-attempt",
        "configMapUID": run,
        "completionStatus": ended,
        **_told(
            [
                {"name": role, "taskStatuses": [_task(each) for each in sorted(tasks, key=lambda task: task.index)]}
                for role, tasks in roles.items()
            ]
        ),
    }


def _told(roles: list[dict[str, Any]]) -> dict[str, Any]:
    """The tasks' statuses; above MOST_PLAIN_TASKS they are compressed as FrameworkController does."""
    if sum(len(role["taskStatuses"]) for role in roles) <= MOST_PLAIN_TASKS:
        return {"taskRoleStatuses": roles}
    packed = gzip.compress(json.dumps(roles, separators=(",", ":")).encode(), mtime=0)
    return {"taskRoleStatuses": None, "taskRoleStatusesCompressed": b64encode(packed).decode()}


def _task(task: TaskState) -> dict[str, Any]:
    ended = None
    if task.exit_code is not None:
        ended = _completion(task.exit_code, task.exit_phrase, task.exit_class, task.exit_message)
    pod = bool(task.node)
    now = _state(task.state)
    return {
        "index": task.index,
        "startTime": task.created_at,
        "runTime": task.started_at,
        "completionTime": task.ended_at if now == COMPLETED else None,
        "state": now,
        "deletionPending": task.leaving,
        "retryPolicyStatus": _retries(task.retries, task.counted_retries, task.retry_seconds),
        "attemptStatus": {
            "id": task.attempt,
            "startTime": task.created_at,
            "runTime": task.started_at,
            "completionTime": task.ended_at,
            "instanceUID": f"{task.attempt}_{task.attempt_id}" if pod else None,
            "podName": f"corral-{task.attempt_id}" if pod else None,
            "podUID": task.attempt_id if pod else None,
            "podNodeName": task.node.rpartition("/")[2] or None,
            "podIP": task.host or None,
            "podHostIP": None,
            "completionStatus": ended,
        },
    }


def _completion(code: int, phrase: str, kind: str, message: str) -> dict[str, Any]:
    return {
        "code": code,
        "phrase": phrase,
        "type": {"name": "Succeeded" if kind == "succeeded" else "Failed", "attributes": _ATTRIBUTES.get(kind, [])},
        "diagnostics": message,
    }
