"""Values that service and control write to the store, each in one durable transaction.

Times are seconds since 1970; the API's forms are in `corral.model.records`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.commands import EngineCommand
from corral.model.facts import Fact
from corral.model.kubernetes_objects import ObjectLink
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import JobSummary
from corral.model.runs import JobRun, TaskRun


class IntentKind(StrEnum):
    """Requests on a job by a person, or reports of its runtime; each is stored as an event that control carries out."""

    SUBMITTED = "job.submitted"
    """Run the job; `data` is empty, the job is read with `load_job`."""
    STOP = "job.stop-requested"
    """Stop the job; `data` may have "idle", a clause that says which devices it left idle, and a receipt is written."""
    RESTART = "job.restart-requested"
    """Restart the job; `data` may have "hang", a clause that says how it hung, and then "jobAttempt"."""
    SCALE = "job.scale-requested"
    """`data`: {"role": str, "replicas": int, "remove": [int, …]}; "idle" as for STOP, of the tasks to remove."""
    SUSPEND = "job.suspend-requested"
    """Preempt the job and hold it; `data` may have "idle", as for STOP, or "hang", as for RESTART."""
    RESUME = "job.resume-requested"
    """Resume a suspended job."""
    MIGRATE = "job.migrate-requested"
    """End one running task and start it elsewhere; `data`: {"role": str, "index": int}."""
    ORDER = "job.order-requested"
    """Move the job among the waiting jobs of its queue.

    `data`: {"place": `first`, `last`, `before` or `own`, "before": the other job's id, "beforeName": its name,
    "queue": the queue}.
    """
    EDIT = "job.edit-requested"
    """Change fields of the waiting job; `data`: `model.edits.Edit` as JSON."""
    DELETE = "job.delete-requested"
    """Remove the job from the store, once it is over."""
    TAGS = "job.tags-changed"
    """Replace the job's tags; `data`: {"tags": [str, …]}."""
    CHECKPOINTED = "job.checkpointed"
    """The job saved a checkpoint at the event's time; `data`: {"jobAttempt": int}. Only a job's latest is kept."""
    WORK_REPORTED = "job.work-reported"
    """A task's program reports its work.

    `data`: {"jobAttempt": int, "role": str, "index": int, "report": `model.runs.WorkReport` as JSON}.

    Only a job's latest is kept.
    """


class StoredFile(msgspec.Struct, frozen=True):
    """The file that a job was submitted with, with placeholders for its secrets, and its parameters."""

    text: str
    parameters: dict[str, str] = {}
    secrets: dict[str, str] = {}
    """Sealed values by placeholder name; empty when the file is read back."""


def file_owner(job: str) -> str:
    """The owner name under which the sealed secrets of a job's file are stored."""
    return f"file:{job}"


class SubmittedAs(msgspec.Struct, frozen=True):
    """The name that a job was submitted under in a tenant's language, as a row of the tenant's table of names."""

    table: str
    """The table, one of the tenants' `corral.store.tenant_tables.JobNames`."""
    name: str
    """The name as submitted; it may have capitals and be longer than a DNS label."""
    columns: dict[str, str | int | None] = {}
    """Further columns of the row, such as those that the tenant's lists show."""


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """An accepted job to store; `doc` is the canonical document as JSON text."""

    id: JobId
    user: str
    name: str
    queue: str
    priority: int
    doc: str
    summary: JobSummary
    """The job's list entry until control first writes one."""
    created_at: float
    actor: str = ""
    """The account that submitted it, if not the user."""
    job_type: str = "shell"
    tags: tuple[str, ...] = ()
    secrets: dict[str, str] = {}
    """Sealed values by name."""
    file: StoredFile | None = None
    """The submitted file; in an array only the first job has it."""
    hold: str = ""
    """The first `JobRun.hold`: `dependency` if it waits for other jobs."""
    depends_on: tuple[JobId, ...] = ()
    array_parent: str = ""
    unique_name: str = "live"
    """`live`: no live job of the user may have the name; `ever`: no job at all; `none`: any number may."""
    idempotency_key: str = ""
    object: ObjectLink | None = None
    """The Kubernetes object that it was created from; an object becomes a job at most once."""
    external: bool = False
    """Whether another controller runs its tasks (`JobRun.external`)."""
    suspended: bool = False
    """Whether it is suspended from the start."""
    submitted_as: SubmittedAs | None = None
    """For a job in a dialect with names of its own; `unique_name` then applies to that name, among the dialect's jobs."""
    request_hash: str = ""
    """A hash that tells a repeated request from another one with the same idempotency key."""


class Submitted(msgspec.Struct, frozen=True):
    """The result of a submit; `created` is False if the idempotency key or the object already had a job."""

    id: JobId
    created: bool
    seq: int
    notes: tuple[str, ...] = ()
    """Warnings for the submitter."""


class Intent(msgspec.Struct, frozen=True, gc=False):
    """One intent event; `seq` follows commit order."""

    seq: int
    job: JobId
    kind: str
    actor: str
    at: float
    data: dict[str, Any] = {}


class JobRecord(msgspec.Struct, frozen=True):
    """One job as stored, with its run and its list entry."""

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
    """Whether its account was deleted; a later account of the same name does not own it."""


class SubmitLimit(msgspec.Struct, frozen=True):
    """Jobs that one account may submit per hour through one API; an array counts as one."""

    api: str
    """`corral`, or the name of the tenant whose API it is."""
    most: int


class LiveJob(msgspec.Struct, frozen=True, gc=False):
    """One live job with its document, its run and all its tasks, as control needs it."""

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
    """The id of its account, even if the account was deleted; "" stands for the user's name."""


class JobWrite(msgspec.Struct, frozen=True, gc=False):
    """The new state of one job."""

    id: JobId
    run: JobRun
    phase: str
    summary: JobSummary
    live: bool
    """Whether `load_live` loads it: its run is not completed."""
    guard: int | None = None
    """The revision that this write is based on; if another one is stored, the whole batch is refused."""
    priority: int | None = None
    queue: str | None = None
    doc: str | None = None
    """The canonical document, if it changed."""


class TaskWrite(msgspec.Struct, frozen=True, gc=False):
    """The new state of one task; None removes it."""

    job: JobId
    key: TaskKey
    run: TaskRun | None


class AttemptWrite(msgspec.Struct, frozen=True, gc=False):
    """The history entry of one attempt; a later write with the same id replaces it."""

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
    device_millis: int = 0
    """Thousandths of devices that it holds; a part of a device counts as a part."""
    model: str = ""
    """The model of its devices; "" if they are of several or of no known one, or it has none."""
    cpu_millis: int = 0
    """Thousandths of processors that it asked for."""
    memory_bytes: int = 0
    """The memory that it asked for."""


class FactWrite(msgspec.Struct, frozen=True, gc=False):
    """One fact for the event log."""

    job: JobId
    at: float
    fact: Fact
    actor: str = ""


class ServerEvent(msgspec.Struct, frozen=True):
    """An event of the server itself, of no job."""

    at: float
    kind: str
    message: str
    actor: str = ""
    """The process and machine that report it."""


class ControlBatch(msgspec.Struct, frozen=True, gc=False):
    """All decisions of one control cycle, stored in one transaction."""

    epoch: int
    cursor: int | None = None
    """The last intent folded by this batch or an earlier one; None leaves it unchanged."""
    jobs: tuple[JobWrite, ...] = ()
    tasks: tuple[TaskWrite, ...] = ()
    attempts: tuple[AttemptWrite, ...] = ()
    facts: tuple[FactWrite, ...] = ()
    outbox_add: tuple[tuple[JobId, EngineCommand], ...] = ()
    outbox_done: tuple[int, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """New receipts and closed ones."""
    ledger: tuple[LedgerEntry, ...] = ()
    usage: tuple[QueueUsage, ...] = ()
    """Changed usage history of queues."""
    usage_forgotten: tuple[str, ...] = ()
    """The queues whose usage history is deleted."""
    user_usage: tuple[UserUsage, ...] = ()
    """Changed usage history of queue users."""
    user_usage_forgotten: tuple[tuple[str, str], ...] = ()
    """The queues and users whose usage history is deleted."""
    server_events: tuple[ServerEvent, ...] = ()
    """Events of the server, of no job."""
    removed_jobs: tuple[JobId, ...] = ()
    """Jobs to remove with all their data except a history line."""


class CommitResult(msgspec.Struct, frozen=True, gc=False):
    """`outbox`: the seqs of `outbox_add`, in order; `last_event`: the last event seq of the store."""

    outbox: tuple[int, ...]
    last_event: int


class OutboxRow(msgspec.Struct, frozen=True, gc=False):
    """A stored command that is not yet known to have been carried out."""

    seq: int
    job: JobId
    command: EngineCommand


class Holder(msgspec.Struct, frozen=True):
    """The leading process; boot id, pid and start time identify it even if its pid is reused."""

    host: str
    boot_id: str
    pid: int
    start_time: str
    address: str = ""
    """Where control answers questions, if not on the Unix socket of the data folder."""


class EngineHome(msgspec.Struct, frozen=True):
    """Where the tasks of a database run: a machine with the server's own engine, or a cluster (`home_of_engine`)."""

    name: str
    """A random name stored in the engine's folder; for a cluster, the engine's name."""
    folder: str
    host: str
    machine: str
    """The machine's id; "" if it has none."""
    boot_id: str


def home_of_engine(name: str) -> EngineHome:
    """The home of tasks on a cluster: only the engine is known, and a server on any machine finds the pods there."""
    return EngineHome(name, "", "", "", "")


class Lease(msgspec.Struct, frozen=True):
    """The right to write as control, until `expires_at` (by the holder's own clock) or until another epoch begins."""

    epoch: int
    expires_at: float
    cursor: int
    """The last intent that any leader has folded."""
    holder: Holder
    renewals: int = 0
