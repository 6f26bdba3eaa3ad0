"""Alnair's UnifiedJobs as Kubernetes objects: read the job, and write targets and status as Alnair's clients expect.

Source: CentaurusInfra/alnair, unified-training/api/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from corral.compat.alnair.language.job import API_VERSION, BASE, KIND
from corral.spec.dialects.translation import REPLICAS_ANNOTATION
from corral.spec.job import UnifiedJob
from corral.spec.job_objects import Document, ObjectKind, ObjectState, added, conditions_of
from corral.spec.job_reader import load_job
from corral.spec.placement_rules import node_name

COMPLETE, FAILED, MIGRATING, PAUSED, PENDING, RUNNING, WAITING = (
    "Complete", "Failed", "Migrating", "Paused", "Pending", "Running", "Waiting",
)  # fmt: skip
_BY_PHASE: Final = {"succeeded": COMPLETE, "failed": FAILED, "stopped": FAILED, "running": RUNNING}


class AlnairKind(ObjectKind):
    """`unifiedjobs.ai.centauruscloud.io`."""

    group, version = API_VERSION.split("/")
    kind = KIND
    plural = "unifiedjobs"

    def job(self, document: Document) -> UnifiedJob:
        """The job that Alnair's object describes."""
        return load_job(document, filename="")

    def lasting(self, document: Document) -> Any:
        """All fields that Alnair's users write; the scheduler writes the targets."""
        return {"jobType": document.get("jobType"), "spec": super().lasting(document)}

    def scaled(self, document: Document, replicas: int) -> dict[str, Any]:
        """Request the replicas in an annotation, because Alnair's objects have bounds only."""
        return {"metadata": {"annotations": {REPLICAS_ANNOTATION: str(replicas)}}}

    def targets(self, document: Document, targets: Mapping[str, int]) -> dict[str, Any] | None:
        """Devices by bare node name, as one Alnair replica is one device.

        Also applies to an object that no longer describes a valid job.
        """
        devices = _devices(document)
        return {
            "spec": {"replicaSpec": {"targetReplicas": {node_name(node): n * devices for node, n in targets.items()}}}
        }

    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """Alnair's job status, and the fields that Corral adds."""
        known = document.get("status")
        before = known.get("jobStatus", "") if isinstance(known, dict) else ""
        found: dict[str, Any] = {
            "jobStatus": _word(state, before if isinstance(before, str) else ""),
            "itersCompleted": 0,
            "itersTotal": 0,
        }
        return found | added(state) | {"conditions": conditions_of(state, document)}


def _devices(document: Document) -> int:
    """Devices of one task: all of a BaseJob's, one of an elastic job's."""
    spec = document.get("spec")
    counts = spec.get("replicaSpec") if isinstance(spec, dict) else None
    least = counts.get("minReplicas") if isinstance(counts, dict) and document.get("jobType") == BASE else 1
    return max(1, least) if isinstance(least, int) else 1


def _word(state: ObjectState, before: str) -> str:
    """Alnair's word for the state of the job.

    A refused job is Failed. A job that had started, and now has no place or a new one, is Migrating.
    """
    if not state.job:
        refused = any(each.type == "Accepted" and each.status == "False" for each in state.conditions)
        return FAILED if refused else WAITING
    if word := _BY_PHASE.get(state.phase):
        return word
    if state.suspended and state.phase == "waiting":
        return PAUSED
    if before in (RUNNING, MIGRATING) or state.attempt:
        return MIGRATING
    return PENDING if state.phase in ("starting", "stopping") else WAITING
