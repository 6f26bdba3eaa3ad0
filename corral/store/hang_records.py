"""What is stored of jobs that hang: an event, and with it what is asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.store_writes import IntentKind
from corral.store.database import Database
from corral.store.job_writes import add_intents
from corral.store.rows import add_events, event_row
from corral.store.writer import Transaction


class HangTold(NamedTuple):
    """What is told of a job, and what is asked for with it."""

    job: JobId
    kind: str
    message: str
    data: dict[str, Any] = {}
    intent: tuple[IntentKind, dict[str, object]] | None = None
    audit: AuditWrite | None = None


class HangRecords(Database):
    """Events of jobs that hang."""

    async def tell_of_hang(self, told: HangTold, now: float, *, actor: str) -> None:
        """Store an event with its intent in one transaction; `now` in seconds since 1970."""

        def run(transaction: Transaction) -> None:
            row = event_row(told.job, now, told.kind, told.message, actor=actor, data=told.data)
            add_events(transaction, [row])
            transaction.ring("front")
            if told.intent is not None:
                kind, data = told.intent
                add_intents(transaction, told.job, kind, [data], actor, now, [told.audit])

        await self.write(run)
