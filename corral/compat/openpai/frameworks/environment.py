"""The environment variables that OpenPAI's server gives to a task before it starts.

Addresses and ports are known only later; the runtime adds their variables (`corral.compat.openpai.runtime.variables`).
Sources: OpenPAI's rest-server (v1.8), and v0.14 for variables of the YARN era.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from corral.compat.openpai.language import names
from corral.compat.openpai.language.translation import is_gang
from corral.frameworks.base import Gang
from corral.model.placement import TaskPlacement

SHM_MB: Final = 512
_FROM_PREREQUISITES: Final = {"PAI_DATA_DIR": "data", "PAI_OUTPUT_DIR": "output", "PAI_CODE_DIR": "script"}
_OF_V1: Final = {"PAI_DATA_DIR": "dataDir", "PAI_OUTPUT_DIR": "outputDir", "PAI_CODE_DIR": "codeDir"}


class PaiRole(NamedTuple):
    """One task role, with its names in OpenPAI and in Corral."""

    name: str
    corral: str
    tasks: int
    ports: dict[str, str]
    """By port label, Corral's port name."""
    said: Mapping[str, Any]
    """The protocol's description of the role."""


class PaiJob(NamedTuple):
    """The OpenPAI side of a job."""

    user: str
    name: str
    roles: tuple[PaiRole, ...]
    protocol: Mapping[str, Any]
    annotations: Mapping[str, str]

    @property
    def full_name(self) -> str:
        """OpenPAI's full name of the job: `user~job`."""
        return f"{self.user}~{self.name}"

    @property
    def framework_name(self) -> str:
        """The name of the job's Framework: an MD5."""
        return hashlib.md5(self.full_name.encode(), usedforsecurity=False).hexdigest()

    @property
    def gang(self) -> bool:
        """Whether all tasks start together."""
        return is_gang(self.protocol)

    def role_of(self, corral: str) -> PaiRole:
        """The role with this name in Corral."""
        return next(role for role in self.roles if role.corral == corral)


def pai_job(gang: Gang) -> PaiJob:
    """The job as OpenPAI sees it; without annotations, its names are Corral's."""
    annotations = gang.job.metadata.annotations
    protocol = _json(annotations.get(names.PROTOCOL, ""))
    called, labels = _json(annotations.get(names.ROLES, "")), _json(annotations.get(names.PORTS, ""))
    said = protocol.get("taskRoles")
    said = said if isinstance(said, Mapping) else {}
    roles = []
    for role in gang.job.spec.roles:
        name = str(called.get(role.name, role.name))
        ports = {str(labels.get(port.name, port.name)): port.name for port in role.ports}
        roles.append(PaiRole(name, role.name, gang.job.replicas_of(role.name), ports, said.get(name) or {}))
    user, name = annotations.get(names.USER, ""), annotations.get(names.NAME, gang.name)
    return PaiJob(user, name, tuple(roles), protocol, annotations)


def server_variables(job: PaiJob, gang: Gang, task: TaskPlacement) -> dict[str, str]:
    """The variables of OpenPAI's server, from both eras."""
    role = job.role_of(task.role)
    listed, total = ",".join(each.name for each in job.roles), str(sum(each.tasks for each in job.roles))
    found = {
        "PAI_FRAMEWORK_NAME": job.framework_name,
        "PAI_JOB_NAME": job.full_name,
        "PAI_USER_NAME": job.user,
        "PAI_USERNAME": job.user,
        "PAI_DEFAULT_FS_URI": job.annotations.get(names.DEFAULT_FILES, ""),
        "PAI_VIRTUAL_CLUSTER": gang.job.spec.queue,
        "PAI_TASK_ROLE_COUNT": str(len(job.roles)),
        "PAI_TASK_ROLE_LIST": listed,
        "PAI_TASK_ROLES_NUM": str(len(job.roles)),
        "PAI_TASKS_NUM": total,
        "PAI_JOB_TASK_COUNT": total,
        "PAI_JOB_TASK_ROLE_COUNT": str(len(job.roles)),
        "PAI_JOB_TASK_ROLE_LIST": listed,
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(task.index),
        "PAI_TASK_INDEX": str(task.index),
    }
    for each in job.roles:
        resources = _resources(each)
        failed, succeeded = _completion(each)
        found |= {
            f"PAI_TASK_ROLE_TASK_COUNT_{each.name}": str(each.tasks),
            f"PAI_RESOURCE_{each.name}": ",".join(resources),
            f"PAI_MIN_FAILED_TASK_COUNT_{each.name}": failed,
            f"PAI_MIN_SUCCEEDED_TASK_COUNT_{each.name}": succeeded,
        }
    return found | _of_the_yarn_era(job, gang, role)


def framework_variables(told: Mapping[str, str], job: PaiJob, role: PaiRole) -> dict[str, str]:
    """FrameworkController's variables with OpenPAI's names in them."""
    return {
        **told,
        "FC_FRAMEWORK_NAME": job.framework_name,
        "FC_TASKROLE_NAME": role.name,
        "FC_CONFIGMAP_NAME": f"{job.framework_name}-attempt",
        "FC_POD_NAME": f"{job.framework_name}-{role.name.lower()}-{told['FC_TASK_INDEX']}",
    }


def _of_the_yarn_era(job: PaiJob, gang: Gang, role: PaiRole) -> dict[str, str]:
    gpu, cpu, memory, shm = _resources(role)
    failed, succeeded = _completion(role)
    current = {
        "TASK_COUNT": str(role.tasks),
        "CPU_COUNT": cpu,
        "MEM_MB": memory,
        "SHM_MB": shm,
        "GPU_COUNT": gpu,
        "MIN_FAILED_TASK_COUNT": failed,
        "MIN_SUCCEEDED_TASK_COUNT": succeeded,
    }
    found = {f"PAI_CURRENT_TASK_ROLE_{name}": value for name, value in current.items()}
    v1 = _json(job.annotations.get(names.V1, ""))
    for variable, kind in _FROM_PREREQUISITES.items():
        found[variable] = str(v1.get(_OF_V1[variable]) or "") or _uri(job, role, kind)
    if not found["PAI_OUTPUT_DIR"] and job.annotations.get(names.VERSION) == "1":
        files = job.annotations.get(names.DEFAULT_FILES, "")
        folder = job.annotations.get(names.FOLDER) or job.user
        found["PAI_OUTPUT_DIR"] = f"{files}/Output/{folder}/{job.name}" if files else ""
    return found | {"PAI_JOB_VC_NAME": gang.job.spec.queue}


def _uri(job: PaiJob, role: PaiRole, kind: str) -> str:
    """The URI of the role's data, output or script; "" if the protocol names none."""
    given = prerequisites(job.protocol)
    for each in given:
        if each.get("type") == kind and each.get("name") == role.said.get(kind):
            uri = each.get("uri")
            return str(uri[0]) if isinstance(uri, list) and uri else str(uri or "")
    return ""


def prerequisites(protocol: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All prerequisites, from a list or from mappings by type and name."""
    given = protocol.get("prerequisites") or []
    if isinstance(given, Mapping):
        return [each for kind in given.values() for each in kind.values()]
    return list(given)


def _resources(role: PaiRole) -> tuple[str, str, str, str]:
    """GPUs, CPUs, memory in MB and shared memory in MB, as text."""
    given = role.said.get("resourcePerInstance") or {}
    options = role.said.get("extraContainerOptions") or {}
    amounts = (given.get("gpu", 0), given.get("cpu", 1), given.get("memoryMB", 0), options.get("shmMB", SHM_MB))
    gpu, cpu, memory, shm = map(str, amounts)
    return gpu, cpu, memory, shm


def _completion(role: PaiRole) -> tuple[str, str]:
    """The numbers of failed and of succeeded tasks that end the job, as text."""
    given = role.said.get("completion") or {}
    failed, succeeded = given.get("minFailedInstances"), given.get("minSucceededInstances")
    return str(1 if failed is None else failed), str(role.tasks if succeeded is None else succeeded)


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
