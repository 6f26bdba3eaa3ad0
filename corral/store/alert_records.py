"""The state of alerts, and silences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from sqlalchemy import delete, func, select

from corral.kernel.errors import Conflict
from corral.model.accounts import AuditWrite
from corral.model.alerts.stored import MOST_ALERTS, MOST_SILENCES, AlertSource, Silence, StoredAlert
from corral.store import tables
from corral.store.alert_history import note_changes
from corral.store.audit import write_audit
from corral.store.database import Database, rows
from corral.store.rows import encode, put
from corral.store.writer import Transaction

_alerts, _silences = tables.alerts, tables.silences
_ALERT: Final = msgspec.json.Decoder(StoredAlert)
_SILENCE: Final = msgspec.json.Decoder(Silence)
_STATES: Final = ("firing", "pending", "resolved")
_AT_ONCE: Final = 500

Merge = Callable[[Mapping[str, StoredAlert]], Sequence[StoredAlert]]
"""Makes the alerts of a source from the earlier ones by fingerprint."""


class AlertRecords(Database):
    """Alerts and silences. Times are in seconds since 1970."""

    async def alerts(self, source: str = "") -> list[StoredAlert]:
        """All alerts, or those of one source; those that fire first, then by time."""
        query = select(_alerts.c.doc)
        if source:
            query = query.where(_alerts.c.source == source)
        found = await self.read(lambda connection: rows(connection, query))
        return _in_order([_ALERT.decode(row.doc) for row in found])

    async def replace_alerts(self, source: AlertSource, merge: Merge) -> None:
        """Replace the alerts of a source; of more than MOST_ALERTS those that fire and are older stay.

        Those that began or ceased to fire are in the history.
        """

        def run(transaction: Transaction) -> None:
            query = select(_alerts.c.fingerprint, _alerts.c.doc).where(_alerts.c.source == str(source))
            before = {row.fingerprint: row.doc for row in transaction.read(query)}
            known = {key: _ALERT.decode(doc) for key, doc in before.items()}
            merged = _in_order(list(merge(dict(known))))[:MOST_ALERTS]
            after = {each.fingerprint: encode(each) for each in merged}
            note_changes(transaction, known, {each.fingerprint: each for each in merged}, self.clock.now())
            gone = [key for key in before if key not in after]
            for begin in range(0, len(gone), _AT_ONCE):
                named = _alerts.c.fingerprint.in_(gone[begin : begin + _AT_ONCE])
                transaction.write(delete(_alerts).where(_alerts.c.source == str(source), named))
            changed = [
                {"source": str(source), "fingerprint": key, "doc": doc}
                for key, doc in after.items()
                if before.get(key) != doc
            ]
            if changed:
                put(transaction, _alerts, changed)

        await self.write(run)

    async def silences(self, now: float) -> list[Silence]:
        """The silences that have not ended, the one that ends first first."""
        query = select(_silences.c.doc).where(_silences.c.ends_at > now).order_by(_silences.c.ends_at)
        return [_SILENCE.decode(row.doc) for row in await self.read(lambda connection: rows(connection, query))]

    async def add_silence(self, silence: Silence, *, audit: AuditWrite | None = None) -> None:
        """Store a silence, and forget those that have ended. Raises Conflict if there are too many."""

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_silences).where(_silences.c.ends_at <= silence.begins))
            if transaction.read(select(func.count()).select_from(_silences)).scalar_one() >= MOST_SILENCES:
                raise Conflict("too-many-silences", f"There are {MOST_SILENCES} silences; end some of them first.")
            put(transaction, _silences, [{"id": silence.id, "ends_at": silence.ends, "doc": encode(silence)}])
            write_audit(transaction, audit)

        await self.write(run)

    async def remove_silence(self, silence: str, *, audit: AuditWrite | None = None) -> bool:
        """End a silence; False when there is none of that id."""

        def run(transaction: Transaction) -> bool:
            if not transaction.write(delete(_silences).where(_silences.c.id == silence)).rowcount:
                return False
            write_audit(transaction, audit)
            return True

        return await self.write(run)


def _in_order(alerts: list[StoredAlert]) -> list[StoredAlert]:
    return sorted(alerts, key=lambda each: (_STATES.index(each.state), each.since, each.rule, each.fingerprint))
