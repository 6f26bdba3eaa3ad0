"""The framework `tensorflow`: describes the cluster and the task to each worker in TF_CONFIG."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from corral.frameworks.base import Finding, Framework, Gang, one_process_only
from corral.frameworks.references import endpoint_of
from corral.model.placement import TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

PORT: Final = "tensorflow"
_TYPES: Final = ("chief", "master", "worker", "ps", "evaluator")


class TensorFlow(Framework):
    """`jobType: tensorflow`: roles are TensorFlow's task types; a single role of another name is its workers."""

    job_type = "tensorflow"
    elastic = False

    def one_group(self, job: UnifiedJob) -> bool:
        """Workers of a single role do not survive the loss of one; workers with parameter servers do."""
        return len(job.spec.roles) == 1

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The task's gRPC port."""
        return (PORT,)

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """TF_CONFIG; the cluster that other tasks see does not include evaluators."""
        roles = [role.name for role in gang.job.spec.roles]
        types = _types(roles)
        listed = [role for role in roles if types[role] != "evaluator" or role == task.role]
        cluster = {types[role]: [endpoint_of(member, PORT) for member in gang.members(role)] for role in listed}
        me = {"type": types[task.role], "index": gang.role_ranks[task.key]}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": me}, separators=(",", ":"))}

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Several roles must have the names of TensorFlow's task types."""
        findings = [*super().check(job), *one_process_only(job)]
        if len(job.spec.roles) > 1:
            for index, role in enumerate(job.spec.roles):
                if role.name not in _TYPES:
                    message = f"with several roles, each is one of TensorFlow's task types: {', '.join(_TYPES)}"
                    findings.append((("spec", "roles", index, "name"), message))
        return tuple(findings)


def _types(roles: Iterable[str]) -> dict[str, str]:
    return {role: role if role in _TYPES else "worker" for role in roles}
