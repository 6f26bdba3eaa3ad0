"""Why: service and control hand the store whole decisions as values, so that each is one durable transaction.

Times are seconds since 1970; the forms that people are shown are in `corral.model.records`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.commands import EngineCommand
from corral.model.facts import Fact
from corral.model.objects import ObjectLink
from corral.model.openpai import OpenPaiListing
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import JobSummary
from corral.model.runs import JobRun, TaskRun


class IntentKind(StrEnum):
    """What a person wants of a job, or its runtime says of it; each is an event of this kind, which control carries out."""

    SUBMITTED = "job.submitted"
    """Run it: `data` is empty, the job is read with `load_job`."""
    STOP = "job.stop-requested"
    """End it."""
    RESTART = "job.restart-requested"
    """Begin it anew."""
    SCALE = "job.scale-requested"
    """`data`: {"role": str, "replicas": int, "remove": [int, …]}."""
    SUSPEND = "job.suspend-requested"
    """End it like one that is preempted, and hold it."""
    RESUME = "job.resume-requested"
    """Let a suspended job go on."""
    MIGRATE = "job.migrate-requested"
    """Have one running task end and begin elsewhere; `data`: {"role": str, "index": int}."""
    ORDER = "job.order-requested"
    """Put it elsewhere among the waiting jobs of its queue; `data`: {"place": `first`, `last`, `before` or `own`, "before":
    the other job's id}."""
    EDIT = "job.edit-requested"
    """Have it wait on other terms; `data`: `model.edits.Edit` as JSON."""
    DELETE = "job.delete-requested"
    """Remove it from the store, once it is over."""
    TAGS = "job.tags-changed"
    """Its tags are others now; `data`: {"tags": [str, …]}."""
    CHECKPOINTED = "job.checkpointed"
    """It saved its work at the time of the event; `data`: {"jobAttempt": int}. Only the latest of a job is kept."""


class StoredFile(msgspec.Struct, frozen=True):
    """The file that a job was submitted as, with placeholders for its secrets, and the parameters given beside it."""

    text: str
    parameters: dict[str, str] = {}
    secrets: dict[str, str] = {}
    """Sealed values of the placeholders by name; empty when it is read."""


def file_owner(job: str) -> str:
    """The owner of the sealed secrets of a job's file."""
    return f"file:{job}"


class NewJob(msgspec.Struct, frozen=True):
    """A job that was accepted and is to be stored; `doc` is the canonical document as JSON text."""

    id: JobId
    user: str
    name: str
    queue: str
    priority: int
    doc: str
    summary: JobSummary
    """How the job is listed until control first writes of it."""
    created_at: float
    actor: str = ""
    """Who submitted it, when not the user."""
    job_type: str = "shell"
    tags: tuple[str, ...] = ()
    secrets: dict[str, str] = {}
    """Sealed values by name."""
    file: StoredFile | None = None
    """What it was submitted as; of an array the first job has it."""
    hold: str = ""
    """`JobRun.hold` at the beginning: `dependency` when it waits for others."""
    depends_on: tuple[JobId, ...] = ()
    array_parent: str = ""
    unique_name: str = "live"
    """`live`: no live job of the user may have the name; `ever`: no job at all; `none`: any number may."""
    idempotency_key: str = ""
    object: ObjectLink | None = None
    """The object of a cluster that it was born as: an object becomes a job at most once."""
    external: bool = False
    """Someone's own controller runs its tasks (`JobRun.external`)."""
    suspended: bool = False
    """It is suspended from its beginning."""
    openpai: OpenPaiListing | None = None
    """Of a job in OpenPAI's language: under what name its callers find it. `unique_name` is then about that name."""
    request_hash: str = ""
    """Tells a repeated request from another one under the same idempotency key."""


class Submitted(msgspec.Struct, frozen=True):
    """What became of a submit; `created` is False when the idempotency key, or the object, had made the job before."""

    id: JobId
    created: bool
    seq: int


class Intent(msgspec.Struct, frozen=True):
    """One intent event, in commit order."""

    seq: int
    job: JobId
    kind: str
    actor: str
    at: float
    data: dict[str, Any] = {}


class JobRecord(msgspec.Struct, frozen=True):
    """One job as stored: what it is, and how it stands."""

    id: JobId
    name: str
    user: str
    queue: str
    priority: int
    job_type: str
    phase: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    revision: int
    doc: str
    run: JobRun
    summary: JobSummary
    live: bool
    array_parent: str = ""
    orphaned: bool = False
    """Whether its account was deleted: one that is made under the same name later does not own it."""


class SubmitLimit(msgspec.Struct, frozen=True):
    """How many jobs one account may submit in an hour by one API; an array counts as one."""

    api: str
    """`corral` or `openpai`."""
    most: int


class LiveJob(msgspec.Struct, frozen=True):
    """One job as control needs it: its document, its run and all its tasks."""

    id: JobId
    name: str
    user: str
    queue: str
    priority: int
    created_at: float
    doc: str
    run: JobRun
    summary: JobSummary
    revision: int
    tasks: dict[TaskKey, TaskRun] = {}
    account: str = ""
    """The id of its account, also when that was deleted; "" is its user's name."""


class JobWrite(msgspec.Struct, frozen=True):
    """The new state of one job."""

    id: JobId
    run: JobRun
    phase: str
    summary: JobSummary
    live: bool
    """Whether `load_live` gives it: its run is not completed."""
    guard: int | None = None
    """The revision that this write was thought out against; another one stored refuses the whole batch."""
    priority: int | None = None
    queue: str | None = None
    doc: str | None = None
    """The canonical document, where it has become another."""


class TaskWrite(msgspec.Struct, frozen=True):
    """The new state of one task; None removes it."""

    job: JobId
    key: TaskKey
    run: TaskRun | None


class AttemptWrite(msgspec.Struct, frozen=True):
    """The history of one attempt; a later write of the same id replaces the earlier one."""

    id: AttemptId
    node: str = ""
    devices: tuple[int, ...] = ()
    started_at: float | None = None
    ended_at: float | None = None
    code: int | None = None
    phrase: str = ""
    exit_class: str = ""
    diagnostics: str = ""
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    user: str = ""


class FactWrite(msgspec.Struct, frozen=True):
    """One fact for the event log."""

    job: JobId
    at: float
    fact: Fact
    actor: str = ""


class ServerEvent(msgspec.Struct, frozen=True):
    """Something that happened to the server itself, and to no job."""

    at: float
    kind: str
    message: str
    actor: str = ""
    """Which process of which machine tells of it."""


class ControlBatch(msgspec.Struct, frozen=True):
    """Everything one cycle of control decided: stored whole or not at all."""

    epoch: int
    cursor: int | None = None
    """The last intent that this batch (or one before it) has folded; None leaves it."""
    jobs: tuple[JobWrite, ...] = ()
    tasks: tuple[TaskWrite, ...] = ()
    attempts: tuple[AttemptWrite, ...] = ()
    facts: tuple[FactWrite, ...] = ()
    outbox_add: tuple[tuple[JobId, EngineCommand], ...] = ()
    outbox_done: tuple[int, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """New ones, and those that were closed."""
    ledger: tuple[LedgerEntry, ...] = ()
    usage: tuple[QueueUsage, ...] = ()
    """What queues held in the past, where that has changed."""
    usage_forgotten: tuple[str, ...] = ()
    """The queues whose past is no matter any more."""
    user_usage: tuple[UserUsage, ...] = ()
    """What users of queues held in the past, where that has changed."""
    user_usage_forgotten: tuple[tuple[str, str], ...] = ()
    """The queues and users whose past is no matter any more."""
    removed_jobs: tuple[JobId, ...] = ()
    """Jobs to remove with everything of theirs but a line of history."""


class CommitResult(msgspec.Struct, frozen=True):
    """`outbox`: the seqs of `outbox_add`, in order; `last_event`: the last event seq of the store."""

    outbox: tuple[int, ...]
    last_event: int


class OutboxRow(msgspec.Struct, frozen=True):
    """A command that is stored and not yet known to have been carried out."""

    seq: int
    job: JobId
    command: EngineCommand


class Holder(msgspec.Struct, frozen=True):
    """The process that leads: boot id, pid and start time name it for ever, whatever pid comes again."""

    host: str
    boot_id: str
    pid: int
    start_time: str
    address: str = ""
    """Where control answers questions, when not on the Unix socket of the data folder."""


class EngineHome(msgspec.Struct, frozen=True):
    """Where the tasks of a database run: a machine of the server's own, or a cluster (`home_of_engine`)."""

    name: str
    """A random name that the engine's folder keeps; for a cluster the engine's."""
    folder: str
    host: str
    machine: str
    """The machine's own id, "" where it has none."""
    boot_id: str


def home_of_engine(name: str) -> EngineHome:
    """The home of tasks of which only the engine is known: pods, which a server on any machine finds in their cluster."""
    return EngineHome(name, "", "", "", "")


class Lease(msgspec.Struct, frozen=True):
    """The right to write as control until `expires_at` (of the own clock) or until another epoch begins."""

    epoch: int
    expires_at: float
    cursor: int
    """The last intent that was folded by any leader."""
    holder: Holder
    renewals: int = 0
