"""The framework `frameworkcontroller`: gives tasks the variables and files of FrameworkController.

These are `FC_…` variables, labels and annotations; `$(NAME)` in commands and variables, expanded as in Kubernetes; and
`{{FC_…}}` anywhere in the pod. If the role had FrameworkController's barrier, its files are written to the folder that
the role names. Source: FrameworkController, pkg/apis (constants), pkg/barrier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.compat.frameworkcontroller.language.container import TASK
from corral.compat.frameworkcontroller.language.framework import BARRIER_FOLDER, JOB_TYPE
from corral.frameworks.base import Finding, Framework, Gang, TaskCommand
from corral.frameworks.references import host_of
from corral.kernel.ids import TaskKey
from corral.model.placement import TaskPlacement
from corral.spec.dialects.translation import NAMESPACE_ANNOTATION

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

_LABELS: Final = ("FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX")
_PLACEHOLDER: Final = re.compile(r"\{\{(FC_[A-Z_]+)\}\}", re.ASCII)
_VARIABLE: Final = re.compile(r"\$(?:(\$)|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))", re.ASCII)
_MOST_PEERS: Final = 1000
"""The most tasks for which FB_FRAMEWORK lists addresses; the size of a variable is limited."""
_LEAVE_FILES: Final = (
    'printf %s "$FB_INJECTOR" >"$FRAMEWORKBARRIER_DIR/injector.sh" && '
    'printf %s "$FB_FRAMEWORK" >"$FRAMEWORKBARRIER_DIR/framework.json" && exec "$@"'
)


class FrameworkController(Framework):
    """`jobType: frameworkcontroller`: runs the tasks of a Framework as FrameworkController does."""

    job_type = JOB_TYPE

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """A role without a command runs its image's entry point, so it needs an image."""
        findings = list(super().check(job))
        for index, role in enumerate(job.spec.roles):
            if not role.command and not role.image:
                findings.append((("spec", "roles", index, "command"), "missing; say what the role runs, or an image"))
        return tuple(findings)

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The barrier's variables: each role's addresses by task index, and the script that exports them."""
        if BARRIER_FOLDER not in gang.role(task).env:
            return {}
        peers = _peers(gang)
        told = {f"FB_{role.upper()}_IPS": ",".join(hosts) for role, hosts in peers.items()}
        few = sum(map(len, peers.values())) <= _MOST_PEERS
        return told | {"FB_INJECTOR": _injector(peers), "FB_FRAMEWORK": _framework(gang, peers) if few else "{}"}

    def render(self, gang: Gang, task: TaskPlacement, attempt: int = 0) -> TaskCommand:
        """Build the start of a task, with FrameworkController's placeholders and variables expanded."""
        plain = super().render(gang, task, attempt)
        role, told = gang.role(task), variables(gang, task, attempt)
        known = dict(told)
        for name in role.env:
            known[name] = _filled(plain.env[name], known, told)
        command = tuple(_filled(word, known, told) for word in plain.command)
        if BARRIER_FOLDER in role.env:
            command = ("sh", "-c", _LEAVE_FILES, "sh", *command)
        return msgspec.structs.replace(
            plain,
            command=command,
            env={**told, **plain.env, **{name: known[name] for name in role.env}},
            pod_template=_told_too(_each_text(role.kubernetes.pod_template, told), told),
            labels={name: told[name] for name in _LABELS},
            annotations=told,
        )


def variables(gang: Gang, task: TaskPlacement, attempt: int) -> dict[str, str]:
    """The `FC_…` variables of a task attempt; UIDs of Kubernetes objects are replaced by Corral's ids."""
    name, key = gang.name, task.key
    run = f"{gang.job_id}.{gang.attempt}"
    return {
        "FC_FRAMEWORK_NAMESPACE": gang.job.metadata.annotations.get(NAMESPACE_ANNOTATION, "default"),
        "FC_FRAMEWORK_NAME": name,
        "FC_TASKROLE_NAME": key.role,
        "FC_TASK_INDEX": str(key.index),
        "FC_CONFIGMAP_NAME": f"{name}-attempt",
        "FC_POD_NAME": f"{name}-{key}",
        "FC_FRAMEWORK_UID": gang.job_id,
        "FC_FRAMEWORK_ATTEMPT_ID": str(gang.attempt),
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"{gang.attempt}_{run}",
        "FC_CONFIGMAP_UID": run,
        "FC_TASKROLE_UID": f"{run}.{key.role}",
        "FC_TASK_UID": f"{run}.{key.role}.{key.index}",
        "FC_TASK_ATTEMPT_ID": str(attempt),
        "FC_TASK_ATTEMPT_INSTANCE_UID": f"{attempt}_{run}.{key.role}.{key.index}.{attempt}",
        "FC_POD_UID": f"{run}.{key.role}.{key.index}.{attempt}",
    }


def _filled(text: str, known: Mapping[str, str], told: Mapping[str, str]) -> str:
    """Expand variables as Kubernetes does: `$(NAME)` of a known one, and `$$` to `$`."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] else known.get(match[2], match[0])

    return _VARIABLE.sub(value, _placed(text, told))


def _placed(text: str, told: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: told.get(match[1], match[0]), text) if "{{" in text else text


def _each_text(value: Any, told: Mapping[str, str]) -> Any:
    """Expand the placeholders in every string of a value."""
    if isinstance(value, Mapping):
        return {key: _each_text(inner, told) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each_text(inner, told) for inner in value]
    return _placed(value, told) if isinstance(value, str) else value


def _told_too(template: Mapping[str, Any], told: Mapping[str, str]) -> Any:
    """Add the variables to every container and init container of a pod template except the task's.

    A template without a pod's structure is returned unchanged: the engine that makes the pod reports the error.
    """
    spec = template.get("spec")
    if not isinstance(spec, Mapping):
        return template
    more = {}
    for field in ("containers", "initContainers"):
        if isinstance(containers := spec.get(field), list):
            more[field] = [_with(each, told) for each in containers]
    return {**template, "spec": {**spec, **more}} if more else template


def _with(container: Any, told: Mapping[str, str]) -> Any:
    if not isinstance(container, Mapping) or container.get("name") == TASK:
        return container
    own = container.get("env") or []
    known = [{"name": name, "value": value} for name, value in told.items()]
    return {**container, "env": [*known, *own]} if isinstance(own, list) else container


def _peers(gang: Gang) -> dict[str, list[str]]:
    """By role, the address references of all tasks in index order."""
    found: dict[str, list[str]] = {}
    for role in gang.job.spec.roles:
        indexes = sorted(task.index for task in gang.placement.tasks if task.role == role.name)
        found[role.name] = [host_of(TaskKey(role.name, index)) for index in indexes]
    return found


def _injector(peers: Mapping[str, object]) -> str:
    """A script to source: it exports FB_ROLE_IPS, and FB_ROLE_ADDRESSES with the port that its caller set."""
    lines = ["_fb_ifs=$IFS", "IFS=,"]
    for role in map(str.upper, peers):
        ips, addresses, port = f"FB_{role}_IPS", f"FB_{role}_ADDRESSES", f"FB_{role}_PORT"
        lines += [
            f"{addresses}=",
            f"for _fb_ip in ${ips}; do {addresses}=${addresses}${{{addresses}:+,}}$_fb_ip:${port}; done",
            f"export {ips} {addresses}",
        ]
    return "\n".join([*lines, "IFS=$_fb_ifs", ""])


def _framework(gang: Gang, peers: Mapping[str, list[str]]) -> str:
    """The part of the Framework object that readers of the barrier's file use: each task's address."""
    roles = [
        {
            "name": role,
            "taskStatuses": [{"index": at, "attemptStatus": {"podIP": host}} for at, host in enumerate(hosts)],
        }
        for role, hosts in peers.items()
    ]
    document = {
        "kind": "Framework",
        "metadata": {"name": gang.name},
        "status": {"attemptStatus": {"id": gang.attempt, "taskRoleStatuses": roles}},
    }
    return msgspec.json.encode(document).decode()
