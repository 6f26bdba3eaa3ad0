"""The framework `frameworklauncher`: gives services the variables of FrameworkLauncher.

Addresses and ports are known only where a task runs. Lines before its entry point build them from the variables that
engines give every task. Source: FrameworkLauncher, doc/USERMANUAL (environment variables).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.compat.openpai.language.launcher import ADDRESS, DESCRIPTOR, JOB_TYPE, ROOT
from corral.compat.openpai.language.names import DEFAULT_FILES, NAME, PORTS, ROLES
from corral.frameworks.base import Finding, Framework, Gang, TaskCommand
from corral.kernel.ids import attempt_id
from corral.model.placement import TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

_NOT_IN_NAME: Final = re.compile("[^A-Z0-9]+")
_QUOTED: Final = re.compile(r'(["\\$`])')


class FrameworkLauncher(Framework):
    """`jobType: frameworklauncher`: runs the services of a Framework as FrameworkLauncher does."""

    job_type = JOB_TYPE

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Refuse jobs that were not made from a descriptor: nobody writes this job type by hand."""
        found = list(super().check(job))
        if any(key not in job.metadata.annotations for key in (NAME, ROLES, PORTS, DESCRIPTOR)):
            why = "a job of this type is made by PUT /v1/Frameworks/NAME; for a job of your own take another one"
            found.append((("spec", "jobType"), why))
        return tuple(found)

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The entry point, preceded by lines that export address and ports."""
        *words, script = gang.role(task).command
        return (*words, f"{_known_there(gang, task)}\n{script}")

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The task's identity, and the bitmap of its GPUs."""
        notes = gang.job.metadata.annotations
        name, role = notes[NAME], _role(gang, task)
        said = _descriptor(gang)
        root = f"{notes.get(DEFAULT_FILES, '').rstrip('/')}{ROOT}/{name}"
        told = {
            "LAUNCHER_ADDRESS": notes.get(ADDRESS, ""),
            "FRAMEWORK_NAME": name,
            "FRAMEWORK_VERSION": str(said["version"]),
            "TASKROLE_NAME": role,
            "TASK_INDEX": str(task.index),
            "SERVICE_NAME": role,
            "SERVICE_VERSION": str(said["taskRoles"][role]["taskService"]["version"]),
            "APP_ID": application_id(gang.job_id, gang.attempt),
            "HDFS_USER_STORE_ROOT_DIR": f"{root}/UserStore",
            "HDFS_FRAMEWORK_INFO_FILE": f"{root}/FrameworkInfo.json",
        }
        if task.devices:
            told["CONTAINER_GPUS"] = str(bitmap(task.devices))
        return told

    def render(self, gang: Gang, task: TaskPlacement, attempt: int = 0) -> TaskCommand:
        """Build the start of a task, with the id of this attempt."""
        plain = super().render(gang, task, attempt)
        own = attempt_id(gang.job_id, gang.attempt, task.role, task.index, attempt)
        return msgspec.structs.replace(plain, env={"CONTAINER_ID": own, **plain.env})


def application_id(job: str, attempt: int) -> str:
    """The YARN-style application id of a job attempt."""
    return f"application_{job}_{attempt:04d}"


def bitmap(devices: tuple[int, ...]) -> int:
    """Encode device indexes as bits: 0 and 1 are 3."""
    return sum(1 << index for index in set(devices))


def _known_there(gang: Gang, task: TaskPlacement) -> str:
    """Shell lines that export the task's address and ports."""
    labels: Mapping[str, str] = json.loads(gang.job.metadata.annotations[PORTS])
    lines = ['export CONTAINER_IP="$CORRAL_HOST"']
    ports = gang.role(task).ports
    if ports:
        listed = "".join(f"{_literal(labels.get(port.name, port.name))}:${_variable(port.name)};" for port in ports)
        lines.append(f'export CONTAINER_PORTS="{listed}"')
    return "\n".join(lines)


def _variable(port: str) -> str:
    """The variable in which engines pass a port's numbers."""
    return "{CORRAL_PORT_" + _NOT_IN_NAME.sub("_", port.upper()).strip("_") + "}"


def _literal(text: str) -> str:
    return _QUOTED.sub(r"\\\1", text)


def _role(gang: Gang, task: TaskPlacement) -> str:
    """FrameworkLauncher's name of the task's role."""
    names: Mapping[str, str] = json.loads(gang.job.metadata.annotations[ROLES])
    return names.get(task.role, task.role)


def _descriptor(gang: Gang) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gang.job.metadata.annotations[DESCRIPTOR])
    return found
