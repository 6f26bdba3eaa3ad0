"""Messages that wait to be sent, and those that were: bounded in number and age, each occasion once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import delete, exists, func, insert, select, update

from corral.model.notifications.channels import (
    KEPT_SECONDS,
    MOST_KEPT,
    MOST_QUEUED,
    MOST_QUEUED_IN_ALL,
    JobEvent,
    NotificationView,
    Outgoing,
    Queued,
)
from corral.model.notifications.happenings import KINDS
from corral.model.notifications.messages import Message
from corral.model.records import Page, rfc3339
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.paging import bounded, read_cursor, write_cursor
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

CURSOR: Final = "notifications-seq"
"""The setting with the seq of the last event that was looked at."""
_outbox: Final = tables.notify_outbox
_MESSAGE: Final = msgspec.json.Decoder(Message)
_DATA: Final = msgspec.json.Decoder(dict[str, Any])
_SCANNED: Final = 5_000
"""Numbers of events that one read looks through."""
_AT_ONCE: Final = 500


class NotificationOutbox(Database):
    """The messages to people."""

    async def job_events(self, after: int, last: int) -> tuple[int, list[JobEvent]]:
        """Events that may be told with a seq after `after`, and the seq up to which was looked, `last` at most."""
        events, jobs, orphans = tables.events, tables.jobs, tables.orphaned_jobs
        reached = min(last, after + _SCANNED)
        query = (
            select(events, jobs.c.name, jobs.c.user, jobs.c.queue)
            .join(jobs, jobs.c.id == events.c.job)
            .outerjoin(orphans, orphans.c.job == events.c.job)
            .where(events.c.seq > after, events.c.seq <= reached, events.c.kind.in_(KINDS), orphans.c.job.is_(None))
            .order_by(events.c.seq)
        )
        found = await self.read(lambda connection: rows(connection, query))
        return reached, [_event(row) for row in found]

    async def job_documents(self, jobs: Sequence[str]) -> dict[str, str]:
        """The canonical documents of jobs, as JSON text by job id."""
        documents = tables.job_documents
        query = select(documents).where(documents.c.job.in_(list(jobs)))
        return {row.job: row.doc for row in await self.read(lambda connection: rows(connection, query))}

    async def queue_messages(self, outgoing: Sequence[Outgoing], now: float, *, cursor: int | None = None) -> int:
        """Queue messages, and store how far events were looked at, in one transaction; returns how many were new."""

        def run(transaction: Transaction) -> int:
            added = enqueue(transaction, outgoing, now)
            if cursor is not None:
                put(transaction, tables.settings, [{"key": CURSOR, "value": encode(cursor)}])
            return added

        return await self.write(run)

    async def look_at_notifications(self, now: float) -> tuple[bool, int, bool]:
        """Whether anybody has a verified channel, the seq of the last event, and whether a message is due, in one read."""
        channels, counters = tables.notify_channels, tables.counters
        query = select(
            exists().where(channels.c.verified_at.is_not(None)),
            select(counters.c.value).where(counters.c.name == "event").scalar_subquery(),
            exists().where(_outbox.c.state == "queued", _outbox.c.next_at <= now),
        )
        told, last, due = await self.read(lambda connection: connection.execute(query).one())
        return bool(told), int(last), bool(due)

    async def due_messages(self, now: float, limit: int, *, without: Collection[str] = ()) -> list[Queued]:
        """Messages whose next try is due, the oldest first, except those to some channels."""
        due = select(_outbox).where(_outbox.c.state == "queued", _outbox.c.next_at <= now)
        due = due.where(_outbox.c.channel.not_in(list(without))) if without else due
        query = due.order_by(_outbox.c.next_at, _outbox.c.id).limit(limit)
        found = await self.read(lambda connection: rows(connection, query))
        return [_queued(row) for row in found]

    async def claim_messages(self, claimed: Sequence[Queued], next_at: float) -> list[Queued]:
        """Count a try of messages before they are sent, and return those that nobody else has claimed meanwhile.

        If the process ends before it notes what came of it, they are sent again after `next_at`.
        """

        def run(transaction: Transaction) -> list[Queued]:
            mine = []
            for each in claimed:
                here = (_outbox.c.id == each.id, _outbox.c.state == "queued", _outbox.c.tries == each.tries)
                changed = update(_outbox).where(*here).values(tries=each.tries + 1, next_at=next_at)
                if transaction.write(changed).rowcount:
                    mine.append(msgspec.structs.replace(each, tries=each.tries + 1))
            return mine

        return await self.write(run)

    async def note_messages(
        self, ids: Sequence[int], state: str, error: str = "", next_at: float | None = None
    ) -> None:
        """Note what came of a try; with the state `queued` and `next_at`, the message is tried again."""
        changes: dict[str, Any] = {"state": state, "error": clean(error)}
        changes |= {} if next_at is None else {"next_at": next_at}
        here = (_outbox.c.id.in_(list(ids)), _outbox.c.state == "queued")
        await self.change(update(_outbox).where(*here).values(**changes))

    async def messages_of(self, user: str, *, limit: int = 100, after_cursor: str = "") -> Page[NotificationView]:
        """One page of a person's messages, newest first.

        Raises InvalidInput for an invalid cursor.
        """
        query = select(_outbox).where(_outbox.c.user == user).order_by(_outbox.c.id.desc()).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (int,))
        if key is not None:
            query = query.where(_outbox.c.id < key[0])
        found = await self.read(lambda connection: rows(connection, query))
        shown = [_view(row) for row in found[: bounded(limit)]]
        return Page(shown, write_cursor((shown[-1].id,)) if len(found) > len(shown) else None)

    async def forget_messages(self, now: float) -> None:
        """Delete messages that nobody waits for, if they are too old or too many."""
        over = _outbox.c.state != "queued"
        surplus = select(_outbox.c.id).where(over).order_by(_outbox.c.id.desc()).offset(MOST_KEPT).limit(1)

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_outbox).where(over, _outbox.c.made_at < now - KEPT_SECONDS))
            newest = transaction.read(surplus).scalar()
            if newest is not None:
                transaction.write(delete(_outbox).where(over, _outbox.c.id <= newest))

        await self.write(run)


def enqueue(transaction: Transaction, outgoing: Sequence[Outgoing], now: float) -> int:
    """Add messages whose keys are new, as far as there is room; what has none is counted by person and day.

    Returns how many were added.
    """
    fresh = _fresh(transaction, outgoing)
    if not fresh:
        return 0
    room = _rooms(transaction, {each.user for each in fresh})
    added: list[Outgoing] = []
    dropped: dict[str, int] = {}
    for each in fresh:
        if room[""] > 0 and room[each.user] > 0:
            room[""] -= 1
            room[each.user] -= 1
            added.append(each)
        else:
            dropped[each.user] = dropped.get(each.user, 0) + 1
    if added:
        first = transaction.take("notification", len(added))
        transaction.write(insert(_outbox), [_row(each, first + at, now) for at, each in enumerate(added)])
    for user, count in dropped.items():
        _count_dropped(transaction, user, count, now)
    return len(added)


def _fresh(transaction: Transaction, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
    named = {each.key: each for each in outgoing}
    keys = list(named)
    for at in range(0, len(keys), _AT_ONCE):
        there = select(_outbox.c.key).where(_outbox.c.key.in_(keys[at : at + _AT_ONCE]))
        for row in transaction.read(there).all():
            del named[row.key]
    return list(named.values())


def _rooms(transaction: Transaction, users: set[str]) -> dict[str, int]:
    """How many more messages may wait, by person; of everybody under ""."""
    queued = select(_outbox.c.user, func.count().label("n")).where(_outbox.c.state == "queued").group_by(_outbox.c.user)
    waiting = {row.user: row.n for row in transaction.read(queued).all()}
    rooms = {user: MOST_QUEUED - waiting.get(user, 0) for user in users}
    return rooms | {"": MOST_QUEUED_IN_ALL - sum(waiting.values())}


def _count_dropped(transaction: Transaction, user: str, count: int, now: float) -> None:
    """Add to the row that counts what was dropped of a person's messages in a day."""
    key = f"dropped/{user}/{int(now // 86_400)}"
    before = transaction.read(select(_outbox.c.id, _outbox.c.tries).where(_outbox.c.key == key)).first()
    total = count + (0 if before is None else before.tries)
    error = (
        f"{total:,} messages were dropped, because {MOST_QUEUED:,} of yours, or {MOST_QUEUED_IN_ALL:,} in all, waited."
    )
    if before is not None:
        transaction.write(update(_outbox).where(_outbox.c.id == before.id).values(tries=total, error=error))
        return
    message = Message(event="dropped", at=now, subject="Messages were dropped")
    row = _row(Outgoing(key, user, "", "", message), transaction.take("notification"), now)
    transaction.write(insert(_outbox), [row | {"state": "dropped", "tries": total, "error": error}])


def _row(each: Outgoing, number: int, now: float) -> dict[str, Any]:
    return {
        "id": number,
        "key": each.key,
        "user": each.user,
        "channel": each.channel,
        "channel_name": each.channel_name,
        "message": clean(encode(each.message)),
        "state": "queued",
        "tries": 0,
        "made_at": now,
        "next_at": now,
        "error": "",
    }


def _queued(row: Any) -> Queued:
    return Queued(row.id, row.channel, row.user, _MESSAGE.decode(row.message), row.tries, row.made_at)


def _event(row: Any) -> JobEvent:
    return JobEvent(
        row.seq, row.job, row.name, row.user, row.queue, row.at, row.kind, row.message, _DATA.decode(row.data)
    )


def _view(row: Any) -> NotificationView:
    message = _MESSAGE.decode(row.message)
    return NotificationView(
        id=row.id,
        at=rfc3339(row.made_at),
        channel=row.channel_name,
        event=message.event,
        job=message.job,
        subject=message.subject,
        state=row.state,
        tries=0 if message.event == "dropped" else row.tries,
        next_try=rfc3339(row.next_at) if row.state == "queued" else None,
        error=row.error,
    )
