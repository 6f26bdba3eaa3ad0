"""What is done about jobs for used-up budgets, and of which budgets their owners were told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import select

from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.store_writes import IntentKind
from corral.store import tables
from corral.store.database import Database
from corral.store.job_writes import add_intents
from corral.store.rows import add_events, encode, event_row, put
from corral.store.writer import Transaction

_settings = tables.settings
_KEY: Final = "budgets.told"
_MARKS: Final = msgspec.json.Decoder(dict[str, float])


class JobRuling(NamedTuple):
    """What is done about one job: an event tells its owner, or an intent with its audit line, which tells by itself."""

    job: JobId
    event: tuple[str, str] | None = None
    """Kind and message."""
    intent: tuple[IntentKind, dict[str, object]] | None = None
    audit: AuditWrite | None = None


class BudgetRulings(Database):
    """Rulings about live jobs, and the marks of used-up budgets of which their owners were told."""

    async def budget_marks(self) -> dict[str, float]:
        """The marks that were kept last."""
        query = select(_settings.c.value).where(_settings.c.key == _KEY)
        text = await self.read(lambda connection: connection.execute(query).scalar())
        return {} if text is None else _MARKS.decode(text)

    async def keep_rulings(
        self, found: Sequence[JobRuling], marks: Mapping[str, float], now: float, *, actor: str
    ) -> None:
        """Store rulings and the marks in one transaction."""

        def run(transaction: Transaction) -> None:
            put(transaction, _settings, [{"key": _KEY, "value": encode(marks)}])
            told = [event_row(each.job, now, *each.event, actor=actor) for each in found if each.event is not None]
            if told:
                add_events(transaction, told)
                transaction.ring("front")
            for each in found:
                if each.intent is not None:
                    kind, data = each.intent
                    add_intents(transaction, each.job, kind, [data], actor, now, [each.audit])

        await self.write(run)
