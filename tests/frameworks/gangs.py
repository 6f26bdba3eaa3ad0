"""Jobs and placements for the tests of rendering."""

from __future__ import annotations

from typing import Any

from corral.frameworks import Gang, TaskCommand, framework
from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement, TaskPlacement
from corral.spec.job import UnifiedJob

JOB_ID = JobId("0123456789abc")


def job(job_type: str, roles: list[dict[str, Any]], **spec: Any) -> UnifiedJob:
    """A canonical job; `replicas` of the first role goes into its place in the document."""
    first, *others = [{"command": ["python", "train.py"]} | role for role in roles]
    count = spec.pop("replicaSpec", None) or {"replicas": first.pop("replicas", 1)}
    return UnifiedJob.from_document(
        {
            "apiVersion": "corral.dev/v1alpha1",
            "kind": "UnifiedJob",
            "metadata": {"name": "digits"},
            "spec": {"jobType": job_type, "roles": [first, *others], "replicaSpec": count} | spec,
        }
    )


def place(*tasks: str) -> Placement:
    """A placement of tasks named `worker-0`, `worker-1`, …, each on a node of its own."""
    keys = [text.rsplit("-", 1) for text in tasks]
    return Placement(tuple(TaskPlacement(role, int(index), f"local/node{n}") for n, (role, index) in enumerate(keys)))


def gang(document: UnifiedJob, *tasks: str) -> Gang:
    """One attempt of `document` with `tasks` in topology order."""
    return Gang(job_id=JOB_ID, name=document.name, attempt=0, job=document, placement=place(*tasks))


def render(members: Gang) -> dict[str, TaskCommand]:
    """Every task of the gang, rendered, by name."""
    kind = framework(members.job.spec.job_type)
    return {str(task.key): kind.render(members, task) for task in members.tasks}


def without_identity(command: TaskCommand) -> dict[str, str]:
    """The environment without the variables that every task gets."""
    return {name: value for name, value in command.env.items() if not name.startswith("CORRAL_")}


__all__ = ["JOB_ID", "TaskKey", "gang", "job", "place", "render", "without_identity"]
