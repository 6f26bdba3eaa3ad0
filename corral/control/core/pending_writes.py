"""The writes that one step of the core has gathered, the last state of each thing only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.commands import EngineCommand
from corral.model.facts import Fact
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.runs import TaskRun
from corral.model.store_writes import AttemptWrite, ControlBatch, FactWrite, JobWrite, ServerEvent, TaskWrite

Key = TypeVar("Key")
Use = TypeVar("Use", QueueUsage, UserUsage)


class LogLine(NamedTuple):
    """Something that should not have come up; the shell logs it."""

    event: str
    data: dict[str, Any]


@dataclass(slots=True)
class PendingWrites:
    """What the next commit will write; the core fills it while it folds and plans."""

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
    server_events: list[ServerEvent] = field(default_factory=list)
    removed: list[JobId] = field(default_factory=list)
    ended: set[JobId] = field(default_factory=set)
    """Jobs that are over and whose history the planner still has; not part of the writes."""
    warnings: list[LogLine] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        told = self.jobs or self.tasks or self.facts or self.outbox or self.receipts or self.server_events
        return self.cursor is None and not (told or self.ledger or self.usage or self.user_usage or self.removed)

    def tell(self, job: JobId, at: float, fact: Fact, actor: str = "") -> None:
        """Add a fact to the event log."""
        self.facts.append(FactWrite(job, at, fact, actor))

    def warn(self, event: str, **data: Any) -> None:
        """Have the log say that something should not have come up."""
        self.warnings.append(LogLine(event, data))

    def batch(self, jobs: tuple[JobWrite, ...]) -> ControlBatch:
        """The writes as the store takes them, but for the epoch and the commands that were carried out."""
        return ControlBatch(
            epoch=0,
            cursor=self.cursor,
            jobs=jobs,
            tasks=tuple([TaskWrite(job, key, run) for (job, key), run in self.tasks.items()]),
            attempts=tuple(self.attempts.values()),
            facts=tuple(self.facts),
            outbox_add=tuple(self.outbox),
            receipts=tuple(self.receipts.values()),
            ledger=tuple(self.ledger.values()),
            usage=_known(self.usage) if self.usage else (),
            usage_forgotten=_forgotten(self.usage) if self.usage else (),
            user_usage=_known(self.user_usage) if self.user_usage else (),
            user_usage_forgotten=_forgotten(self.user_usage) if self.user_usage else (),
            server_events=tuple(self.server_events),
            removed_jobs=tuple(self.removed),
        )


def _known(usages: Mapping[Any, Use | None]) -> tuple[Use, ...]:
    return tuple([usage for usage in usages.values() if usage is not None])


def _forgotten(usages: Mapping[Key, object]) -> tuple[Key, ...]:
    return tuple([key for key, usage in usages.items() if usage is None])
