"""Jobs as Kubernetes objects: the job that an object describes, and the status it shows, without any cluster access.

An `ObjectKind` is one kind of object: its API group, the conversion of its document to a job, the immutable part of the
document, and its status. `UnifiedJobKind` is Corral's own. Kinds of other systems (Alnair, FrameworkController)
subclass `ObjectKind` and override the differences.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal

from corral.spec.dialects.pod_annotations import request_keys
from corral.spec.dialects.translation import PRIORITY_ANNOTATION
from corral.spec.job import API_VERSION, KIND, UnifiedJob
from corral.spec.job_reader import load_job

FINALIZER: Final = "corral.dev/job"
"""Finalizer that keeps an object until its job is over."""
OVER: Final = frozenset({"succeeded", "failed", "stopped"})
"""Phases of a job that has ended for good."""
MANAGER: Final = "corral"
"""Field manager of the fields that Corral writes into objects."""

CONDITIONS: Final = ("Accepted", "Applied", "Scheduled", "Running", "Complete", "Failed")
"""Types of the conditions that Corral writes."""
NOW: Final = "now"
"""Placeholder in a status for the time of writing, which the writer fills in."""
_LONGEST_MESSAGE: Final = 8_000

Document = Mapping[str, Any]
"""A whole object as plain data: apiVersion, kind, metadata, spec, status."""


class Wish(StrEnum):
    """The state that an object requests for its job."""

    RUN = "run"
    HOLD = "hold"
    """Accept the job, but start nothing until the request changes."""
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object: `status` is True, False or Unknown; `reason` is one CamelCase word."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class RoleState:
    """Task counts of one role."""

    name: str
    wanted: int = 0
    total: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """State of one task; times are RFC 3339."""

    role: str
    index: int
    state: str
    """The launcher's state, such as `running` or `deletion-pending`."""
    attempt: int = 0
    attempt_id: str = ""
    retries: int = 0
    counted_retries: int = 0
    """The retries that count against maxRetries."""
    node: str = ""
    host: str = ""
    leaving: bool = False
    """True when a scale-down picked this task."""
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    retry_seconds: float | None = None
    """Seconds from its end to its retry; None when there is no retry or the delay is unknown."""
    exit_code: int | None = None
    exit_phrase: str = ""
    exit_class: str = ""
    exit_message: str = ""


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The state of a job that its object may show; `job` is "" for a job that was refused or not yet taken."""

    job: str = ""
    server: str = ""
    """The UID of the Corral server that has the job."""
    name: str = ""
    phase: str = ""
    """waiting, starting, running, stopping, succeeded, failed or stopped; "" without a job."""
    state: str = ""
    """The launcher's state of the job, such as `creation-requested`."""
    message: str = ""
    """The reason why it waits, or the way it ended."""
    generation: int = 0
    """Of the object, as last seen."""
    attempt: int = 0
    retries: int = 0
    counted_retries: int = 0
    retry_seconds: float | None = None
    suspended: bool = False
    queue: str = ""
    devices: int | float = 0
    counted: str = ""
    """The role that `replicaSpec` counts."""
    replicas: int = 0
    """Placed tasks of the counted role."""
    targets: Mapping[str, int] = field(default_factory=dict)
    """Replicas of the counted role that the scheduler assigns now, by node id (`ENGINE/NODE`)."""
    placements: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Placed tasks by role and node id."""
    roles: tuple[RoleState, ...] = ()
    tasks: tuple[TaskState, ...] = ()
    """Filled in only for kinds with `wants_tasks`."""
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    """Exit code of the attempt that ended or is ending; of the job once its phase is over."""
    exit_phrase: str = ""
    exit_class: str = ""
    exit_message: str = ""
    trigger: tuple[str, str, int] = ("", "", -1)
    """Message, role and task index of the event that ended the attempt.

    Role "" and index -1 mean that no task caused it.
    """
    conditions: tuple[Condition, ...] = ()


class ObjectKind(ABC):
    """One kind of object that represents a job."""

    group: ClassVar[str]
    version: ClassVar[str]
    kind: ClassVar[str]
    plural: ClassVar[str]
    status_subresource: ClassVar[bool] = True
    """Whether its definition has a status subresource; otherwise the status is written with the whole object."""
    holds: ClassVar[bool] = False
    """Whether `wish` may return HOLD; a job that never began is then resumed when the wish becomes RUN."""
    wants_tasks: ClassVar[bool] = False
    """Whether `status` needs every task of the job."""

    @property
    def title(self) -> str:
        """The name that `kubectl` uses: `unifiedjobs.corral.dev`."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """The apiVersion of its documents."""
        return f"{self.group}/{self.version}"

    @abstractmethod
    def job(self, document: Document) -> UnifiedJob:
        """The job that an object describes.

        Raises SpecError with every problem.
        """

    def wish(self, document: Document) -> Wish:
        """The state that the object requests for its job now."""
        return Wish.RUN

    def lasting(self, document: Document) -> Any:
        """The immutable part of an object while its job lives: without counts, targets, wishes and status."""
        return _without_counts(document.get("spec"), ("replicas", "targetReplicas"))

    def granted(self, document: Document) -> bool:
        """Whether the cluster granted the job's priority through a PriorityClass.

        A priority number or an annotation does not count: Kubernetes admits any of them in a pod template.
        """
        said = set(_said(document))
        return "priorityClassName" in said and not said & {"priority", PRIORITY_ANNOTATION, *request_keys()}

    def fingerprint(self, document: Document) -> str:
        """SHA-256 of the immutable part, to detect changes of it."""
        text = json.dumps(self.lasting(document), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def replicas(self, document: Document) -> int:
        """The number of replicas of the counted role that the object requests now.

        Raises SpecError when it describes no valid job.
        """
        return self.job(document).spec.replica_spec.replicas

    def scaled(self, document: Document, replicas: int) -> dict[str, Any]:
        """The merge patch that sets the requested number of replicas."""
        return {"spec": {"replicaSpec": {"replicas": replicas}}}

    def targets(self, document: Document, targets: Mapping[str, int]) -> dict[str, Any] | None:
        """The merge patch with the scheduler's targets; None for kinds without a field for them."""
        return {"spec": {"replicaSpec": {"targetReplicas": dict(targets)}}}

    def targets_in(self, document: Document) -> Mapping[str, int]:
        """The targets in an object, in the form of `targets`."""
        spec = document.get("spec")
        count = spec.get("replicaSpec") if isinstance(spec, dict) else None
        found = count.get("targetReplicas") if isinstance(count, dict) else None
        return found if isinstance(found, dict) else {}

    @abstractmethod
    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """The status that the object shows of its job.

        `document` is the current object, for transition times and fields of other writers.
        """

    def job_of(self, document: Document) -> str:
        """The job id in the object's status; "" for none.

        A store restored from a backup may not have that job.
        """
        return str(_status(document).get("jobId", ""))

    def server_of(self, document: Document) -> str:
        """The UID of the Corral server in the object's status; "" when it names none."""
        return str(_status(document).get("server", ""))

    def attempt_of(self, document: Document) -> int:
        """The attempt in the object's status; -1 when it names none."""
        found = _status(document).get("attempt", -1)
        return found if isinstance(found, int) else -1

    def phase_of(self, document: Document) -> str:
        """The phase in the object's status; "" when it has none."""
        return str(_status(document).get("phase", ""))

    def shown(self, document: Document) -> dict[str, Any]:
        """The part of the object's status that Corral owns, as `status` last wrote it."""
        status = _status(document)
        conditions = [each for each in status.get("conditions") or () if each.get("type") in CONDITIONS]
        ours = {key: value for key, value in status.items() if key not in ("external", "conditions")}
        return {**ours, "conditions": conditions} if "conditions" in status else ours

    def over(self, document: Document) -> bool:
        """Whether the object's status reports that its job has ended for good."""
        return self.phase_of(document) in OVER


class UnifiedJobKind(ObjectKind):
    """Corral's own objects: the canonical job document."""

    group, version = API_VERSION.split("/")
    kind = KIND
    plural = "unifiedjobs"

    def granted(self, document: Document) -> bool:
        """Always False: the document itself gives the priority."""
        return False

    def job(self, document: Document) -> UnifiedJob:
        """The job of a canonical document; of its metadata only name and labels are read."""
        known = document.get("metadata") or {}
        metadata = {"name": known.get("name", ""), "labels": known.get("labels") or {}}
        return load_job({**_bare(document), "metadata": metadata}, filename="")

    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """The status as `ObjectStatus` defines it, with Corral's conditions only."""
        found = added(state)
        if state.job:
            found |= {
                "retries": state.retries,
                "devices": state.devices,
                "replicas": state.replicas,
                "selector": f"corral.dev/job={state.job},corral.dev/role={state.counted}",
                "placements": {role: dict(nodes) for role, nodes in state.placements.items()},
                "roles": [
                    {
                        "name": role.name,
                        "wanted": role.wanted,
                        "total": role.total,
                        "running": role.running,
                        "succeeded": role.succeeded,
                        "failed": role.failed,
                    }
                    for role in state.roles
                ],
            }
            over = state.phase in OVER
            times = {"startedAt": state.started_at, "endedAt": state.ended_at if over else None}
            found |= {name: time for name, time in times.items() if time is not None}
            if state.exit_code is not None and over:
                found["exit"] = {"code": state.exit_code, "phrase": state.exit_phrase, "class": state.exit_class}
        found["conditions"] = conditions_of(state, document)
        return found


def added(state: ObjectState) -> dict[str, Any]:
    """Status fields that every kind shows: observed generation, job id, server, phase, message and attempt."""
    known: dict[str, Any] = {"observedGeneration": state.generation}
    if state.job:
        known |= {
            "jobId": state.job,
            "server": state.server,
            "phase": state.phase,
            "message": state.message,
            "attempt": state.attempt,
        }
    return known


def conditions_of(state: ObjectState, document: Document) -> list[dict[str, Any]]:
    """The conditions as objects show them; one whose status is unchanged keeps its transition time."""
    there = {each.get("type"): each for each in _status(document).get("conditions") or () if isinstance(each, dict)}
    shown = []
    for condition in state.conditions:
        before = there.get(condition.type, {})
        same = before.get("status") == condition.status and before.get("lastTransitionTime")
        shown.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message[:_LONGEST_MESSAGE],
                "observedGeneration": state.generation,
                "lastTransitionTime": before["lastTransitionTime"] if same else NOW,
            }
        )
    return shown


def _status(document: Document) -> Mapping[str, Any]:
    status = document.get("status")
    return status if isinstance(status, dict) else {}


def _bare(document: Document) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key in ("apiVersion", "kind", "spec")}


def _said(value: Any) -> Iterator[str]:
    """The keys, at any depth, that have a value."""
    if isinstance(value, Mapping):
        yield from (key for key, inner in value.items() if inner not in (None, ""))
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _said(inner)


def _without_counts(spec: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(spec, dict) or not isinstance(spec.get("replicaSpec"), dict):
        return spec
    counts = {key: value for key, value in spec["replicaSpec"].items() if key not in names}
    rest = {key: value for key, value in spec.items() if key != "replicaSpec"}
    return {**rest, "replicaSpec": counts} if counts else rest
