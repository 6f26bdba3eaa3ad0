"""A core's store in memory, for simulations and tests: nothing outlives the process, nobody else leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.inputs import Recovered
from corral.control.core.intents import needed_jobs
from corral.control.core.machines import MachinesSeen
from corral.control.core.new_jobs import stored_job
from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId, TaskKey
from corral.model.accounts import User
from corral.model.cordons import Cordon
from corral.model.document_revisions import Documents
from corral.model.inventory import Node
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import EventRecord, rfc3339
from corral.model.runs import JobRun, TaskRun
from corral.model.store_writes import (
    CommitResult,
    ControlBatch,
    FactWrite,
    Intent,
    IntentKind,
    JobWrite,
    LiveJob,
    NewJob,
    OutboxRow,
    ServerEvent,
)


class MemoryNode(msgspec.Struct, frozen=True):
    """A node as it was stored last."""

    node: Node


@dataclass(slots=True)
class _Row:
    """One job as it was written last."""

    new: NewJob
    run: JobRun
    live: bool = True
    revision: int = 0
    tasks: dict[TaskKey, TaskRun] = field(default_factory=dict)
    written: JobWrite | None = None

    def record(self) -> LiveJob:
        new, last = self.new, self.written
        return LiveJob(
            id=new.id,
            name=new.name,
            user=new.user,
            queue=new.queue,
            priority=new.priority,
            created_at=new.created_at,
            doc=new.doc,
            run=self.run,
            summary=last.summary if last is not None else new.summary,
            revision=self.revision,
            tasks=dict(self.tasks),
        )


class MemoryStore:
    """Jobs, requests and events; the calls of `CoreStore` never wait, and those without `async` do the same work."""

    def __init__(
        self, documents: Documents | None = None, users: Sequence[User] = (), *, first_intent: int = 1
    ) -> None:
        """`first_intent` is the number of the first request, after those that a core has folded elsewhere."""
        self.documents = documents or Documents(0, ())
        self.users = {user.name: user for user in users}
        self.facts: list[FactWrite] = []
        """What happened, in order."""
        self.server_events: list[ServerEvent] = []
        """What the server told of itself, in order."""
        self.nodes: dict[str, dict[str, Node]] = {}
        """By engine and name."""
        self.closed_nodes: dict[str, Cordon] = {}
        self.receipts: dict[str, Receipt] = {}
        """The receipts of all preemptions, by id."""
        self._rows: dict[JobId, _Row] = {}
        self._live: dict[JobId, None] = {}
        self._intents: list[Intent] = []
        self._outbox: dict[int, OutboxRow] = {}
        self._ledger: dict[tuple[str, str], LedgerEntry] = {}
        self._usage: dict[str, QueueUsage] = {}
        self._user_usage: dict[tuple[str, str], UserUsage] = {}
        self._seqs = count(1)
        self._first_intent = first_intent

    # ---- what a service would write

    def submit(self, job: NewJob) -> None:
        """Store a job, and the request to run it."""
        run = JobRun(job.id, hold=job.hold, suspended=job.suspended, external=job.external)
        self._rows[job.id] = _Row(job, run)
        self._live[job.id] = None
        self.add_intent(job.id, IntentKind.SUBMITTED, {}, actor=job.actor or job.user, at=job.created_at)

    def add_intent(self, job: JobId, kind: str, data: dict[str, Any], *, actor: str, at: float) -> None:
        """Store a request of a user."""
        self._intents.append(Intent(self._first_intent + len(self._intents), job, kind, actor, at, data))

    def hold(self, record: LiveJob) -> None:
        """Take over a live job as another store has it."""
        new = stored_job(
            record.id, record.created_at, record.doc,
            name=record.name, user=record.user, queue=record.queue, priority=record.priority,
        )  # fmt: skip
        self._rows[record.id] = _Row(new, record.run, revision=record.revision, tasks=dict(record.tasks))
        self._live[record.id] = None

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Drop jobs that are over."""
        for job in jobs:
            self._rows.pop(job, None)
            self._live.pop(job, None)

    # ---- what a core reads and writes

    def intents_after(self, seq: int, limit: int = 1000) -> list[Intent]:
        """The requests after `seq`, in order."""
        begin = max(0, seq + 1 - self._first_intent)
        return self._intents[begin : begin + limit]

    def jobs(self, ids: Sequence[JobId]) -> list[LiveJob]:
        """Those of these jobs that are there, live or over."""
        return [self._rows[job].record() for job in ids if job in self._rows]

    def groups(self, users: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The groups of users, of those that have an account."""
        return {name: self.users[name].groups for name in users if name in self.users}

    def recovered(self, configured: Configured, cursor: int, machines: Sequence[MachinesSeen]) -> Recovered:
        """What a core begins with that takes over now; `cursor` is the last request that was folded."""
        jobs = self.jobs(sorted(self._live))
        needed = self.jobs(needed_jobs(jobs, ()))
        return Recovered(
            configured,
            cursor,
            jobs=jobs,
            needed={each.id: each for each in needed},
            groups=self.groups({each.user for each in (*jobs, *needed)}),
            cordons=dict(self.closed_nodes),
            machines=machines,
            receipts=[each for each in self.receipts.values() if each.returned_at is None and not each.over],
            ledger=list(self._ledger.values()),
            usage=list(self._usage.values()),
            user_usage=list(self._user_usage.values()),
            ended_service=self._ended_service(),
        )

    def write(self, batch: ControlBatch) -> CommitResult:
        """Store what a step decided.

        Raises Conflict when a job was written since the step read it.
        """
        for write in batch.jobs:
            if write.guard is not None and self._rows[write.id].revision != write.guard:
                raise Conflict("stale-revision", f"Job {write.id} has changed since it was read; read it again.")
        for write in batch.jobs:
            self._write_job(write)
        outbox, seqs = self._outbox, list[int]()
        for task in batch.tasks:
            tasks = self._rows[task.job].tasks
            if task.run is None:
                tasks.pop(task.key, None)
            else:
                tasks[task.key] = task.run
        self.facts.extend(batch.facts)
        self.server_events.extend(batch.server_events)
        for receipt in batch.receipts:
            self.receipts[receipt.id] = receipt
        for entry in batch.ledger:
            self._ledger[entry.lender, entry.borrower] = entry
        self._write_usage(batch)
        self.done(batch.outbox_done)
        for job, command in batch.outbox_add:
            seq = next(self._seqs)
            outbox[seq] = OutboxRow(seq, job, command)
            seqs.append(seq)
        for job in batch.removed_jobs:
            self._rows.pop(job, None)
        return CommitResult(tuple(seqs), len(self.facts))

    def done(self, seqs: Iterable[int]) -> None:
        """These commands were carried out."""
        for seq in seqs:
            self._outbox.pop(seq, None)

    def _write_job(self, write: JobWrite) -> None:
        row = self._rows[write.id]
        row.run, row.live, row.written = write.run, write.live, write
        row.revision += 1
        if write.live:
            self._live[write.id] = None
        else:
            self._live.pop(write.id, None)
        if write.doc is not None:
            row.new = msgspec.structs.replace(
                row.new, doc=write.doc, queue=write.queue or row.new.queue, priority=write.priority or 0
            )

    def _write_usage(self, batch: ControlBatch) -> None:
        for usage in batch.usage:
            self._usage[usage.queue] = usage
        for queue in batch.usage_forgotten:
            self._usage.pop(queue, None)
        for of_user in batch.user_usage:
            self._user_usage[of_user.queue, of_user.user] = of_user
        for key in batch.user_usage_forgotten:
            self._user_usage.pop(key, None)

    # ---- CoreStore

    async def load_live(self) -> list[LiveJob]:
        """Every job that is not over, oldest first."""
        return self.jobs(sorted(self._live))

    async def load_jobs(self, jobs: Sequence[JobId]) -> list[LiveJob]:
        """Those of `jobs` that are there, live or over."""
        return self.jobs(jobs)

    async def user(self, name: str) -> User | None:
        """An account."""
        return self.users.get(name)

    async def intents(self, after_seq: int, limit: int = 1000) -> list[Intent]:
        """The requests after `after_seq`, in order."""
        return self.intents_after(after_seq, limit)

    async def events_of(self, job: str, *, kinds: tuple[str, ...] = ()) -> list[EventRecord]:
        """The events of a job (of some kinds), the latest first."""
        return [
            EventRecord(
                seq=seq, at=rfc3339(each.at), job=each.job, kind=each.fact.kind, message=each.fact.message,
                actor=each.actor, data=dict(each.fact.data),
            )
            for seq, each in reversed(list(enumerate(self.facts, 1)))
            if each.job == job and (not kinds or each.fact.kind in kinds)
        ]  # fmt: skip

    async def all_documents(self) -> Documents:
        """Every document."""
        return self.documents

    async def cordons(self) -> Mapping[str, Cordon]:
        """The nodes that are closed to new tasks."""
        return dict(self.closed_nodes)

    async def node(self, name: str) -> MemoryNode | None:
        """A node as it was stored last."""
        found = next((nodes[name] for nodes in self.nodes.values() if name in nodes), None)
        return None if found is None else MemoryNode(found)

    async def open_receipts(self) -> list[Receipt]:
        """The receipts of jobs that have not come back and are not over."""
        return [each for each in self.receipts.values() if each.returned_at is None and not each.over]

    async def ledger(self) -> list[LedgerEntry]:
        """What queues lent each other."""
        return list(self._ledger.values())

    async def usage(self) -> list[QueueUsage]:
        """The decayed use of queues."""
        return list(self._usage.values())

    async def user_usage(self) -> list[UserUsage]:
        """The decayed use of the users of queues."""
        return list(self._user_usage.values())

    async def ended_service(self, most: int) -> list[float]:
        """The device-seconds attained by those of the latest `most` ended jobs that ran, in the order of their ends."""
        return self._ended_service()[-most:]

    def _ended_service(self) -> list[float]:
        over = [row.run for row in self._rows.values() if not row.live and row.run.served is not None]
        over.sort(key=lambda run: (run.ended_at or 0.0, run.job))
        return [run.served.device_seconds for run in over if run.served is not None and run.served.starts]

    async def outbox(self) -> list[OutboxRow]:
        """The commands not known to have been carried out."""
        return list(self._outbox.values())

    async def put_nodes(self, epoch: int, engine: str, found: Sequence[Node], at: float) -> None:
        """Store the nodes of an engine."""
        self.nodes[engine] = {node.name: node for node in found}

    async def commit(self, batch: ControlBatch) -> CommitResult:
        """Like `write`."""
        return self.write(batch)
