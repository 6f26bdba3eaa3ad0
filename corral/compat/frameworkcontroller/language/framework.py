"""Translate FrameworkController's `Framework`: task roles, each a pod template with policies.

Corral's launcher follows FrameworkController's rules, so retry and completion policies carry over unchanged, and exit
codes are read by FrameworkController's table. A Framework is a gang, unless its pods ask HiveD for devices and name no
affinity group. Source: microsoft/frameworkcontroller, pkg/apis/frameworkcontroller/v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.frameworkcontroller.language.pod import RESTARTS, Pod, read_pod
from corral.spec.completion_rules import reachable
from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.translation import NAMESPACE_ANNOTATION, Translation, head
from corral.spec.job import FRAMEWORK_CONTROLLER
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.retry_rules import ALWAYS, MOST_RETRIES, retry_policy

API_VERSION: Final = "frameworkcontroller.microsoft.com/v1"
KIND: Final = "Framework"
JOB_TYPE: Final = FRAMEWORK_CONTROLLER
"""The framework that gives tasks FrameworkController's environment."""
BARRIER_FOLDER: Final = "FRAMEWORKBARRIER_DIR"
"""Variable with the folder of the barrier's files."""
FORCED_AFTER: Final = "podGracefulDeletionTimeoutSec"
CREATE, START, STOP = "Create", "Start", "Stop"
_NAME: Final = re.compile("[a-z0-9]{1,63}", re.ASCII)
_NAMED: Final = "1 to 63 lower-case letters and digits"
_JOB_WIDE: Final = ("queue", "priority", "lazyPreemption")


def translate(fields: Fields, translation: Translation) -> None:
    """Fill `translation` with the canonical form of a Framework."""
    fields.ignore(("apiVersion", "kind", "status"))
    metadata, spec = head(fields, translation, f"{API_VERSION} {KIND}")
    given = fields.inner("spec", needed=True)
    if description := given.text("description"):
        metadata["annotations"]["frameworkcontroller.microsoft.com/description"] = description
    _execution(given)
    spec |= {"jobType": JOB_TYPE, "exitTable": "frameworkcontroller", "retryPolicy": _retries(given)}
    roles: list[dict[str, Any]] = []
    pods: list[tuple[Fields, Pod]] = []
    tasks = given.items("taskRoles")
    if not tasks:
        given.problem(("taskRoles",), "missing; a Framework has at least one role")
    for at, task in enumerate(tasks):
        role, pod = _role(task)
        _place(task, role, metadata)
        if role["name"] in {each["name"] for each in roles}:
            task.problem(("name",), f'the role "{role["name"]}" is already there; roles have unique names')
        roles.append(role)
        pods.append((task, pod))
        _origins(translation, at)
    _agree(spec, pods, translation)
    _cells(spec, roles, pods, translation)
    if roles:
        spec["replicaSpec"] = {"role": roles[0]["name"], "replicas": roles[0].pop("replicas")}
    spec["roles"] = roles
    given.done()
    fields.done()
    translation.document.update(metadata=metadata, spec=spec)
    translation.origins |= {
        ("metadata",): ("metadata",),
        ("spec", "retryPolicy"): ("spec", "retryPolicy"),
        ("spec", "retryPolicy", "maxRetries"): ("spec", "retryPolicy", "maxRetryCount"),
        ("spec", "roles"): ("spec", "taskRoles"),
        ("spec", "replicaSpec"): ("spec", "taskRoles", 0, "taskNumber"),
    }


def execution_type(document: Mapping[str, Any]) -> str:
    """The executionType of a Framework: Create, Start or Stop; Start by default."""
    spec = document.get("spec")
    said = spec.get("executionType") if isinstance(spec, dict) else None
    return said if isinstance(said, str) and said in (CREATE, START, STOP) else START


def _execution(given: Fields) -> None:
    if given.text("executionType", START, choices=(CREATE, START, STOP)) != START:
        why = "only a Framework that starts is submitted as a job; Create and Stop are for objects in a cluster"
        given.problem(("executionType",), why)


def _retries(given: Fields) -> dict[str, Any]:
    policy = given.inner("retryPolicy")
    fancy = policy.flag("fancyRetryPolicy", False)
    found = retry_policy(policy.whole("maxRetryCount", 0, least=ALWAYS, most=MOST_RETRIES), fancy=fancy)
    policy.done()
    return found


def _role(given: Fields) -> tuple[dict[str, Any], Pod]:
    """One task role."""
    task = given.inner("task", needed=True)
    pod = read_pod(task.inner("pod", needed=True))
    policy = given.inner("frameworkAttemptCompletionPolicy")
    role: dict[str, Any] = {
        "name": given.matches("name", _NAME, _NAMED),
        "replicas": given.whole("taskNumber", least=0, most=MAX_REPLICAS),
        "completion": {
            "minFailed": reachable(policy.whole("minFailedTaskCount", 0, least=-1)),
            "minSucceeded": reachable(policy.whole("minSucceededTaskCount", 0, least=-1)),
        },
        "retryPolicy": _retries(task),
        **pod.role,
    }
    if not role["replicas"] and "taskNumber" in given:
        given.problem(("taskNumber",), "a role of a job has at least one task; leave the role out")
    if (always := RESTARTS.get(pod.restart)) is not None:
        role["retryPolicy"] = retry_policy(always, fancy=False)
    if pod.deadline is not None:
        role["maxTaskSeconds"] = pod.deadline
    if pod.barrier is not None and pod.barrier.folder:
        role.setdefault("env", {})[BARRIER_FOLDER] = pod.barrier.folder
        if not role.get("command"):
            given.problem(
                ("task", "pod"), "the barrier holds back a command, and there is none; write it beside the image"
            )
    if FORCED_AFTER in task:
        role["kubernetes"] = {**role.get("kubernetes", {}), "forceAfterSeconds": task.whole(FORCED_AFTER, most=10**9)}
    for part in (policy, task, given):
        part.done()
    return {key: value for key, value in role.items() if value not in ({}, [])}, pod


def _place(given: Fields, role: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Fill in FrameworkController's placeholders in image and workingDir; refuse those that differ per task."""
    told = {
        "FC_FRAMEWORK_NAMESPACE": metadata["annotations"].get(NAMESPACE_ANNOTATION, "default"),
        "FC_FRAMEWORK_NAME": metadata["name"],
        "FC_TASKROLE_NAME": role["name"],
        "FC_CONFIGMAP_NAME": f"{metadata['name']}-attempt",
    }
    for field in ("image", "workingDir"):
        for name, value in told.items():
            if field in role:
                role[field] = role[field].replace(f"{{{{{name}}}}}", value)
        if "{{FC_" in role.get(field, ""):
            path = ("task", "pod", "spec", "containers", 0, field)
            given.problem(path, f"{field} is the same for all tasks of a role; this placeholder is not")


def _agree(spec: dict[str, Any], pods: list[tuple[Fields, Pod]], translation: Translation) -> None:
    """Merge the fields that a job has once: the longest grace, queue and priority, one barrier, RDMA."""
    for key in _JOB_WIDE:
        said = [(task, pod.job[key]) for task, pod in pods if key in pod.job and key not in spec]
        if not said:
            continue
        first = said[0][1]
        for task, value in said[1:]:
            if value != first:
                task.problem(("task", "pod"), f"a job has one {key}; another role says {first!r}, this one {value!r}")
        spec[key] = first
        translation.origins["spec", key] = (*said[0][0].path, "task", "pod")
    graces = [pod.grace for _, pod in pods if pod.grace is not None]
    if graces:
        spec["checkpoint"] = {"graceSeconds": max(graces)}
    barriers = [pod.barrier for _, pod in pods if pod.barrier is not None]
    if barriers:
        spec["barrier"] = {"enabled": True, "timeoutSeconds": max(each.timeout for each in barriers)}
    if any(pod.rdma for _, pod in pods):
        spec["network"] = {"rdma": "required"}


def _cells(
    spec: dict[str, Any], roles: list[dict[str, Any]], pods: list[tuple[Fields, Pod]], translation: Translation
) -> None:
    """Set pinned cells and affinity groups: per role where roles differ.

    Otherwise the job has the cell, and all of it is one group. Pods that ask HiveD for devices and name no group are
    placed one by one, so such a Framework is no gang.
    """
    for key in ("pinnedCell", "affinityGroup"):
        said = {at: pod.cells[key] for at, (_, pod) in enumerate(pods) if key in pod.cells}
        if len(set(said.values())) > 1:
            for at, value in said.items():
                if value:
                    roles[at][key] = value
                    translation.origins["spec", "roles", at, key] = (*pods[at][0].path, "task", "pod")
        elif key == "pinnedCell" and said:
            at, spec[key] = next(iter(said.items()))
            translation.origins["spec", key] = (*pods[at][0].path, "task", "pod")
        elif key == "affinityGroup" and set(said.values()) == {""}:
            spec["gang"] = False


def _origins(translation: Translation, at: int) -> None:
    """Record the foreign path of each field of a role."""
    role, task = ("spec", "roles", at), ("spec", "taskRoles", at)
    pod = (*task, "task", "pod")
    container = (*pod, "spec", "containers", 0)
    policy = (*task, "frameworkAttemptCompletionPolicy")
    translation.origins |= {
        role: task,
        (*role, "replicas"): (*task, "taskNumber"),
        (*role, "completion", "minFailed"): (*policy, "minFailedTaskCount"),
        (*role, "completion", "minSucceeded"): (*policy, "minSucceededTaskCount"),
        (*role, "retryPolicy"): (*task, "task", "retryPolicy"),
        (*role, "maxTaskSeconds"): (*pod, "spec", "activeDeadlineSeconds"),
        (*role, "image"): (*container, "image"),
        (*role, "command"): (*container, "command"),
        (*role, "env"): (*container, "env"),
        (*role, "workingDir"): (*container, "workingDir"),
        (*role, "resources"): (*container, "resources"),
        (*role, "imagePullSecrets"): (*pod, "spec", "imagePullSecrets"),
        (*role, "nodeSelector"): (*pod, "spec", "nodeSelector"),
        (*role, "nodes"): (*pod, "spec", "affinity"),
        (*role, "nodes", "tolerations"): (*pod, "spec", "tolerations"),
        (*role, "kubernetes", "podTemplate"): pod,
        (*role, "kubernetes", "forceAfterSeconds"): (*task, "task", FORCED_AFTER),
    }
