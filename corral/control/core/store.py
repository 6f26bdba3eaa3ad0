"""The store that a core is recovered from and written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from corral.kernel.ids import JobId
from corral.model.accounts import User
from corral.model.cordons import Cordon
from corral.model.document_revisions import Documents
from corral.model.inventory import Node
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.records import EventRecord
from corral.model.store_writes import CommitResult, ControlBatch, Intent, LiveJob, OutboxRow


class StoredNode(Protocol):
    """A node as it was stored last."""

    @property
    def node(self) -> Node:
        """What its engine said of it."""
        ...


class CoreStore(Protocol):
    """A shell awaits these calls, never a core. Each raises Unavailable when the store does not answer."""

    async def load_live(self) -> Sequence[LiveJob]:
        """Every job that is not over, oldest first."""
        ...

    async def load_jobs(self, jobs: Sequence[JobId]) -> Sequence[LiveJob]:
        """Those of `jobs` that are there, live or over."""
        ...

    async def user(self, name: str) -> User | None:
        """An account, for the groups of its jobs."""
        ...

    async def intents(self, after_seq: int, limit: int = 1000) -> Sequence[Intent]:
        """The requests stored after `after_seq`, in commit order."""
        ...

    async def events_of(self, job: str, *, kinds: tuple[str, ...] = ()) -> Sequence[EventRecord]:
        """The latest events of a job (of some kinds), the latest first."""
        ...

    async def all_documents(self) -> Documents:
        """Every document as it is now."""
        ...

    async def cordons(self) -> Mapping[str, Cordon]:
        """The nodes that are closed to new tasks, by name."""
        ...

    async def node(self, name: str) -> StoredNode | None:
        """A node as it was stored last."""
        ...

    async def open_receipts(self) -> Sequence[Receipt]:
        """The receipts of jobs that have not come back and are not over."""
        ...

    async def ledger(self) -> Sequence[LedgerEntry]:
        """What queues lent each other."""
        ...

    async def usage(self) -> Sequence[QueueUsage]:
        """The decayed use of queues."""
        ...

    async def user_usage(self) -> Sequence[UserUsage]:
        """The decayed use of the users of queues."""
        ...

    async def ended_service(self, most: int) -> Sequence[float]:
        """The device-seconds attained by those of the latest `most` ended jobs that ran, in the order of their ends."""
        ...

    async def outbox(self) -> Sequence[OutboxRow]:
        """The commands not known to have been carried out, in order."""
        ...

    async def put_nodes(self, epoch: int, engine: str, found: Sequence[Node], at: float) -> None:
        """Store the nodes of an engine as seen now.

        Raises LeadershipLost.
        """
        ...

    async def commit(self, batch: ControlBatch) -> CommitResult:
        """Store what a step decided, whole or not at all.

        Raises LeadershipLost when another epoch has begun, Conflict when a guard does not hold.
        """
        ...
