"""Alerts that fired, each from when it began until its end: kept for 90 days and 20,000 alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, and_, delete, select

from corral.model.alerts.stored import PastAlert, StoredAlert, user_of
from corral.model.records import Page
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

KEPT_SECONDS: Final = 90 * 86_400.0
"""Seconds after an alert's end for which it is kept."""
MOST_KEPT: Final = 20_000
_AT_ONCE: Final = 500
_MOST_LOOKED_AT: Final = 10_000
"""Alerts that are looked at for one page."""
_history = tables.alert_history
_ALERT: Final = msgspec.json.Decoder(StoredAlert)


class AlertHistory(Database):
    """The alerts that fired. Times are in seconds since 1970."""

    async def past_alerts(
        self,
        fits: Callable[[PastAlert], bool],
        *,
        begin: float,
        end: float,
        about: str | None = None,
        limit: int = 100,
        after_cursor: str = "",
    ) -> Page[PastAlert]:
        """One page of the alerts that began to fire between two times and fit, the latest first.

        With `about` only those about jobs of this user. A page may have fewer alerts than there are, and a cursor for the
        others. Raises InvalidInput for an invalid cursor.
        """
        order: list[tuple[ColumnElement[Any], bool]] = [
            (_history.c.fired_at, True),
            (_history.c.source, False),
            (_history.c.fingerprint, False),
        ]
        query = select(_history).where(_history.c.fired_at >= begin, _history.c.fired_at < end)
        query = query.order_by(*(column.desc() if descending else column for column, descending in order))
        if about is not None:
            query = query.where(_history.c.about == clean(about))
        key, found, looked_at = read_cursor(after_cursor, (float, str, str)), list[PastAlert](), 0
        while True:
            further = query if key is None else query.where(after(order, key))
            part = await self.read(partial(rows, statement=further.limit(_AT_ONCE)))
            for row in part:
                key = row.fired_at, row.source, row.fingerprint
                looked_at += 1
                past = PastAlert(_ALERT.decode(row.doc), row.fired_at, row.ended_at)
                if fits(past):
                    found.append(past)
                if len(found) == bounded(limit) or looked_at == _MOST_LOOKED_AT:
                    return Page(found, write_cursor(key))
            if len(part) < _AT_ONCE:
                return Page(found)


def note_changes(
    transaction: Transaction, before: Mapping[str, StoredAlert], after: Mapping[str, StoredAlert], now: float
) -> None:
    """Write down the alerts of a source that began or ceased to fire; forget those that are old."""
    changed = [_row(alert, ended) for alert, ended in _changes(before, after, now)]
    if not changed:
        return
    put(transaction, _history, changed)
    old = and_(_history.c.ended_at > 0, _history.c.ended_at < now - KEPT_SECONDS)
    transaction.write(delete(_history).where(old))
    beyond = select(_history.c.fired_at).order_by(_history.c.fired_at.desc()).offset(MOST_KEPT).limit(1)
    if (latest := transaction.read(beyond).scalar()) is not None:
        transaction.write(delete(_history).where(_history.c.fired_at <= latest))


def _changes(
    before: Mapping[str, StoredAlert], after: Mapping[str, StoredAlert], now: float
) -> Iterator[tuple[StoredAlert, float]]:
    """Alerts that fired, with their ends; 0 for those that fire."""
    for key, old in before.items():
        new = after.get(key)
        if old.state == "firing" and (new is None or new.fired_at != old.fired_at):
            ended = min(now, old.expires_at) if old.expires_at else now
            yield old, max(ended, old.fired_at)  # a clock may have been set back
    for key, new in after.items():
        known = before.get(key)
        same = known is not None and (known.state, known.fired_at) == (new.state, new.fired_at)
        if new.fired_at and new.state in ("firing", "resolved") and not same:
            yield new, (new.resolved_at or now) if new.state == "resolved" else 0.0


def _row(alert: StoredAlert, ended: float) -> dict[str, object]:
    return {
        "source": str(alert.source),
        "fingerprint": alert.fingerprint,
        "fired_at": alert.fired_at,
        "ended_at": ended,
        "about": clean(user_of(alert.labels)),
        "doc": encode(alert),
    }
