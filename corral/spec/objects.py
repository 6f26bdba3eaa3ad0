"""Why: jobs may also be objects of a cluster; here stands, without any cluster, what such an object means and shows.

An `ObjectKind` is one sort of object: where it is at an API server, how its document becomes a job, which part of it may
change, and how the state of its job is told in its own words. Corral's own sort is `UnifiedJobKind`; foreign sorts
(Alnair's, FrameworkController's) subclass `ObjectKind` and override what differs.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal

from corral.spec.dialects.hived_pod import SCHEDULING_SPEC
from corral.spec.dialects.translation import PRIORITY_ANNOTATION
from corral.spec.job import API_VERSION, KIND, UnifiedJob
from corral.spec.reading import load_job

FINALIZER: Final = "corral.dev/job"
"""What keeps an object until its job is over."""
OVER: Final = frozenset({"succeeded", "failed", "stopped"})
"""The phases of a job that has ended for good."""
MANAGER: Final = "corral"
"""Under which name Corral owns the fields that it writes into objects."""

CONDITIONS: Final = ("Accepted", "Applied", "Scheduled", "Running", "Complete", "Failed")
"""The conditions that Corral writes."""
NOW: Final = "now"
"""Stands in a status for the time at which it is written; whoever writes it knows the time."""
_LONGEST_MESSAGE: Final = 8_000

Document = Mapping[str, Any]
"""A whole object as plain data: apiVersion, kind, metadata, spec, status."""


class Wish(StrEnum):
    """What an object asks to be done with its job."""

    RUN = "run"
    HOLD = "hold"
    """Accept it, and start nothing until the wish is another."""
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
    """One role of a job as it stands."""

    name: str
    wanted: int = 0
    total: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task of a job as it stands; times are RFC 3339."""

    role: str
    index: int
    state: str
    """The launcher's state, such as `running` or `deletion-pending`."""
    attempt: int = 0
    attempt_id: str = ""
    retries: int = 0
    counted_retries: int = 0
    """Those of them that count against maxRetries."""
    node: str = ""
    host: str = ""
    leaving: bool = False
    """A scale-down named it."""
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    retry_seconds: float | None = None
    """How long after its end it is tried again; None: it is not, or that is not known."""
    exit_code: int | None = None
    exit_phrase: str = ""
    exit_class: str = ""
    exit_message: str = ""


@dataclass(frozen=True, slots=True)
class ObjectState:
    """Everything that an object may be told of its job; without a job (refused, or not yet taken) `job` is ""."""

    job: str = ""
    server: str = ""
    """The UID of the Corral that has the job."""
    name: str = ""
    phase: str = ""
    """waiting, starting, running, stopping, succeeded, failed or stopped; "" without a job."""
    state: str = ""
    """The launcher's state of the job, such as `creation-requested`."""
    message: str = ""
    """Why it waits, or how it ended."""
    generation: int = 0
    """Of the object, as it was seen."""
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
    """Tasks of the counted role that have a place."""
    targets: Mapping[str, int] = field(default_factory=dict)
    """By node id (`ENGINE/NODE`): the replicas of the counted role that the scheduler wants there now."""
    placements: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By role and node id: the tasks that hold a place."""
    roles: tuple[RoleState, ...] = ()
    tasks: tuple[TaskState, ...] = ()
    """Only for kinds that say `wants_tasks`."""
    created_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    """How the attempt ended, or is ending; how the job did, when the phase says that it is over."""
    exit_phrase: str = ""
    exit_class: str = ""
    exit_message: str = ""
    trigger: tuple[str, str, int] = ("", "", -1)
    """Why the attempt ended: the sentence, and the role and index of the task that it was for ("" and -1: no task)."""
    conditions: tuple[Condition, ...] = ()


class ObjectKind(ABC):
    """One sort of object that stands for a job."""

    group: ClassVar[str]
    version: ClassVar[str]
    kind: ClassVar[str]
    plural: ClassVar[str]
    status_subresource: ClassVar[bool] = True
    """Whether its definition has one; else the status is written with the rest."""
    holds: ClassVar[bool] = False
    """Whether its wish may be to hold: then a job that never began is resumed when the wish is to run."""
    wants_tasks: ClassVar[bool] = False
    """Whether `status` needs every task of the job."""

    @property
    def title(self) -> str:
        """Its name as `kubectl` writes it: `unifiedjobs.corral.dev`."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """As documents write it."""
        return f"{self.group}/{self.version}"

    @abstractmethod
    def job(self, document: Document) -> UnifiedJob:
        """The job that an object describes.

        Raises SpecError with every problem.
        """

    def wish(self, document: Document) -> Wish:
        """What is to be done with the job now."""
        return Wish.RUN

    def lasting(self, document: Document) -> Any:
        """That part of an object which cannot change while its job lives: neither counts, targets, wishes nor status."""
        return _without_counts(document.get("spec"), ("replicas", "targetReplicas"))

    def granted(self, document: Document) -> bool:
        """Whether the cluster has granted the job's priority, by a PriorityClass.

        A number and an annotation are anybody's word: Kubernetes judges neither in a pod template.
        """
        said = set(_said(document))
        return "priorityClassName" in said and not said & {"priority", SCHEDULING_SPEC, PRIORITY_ANNOTATION}

    def fingerprint(self, document: Document) -> str:
        """The same for as long as the lasting part is the same."""
        text = json.dumps(self.lasting(document), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def replicas(self, document: Document) -> int:
        """How many replicas of the counted role the object asks for now.

        Raises SpecError.
        """
        return self.job(document).spec.replica_spec.replicas

    def scaled(self, document: Document, replicas: int) -> dict[str, Any]:
        """The merge patch that has an object ask for another number of replicas."""
        return {"spec": {"replicaSpec": {"replicas": replicas}}}

    def targets(self, document: Document, targets: Mapping[str, int]) -> dict[str, Any] | None:
        """The part of the object in which the scheduler's targets stand; None where it has no place for them."""
        return {"spec": {"replicaSpec": {"targetReplicas": dict(targets)}}}

    def targets_in(self, document: Document) -> Mapping[str, int]:
        """The targets that stand in an object, in the form of `targets`."""
        spec = document.get("spec")
        count = spec.get("replicaSpec") if isinstance(spec, dict) else None
        found = count.get("targetReplicas") if isinstance(count, dict) else None
        return found if isinstance(found, dict) else {}

    @abstractmethod
    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """What the object shows of its job; `document` is the object as it stands (for times and what others wrote)."""

    def job_of(self, document: Document) -> str:
        """The id of the job that the object's status speaks of, "" for none: a store restored from a backup may lack it."""
        return str(_status(document).get("jobId", ""))

    def server_of(self, document: Document) -> str:
        """The UID of the Corral that the object's status is of, "" where it does not tell."""
        return str(_status(document).get("server", ""))

    def attempt_of(self, document: Document) -> int:
        """The attempt that the object's status speaks of; -1 where it does not tell."""
        found = _status(document).get("attempt", -1)
        return found if isinstance(found, int) else -1

    def phase_of(self, document: Document) -> str:
        """The phase in the object's status, "" where it is none of a job's."""
        return str(_status(document).get("phase", ""))

    def shown(self, document: Document) -> dict[str, Any]:
        """That part of the object's status which is Corral's: what `status` gave when it was written last."""
        status = _status(document)
        conditions = [each for each in status.get("conditions") or () if each.get("type") in CONDITIONS]
        ours = {key: value for key, value in status.items() if key not in ("external", "conditions")}
        return {**ours, "conditions": conditions} if "conditions" in status else ours

    def over(self, document: Document) -> bool:
        """Whether the object's status says that its job has ended for good."""
        return self.phase_of(document) in OVER


class UnifiedJobKind(ObjectKind):
    """Corral's own objects: the canonical document as it is."""

    group, version = API_VERSION.split("/")
    kind = KIND
    plural = "unifiedjobs"

    def granted(self, document: Document) -> bool:
        """Never: its own document says the priority."""
        return False

    def job(self, document: Document) -> UnifiedJob:
        """The job of a canonical document; of its metadata only name and labels count, annotations are anybody's."""
        known = document.get("metadata") or {}
        metadata = {"name": known.get("name", ""), "labels": known.get("labels") or {}}
        return load_job({**_bare(document), "metadata": metadata}, filename="")

    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        """The status that `ObjectStatus` describes, without the conditions of others."""
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
    """What every sort of object shows beside its own words: which job it is of whom, and how that one stands."""
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
    """The conditions as objects show them; the time of one whose status stays is the time that stands there."""
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
