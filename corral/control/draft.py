"""The pending writes of one cycle: the last state of each thing, stored in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.commands import EngineCommand
from corral.model.facts import Fact
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.runs import TaskRun
from corral.model.writes import AttemptWrite, ControlBatch, FactWrite, JobWrite, TaskWrite


@dataclass
class Draft:
    """The content of the next commit; filled while the loop folds, plans and observes."""

    cursor: int | None = None
    jobs: set[JobId] = field(default_factory=set)
    edited: set[JobId] = field(default_factory=set)
    """Those of `jobs` whose documents have changed."""
    tasks: dict[tuple[JobId, TaskKey], TaskRun | None] = field(default_factory=dict)
    attempts: dict[AttemptId, AttemptWrite] = field(default_factory=dict)
    facts: list[FactWrite] = field(default_factory=list)
    outbox: list[tuple[JobId, EngineCommand]] = field(default_factory=list)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    ledger: dict[tuple[str, str], LedgerEntry] = field(default_factory=dict)
    usage: dict[str, QueueUsage | None] = field(default_factory=dict)
    """The past usage of queues; None deletes it."""
    user_usage: dict[tuple[str, str], UserUsage | None] = field(default_factory=dict)
    """The past usage of users, by queue and user; None deletes it."""
    removed: list[JobId] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        told = self.jobs or self.tasks or self.facts or self.outbox or self.receipts
        return self.cursor is None and not (told or self.ledger or self.usage or self.user_usage or self.removed)

    def tell(self, job: JobId, at: float, fact: Fact, actor: str = "") -> None:
        """Add a fact to the event log."""
        self.facts.append(FactWrite(job, at, fact, actor))

    def batch(self, epoch: int, jobs: tuple[JobWrite, ...], done: tuple[int, ...]) -> ControlBatch:
        """The draft as the batch that the store commits."""
        return ControlBatch(
            epoch=epoch,
            cursor=self.cursor,
            jobs=jobs,
            tasks=tuple(TaskWrite(job, key, run) for (job, key), run in self.tasks.items()),
            attempts=tuple(self.attempts.values()),
            facts=tuple(self.facts),
            outbox_add=tuple(self.outbox),
            outbox_done=done,
            receipts=tuple(self.receipts.values()),
            ledger=tuple(self.ledger.values()),
            usage=tuple(usage for usage in self.usage.values() if usage is not None),
            usage_forgotten=tuple(queue for queue, usage in self.usage.items() if usage is None),
            user_usage=tuple(usage for usage in self.user_usage.values() if usage is not None),
            user_usage_forgotten=tuple(key for key, usage in self.user_usage.items() if usage is None),
            removed_jobs=tuple(self.removed),
        )
