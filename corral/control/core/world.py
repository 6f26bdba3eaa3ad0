"""All jobs that are not over, in memory, beside the cluster and the queue of the scheduler."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from corral.control.core.task_retries import TaskRetries
from corral.frameworks import Gang, one_group, port_counts, retries_at_once
from corral.kernel.ids import JobId, TaskKey
from corral.launcher import JobView, view_of
from corral.model.change_proposals import as_said
from corral.model.messages import by_name, jobs_named, told_apart
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import Reasons
from corral.model.records import JobSummary
from corral.model.request_builder import GangTerms, gang_terms
from corral.model.requests import GangRequest
from corral.model.runs import JobRun, TaskRun
from corral.model.start_estimates import Change, Outlook
from corral.model.states import JobState, TaskState
from corral.model.store_writes import LiveJob
from corral.scheduler import Cluster, Planner, PlannerEvent, Queue
from corral.scheduler.placement.input_locality import placement_note
from corral.spec.job import JobSpec, Metadata, UnifiedJob
from corral.spec.job_parts import Dependency

T = TypeVar("T")

_READ = 512
"""Parsed documents that are cached; each takes fifteen times the memory of its text."""
_LIGHT = 64 * 1024
"""Characters up to which a document is parsed while the event loop waits; parsing takes some milliseconds."""
_GANGS = 512
_ANY_NAME = "job"
"""The name under which a document is read for what does not depend on its name."""


@dataclass(slots=True)
class TasksByNode:
    """Tasks of a job by node, updated task by task, because a recount costs O(tasks)."""

    counted: str = ""
    """The role that `replicaSpec` names."""
    targets: dict[str, int] = field(default_factory=dict)
    placements: dict[str, dict[str, int]] = field(default_factory=dict)
    millis: int = 0
    """Thousandths of devices that the job's tasks hold."""
    changed: bool = True
    """Whether it has changed since the last call of `written`."""

    def change(self, before: TaskRun | None, after: TaskRun | None) -> None:
        """Replace one task by its new state."""
        if before is None or before.placement is None:
            if after is not None and after.placement is not None:
                self._count(after, 1)
        elif after is None or not _counts_alike(before, after):
            self._count(before, -1)
            if after is not None:
                self._count(after, 1)

    def fork(self) -> TasksByNode:
        """An independent copy."""
        placements = {role: dict(nodes) for role, nodes in self.placements.items()}
        return TasksByNode(self.counted, dict(self.targets), placements, self.millis, self.changed)

    def _count(self, task: TaskRun, by: int) -> None:
        if task.placement is None or not task.holds:
            return
        self.changed = True
        self.millis += by * task.placement.device_millis
        _add(self.placements.setdefault(task.role, {}), task.placement.node, by)
        if task.role == self.counted and task.state is not TaskState.DELETION_PENDING:
            _add(self.targets, task.placement.node, by)

    def written(self, run: JobRun) -> JobRun:
        """`run` with the current counts: O(nodes) when they have changed."""
        if not self.changed:
            return run
        self.changed = False
        placements = {role: _in_order(nodes) for role, nodes in _in_order(self.placements).items() if nodes}
        return msgspec.structs.replace(run, targets=_in_order(self.targets), placements=placements)


def _counts_alike(before: TaskRun, after: TaskRun) -> bool:
    """Whether two states of a task count for the same: the same placement, held in both, or nothing in both."""
    leaving = TaskState.DELETION_PENDING
    return before.holds == after.holds and (
        not after.holds
        or (before.placement is after.placement and (before.state is leaving) == (after.state is leaving))
    )


def _in_order(entries: dict[str, T]) -> dict[str, T]:
    """A copy in the order of the keys."""
    return dict(sorted(entries.items())) if len(entries) > 1 else dict(entries)


def _add(counts: dict[str, int], node: str, by: int) -> None:
    counts[node] = counts.get(node, 0) + by
    if not counts[node]:
        del counts[node]


class _Stored(msgspec.Struct):
    """The parts of a canonical document: its metadata by field and its spec, as JSON text."""

    metadata: dict[str, msgspec.Raw]
    spec: msgspec.Raw


class _StoredFields(msgspec.Struct):
    """Metadata and spec of a canonical document by field, as JSON text."""

    metadata: dict[str, msgspec.Raw]
    spec: dict[str, msgspec.Raw]


_STORED = msgspec.json.Decoder(_Stored)
_FIELDS = msgspec.json.Decoder(_StoredFields)
_DURATION = "maxDurationSeconds"


class DocumentTerms(NamedTuple):
    """What the rules read of a document. Jobs that differ only in their name share it, but for their duration."""

    view: JobView
    terms: GangTerms
    needs: tuple[Dependency, ...]
    """The jobs that it depends on, each with the required condition."""
    counted_role: str
    millis_each: Mapping[str, int]
    """Thousandths of devices of one task, by role."""

    @classmethod
    def of(cls, document: UnifiedJob) -> DocumentTerms:
        """Those of a document, computed anew."""
        return cls(
            view_of(document, one_group=one_group(document), at_once=retries_at_once(document)),
            gang_terms(document, port_counts(document)),
            tuple(document.spec.depends_on),
            document.counted_role.name,
            {role.name: role.resources.devices.millis for role in document.spec.roles},
        )

    def lasting(self, seconds: int) -> DocumentTerms:
        """Those of a document with another `maxDurationSeconds`."""
        view = msgspec.structs.replace(self.view, max_duration_seconds=seconds)
        return self._replace(view=view, terms=self.terms.lasting(seconds))


@lru_cache(_READ)
def _read(text: str) -> UnifiedJob:
    """Parse a document that was validated before it was stored. Jobs that differ only in metadata share one spec."""
    parts = _STORED.decode(text)
    return UnifiedJob.model_construct(
        metadata=Metadata.model_validate_json(msgspec.json.encode(parts.metadata)), spec=_read_spec(bytes(parts.spec))
    )


@lru_cache(_READ)
def _read_spec(text: bytes) -> JobSpec:
    return JobSpec.model_validate_json(text)


@lru_cache(_READ)
def read_terms(text: str) -> DocumentTerms:
    """What the rules read of a stored document.

    It is kept by the text, and for all texts with equal spec and metadata but for name and duration. Nothing makes it
    outdated: it follows from those parts alone.
    """
    parts = _FIELDS.decode(text)
    rest = tuple((field, bytes(value)) for field, value in sorted(parts.metadata.items()) if field != "name")
    longest = parts.spec.pop(_DURATION, None)
    return _terms_of(msgspec.json.encode(parts.spec), rest, 0 if longest is None else int(bytes(longest)))


@lru_cache(_READ)
def _terms_of(spec: bytes, metadata: tuple[tuple[str, bytes], ...], longest: int) -> DocumentTerms:
    """Those of a document with this duration in seconds (0: none), which its `spec` lacks."""
    return _terms_of(spec, metadata, 0).lasting(longest) if longest else _terms_of_any_duration(spec, metadata)


def _terms_of_any_duration(spec: bytes, metadata: tuple[tuple[str, bytes], ...]) -> DocumentTerms:
    said = msgspec.json.encode({"name": _ANY_NAME} | {field: msgspec.Raw(value) for field, value in metadata})
    return DocumentTerms.of(
        UnifiedJob.model_construct(metadata=Metadata.model_validate_json(said), spec=_read_spec(spec))
    )


def dependencies_of(record: LiveJob) -> tuple[Dependency, ...]:
    """The jobs that a stored job depends on, and what of them it needs."""
    return read_terms(record.doc).needs


@dataclass(slots=True)
class Job:
    """One live job, with all data that the rules read."""

    id: JobId
    text: str
    """Its canonical document as stored."""
    view: JobView
    terms: GangTerms
    needs: tuple[Dependency, ...]
    """The jobs that it depends on, each with the required condition."""
    user: str
    created_at: float
    run: JobRun
    tasks: dict[TaskKey, TaskRun]
    summary: JobSummary
    revision: int
    groups: tuple[str, ...] = ()
    """The groups of its user at the time when control loaded the job."""
    account: str = ""
    """The account id of its user, also after the account was deleted; "" stands for the user's name."""
    reasons: Reasons | None = None
    waits_for: frozenset[JobId] = frozenset()
    tasks_by_node: TasksByNode = field(default_factory=TasksByNode)
    """Its tasks, counted by node."""
    millis_each: Mapping[str, int] = field(default_factory=dict)
    """Thousandths of devices of one task, by role."""
    task_retries: TaskRetries = field(default_factory=TaskRetries)

    @classmethod
    def from_record(cls, record: LiveJob, groups: tuple[str, ...]) -> Job:
        """The job as it was stored; `groups` are those of its user."""
        found = read_terms(record.doc)
        tasks_by_node = TasksByNode(found.counted_role)
        for task in record.tasks.values():
            tasks_by_node.change(None, task)
        return cls(
            id=record.id,
            text=record.doc,
            view=found.view,
            terms=found.terms,
            needs=found.needs,
            user=record.user,
            created_at=record.created_at,
            run=record.run,
            tasks=dict(record.tasks),
            summary=record.summary,
            revision=record.revision,
            groups=groups,
            tasks_by_node=tasks_by_node,
            account=record.account,
            millis_each=found.millis_each,
            task_retries=TaskRetries(record.tasks),
        )

    def fork(self) -> Job:
        """An independent copy; it shares what never changes."""
        return replace(
            self, tasks=dict(self.tasks), tasks_by_node=self.tasks_by_node.fork(), task_retries=self.task_retries.fork()
        )

    @property
    def document(self) -> UnifiedJob:
        """Its document, parsed again when it has left the cache."""
        return _read(self.text)

    def reread(self, text: str) -> None:
        """Replace its document."""
        found = read_terms(text)
        self.text, self.view, self.terms = text, found.view, found.terms
        self.summary = msgspec.structs.replace(self.summary, queue=self.terms.queue, priority=self.terms.priority)

    def as_file_change(self, asked: GangRequest, change: Change, wanted: GangRequest) -> Change | None:
        """A change of its request in terms of its job file; None when a file cannot express it.

        A large document is not parsed, because that would block the loop; the change is then returned as it is.
        """
        if len(self.text) > _LIGHT:
            return change
        document = self.document
        return as_said(document, asked, change, wanted, port_counts(document))

    @property
    def name(self) -> str:
        """The job's name."""
        return self.summary.name

    @property
    def completed(self) -> bool:
        """Whether it has ended; only a user's intent can change it now."""
        return self.run.state is JobState.COMPLETED

    def placements(self) -> list[TaskPlacement]:
        """The placements of the tasks that hold devices, in topology order."""
        placed = [task.placement for task in self.tasks.values() if task.placement is not None and task.holds]
        return sorted(placed, key=lambda placement: placement.order)

    def asked_millis(self) -> int:
        """Thousandths of devices of all tasks at the size requested now."""
        total, each = 0, self.millis_each
        for role, count in self.run.roles.items():
            total += count.target * each.get(role, 0)
        return total

    def members(self) -> list[TaskPlacement]:
        """The current or last placements of all tasks, in topology order.

        Ended tasks count, so that the others keep their ranks.
        """
        placed = [task.placement for task in self.tasks.values() if task.placement is not None]
        return sorted(placed, key=lambda placement: placement.order)

    def unplaced(self) -> list[TaskKey]:
        """The tasks that wait for devices."""
        return [
            key
            for key, task in self.tasks.items()
            if task.state is TaskState.CREATION_REQUESTED and task.placement is None
        ]


class Gangs:
    """A cache of gangs for rendering launches, because computing their ranks costs O(tasks).

    It holds the jobs that start now, each until one of its placements changes.
    """

    def __init__(self) -> None:
        self._known: dict[JobId, Gang] = {}

    def of(self, job: Job) -> Gang:
        """The gang of a job with its current placement."""
        gang = self._known.get(job.id)
        if gang is None or gang.attempt != job.run.attempt:
            placement = Placement(tuple(job.members()))
            gang = Gang(job_id=job.id, name=job.name, attempt=job.run.attempt, job=job.document, placement=placement)
            if len(self._known) >= _GANGS:
                del self._known[next(iter(self._known))]
            self._known[job.id] = gang
        return gang

    def forget(self, job: JobId) -> None:
        """Drop the gang of a job whose placement has changed."""
        self._known.pop(job, None)


@dataclass
class World:
    """All live jobs, and the planner with the cluster and the queue of waiting gangs."""

    planner: Planner
    jobs: dict[JobId, Job] = field(default_factory=dict)
    dependents: dict[JobId, set[JobId]] = field(default_factory=dict)
    """The jobs that depend on a job, by that job."""
    timers: list[tuple[float, JobId]] = field(default_factory=list)
    plan_wanted: bool = True
    gangs: Gangs = field(default_factory=Gangs)
    seeking: dict[JobId, float] = field(default_factory=dict)
    """New jobs whose inputs are being located; each is queued once that is done, or at this time."""

    def fork(self) -> World:
        """An independent copy, with what planning remembers."""
        return World(
            self.planner.fork(),
            {key: job.fork() for key, job in self.jobs.items()},
            {key: set(jobs) for key, jobs in self.dependents.items()},
            self.timers[:],
            self.plan_wanted,
            seeking=dict(self.seeking),
        )

    @property
    def cluster(self) -> Cluster:
        """The machines and what runs on them; `fold` changes them."""
        return self.planner.cluster

    @property
    def queue(self) -> Queue:
        """The waiting gangs; `fold` changes them."""
        return self.planner.queue

    def fold(self, event: PlannerEvent) -> None:
        """Have the planner fold an event."""
        self.planner.fold(event)

    def with_input_note(self, request: GangRequest, placement: Placement) -> Placement:
        """A placement with a note of how much of the gang's inputs is near; unchanged if the gang joins a running one."""
        if request.inputs is None or request.beside or not placement.tasks:
            return placement
        nodes = {task.node for task in placement.tasks}
        tree = self.cluster.engines[min(nodes).partition("/")[0]].tree
        note = placement_note(tree, request.inputs, nodes)
        return msgspec.structs.replace(placement, notes=(*placement.notes, note)) if note else placement

    def name_of(self, job: str) -> str | None:
        """The name of a live job; None when there is none with this id."""
        found = self.jobs.get(JobId(job))
        return found.name if found is not None else None

    def in_names(self, text: str, about: str = "") -> str:
        """Replace job ids by names in a text of the scheduler about a job; jobs of one name are told apart."""
        ids = jobs_named(text)
        if not ids:
            return text
        found = ((each, self.jobs.get(JobId(each))) for each in dict.fromkeys((about, *ids)))
        called = told_apart({each: (job.user, job.name) for each, job in found if job is not None})
        return by_name(text, called.get)

    def reasons_in_names(self, reasons: Reasons, about: str = "") -> Reasons:
        """Replace job ids by names in reasons why a job waits."""
        binding, *others = (
            msgspec.structs.replace(each, message=self.in_names(each.message, about))
            for each in (reasons.binding, *reasons.others)
        )
        return msgspec.structs.replace(reasons, binding=binding, others=tuple(others))

    def outlook_in_names(self, hopes: Outlook, about: str = "") -> Outlook:
        """Replace job ids by names in the messages of a job's outlook."""
        said = msgspec.structs.replace(hopes.estimate, message=self.in_names(hopes.estimate.message, about))
        changes = tuple(
            msgspec.structs.replace(each, message=self.in_names(each.message, about)) for each in hopes.changes
        )
        return msgspec.structs.replace(hopes, estimate=said, changes=changes)

    def held_nodes(self) -> set[str]:
        """The nodes on which some task holds devices or other resources: O(tasks)."""
        return held_nodes(task for job in self.jobs.values() for task in job.tasks.values())

    def set_timer(self, at: float | None, job: JobId) -> None:
        """Set a timer for `job` at time `at`; None sets none."""
        if at is not None:
            heapq.heappush(self.timers, (at, job))

    def due(self, now: float) -> list[JobId]:
        """The jobs whose timers have expired, the earliest first; each timer is returned once."""
        jobs: dict[JobId, None] = {}
        while self.timers and self.timers[0][0] <= now:
            jobs[heapq.heappop(self.timers)[1]] = None
        return list(jobs)

    @property
    def next_timer(self) -> float | None:
        """The time of the next timer; None when there is none."""
        return self.timers[0][0] if self.timers else None


def held_nodes(tasks: Iterable[TaskRun]) -> set[str]:
    """The nodes on which these tasks hold something."""
    return {task.placement.node for task in tasks if task.placement is not None and task.holds}
