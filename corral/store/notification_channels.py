"""The channels on which people are told of their jobs; sealed addresses and keys are with the other secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, insert, select, update

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.notifications.channels import (
    CODE_SECONDS,
    KEY_SUFFIX,
    MOST_CHANNELS,
    MOST_CODES,
    MOST_WRONG,
    Channel,
    Outgoing,
)
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.notification_outbox import enqueue
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

_channels: Final = tables.notify_channels
_secrets: Final = tables.secrets
_EVENTS: Final = msgspec.json.Decoder(tuple[str, ...])


class NotificationChannels(Database):
    """The channels of people."""

    async def channels_of(self, users: Collection[str]) -> list[Channel]:
        """The channels of some people, by person and name."""
        query = select(_channels).where(_channels.c.user.in_([clean(user) for user in users]))
        query = query.order_by(_channels.c.user, _channels.c.name)
        return [_channel(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def channel_by_id(self, channel: str) -> Channel | None:
        """One channel; None if there is none."""
        query = select(_channels).where(_channels.c.id == channel)
        row = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else _channel(row)

    async def users_with_channels(self) -> frozenset[str]:
        """Everybody who has a verified channel."""
        query = select(_channels.c.user).where(_channels.c.verified_at.is_not(None)).distinct()
        return frozenset(row.user for row in await self.read(lambda connection: rows(connection, query)))

    async def add_channel(self, channel: Channel, sealed: Mapping[str, str], code: Outgoing) -> None:
        """Store a channel with its sealed values by secret name, and queue the message with its code.

        Raises Conflict `channel-exists` or `too-many-channels`.
        """
        row = msgspec.structs.asdict(channel) | {"events": encode(channel.events)}
        secrets = [
            {"owner": channel.owner, "name": name, "sealed": text, "created_at": channel.created_at}
            for name, text in sealed.items()
        ]
        theirs = select(_channels.c.name).where(_channels.c.user == channel.user)

        def run(transaction: Transaction) -> None:
            names = {each.name for each in transaction.read(theirs)}
            if channel.name in names:
                raise Conflict("channel-exists", f"There is a channel {channel.name} already; remove it first.")
            if len(names) >= MOST_CHANNELS:
                raise Conflict(
                    "too-many-channels", f"There are {MOST_CHANNELS} channels already; remove one of them first."
                )
            transaction.write(insert(_channels), row)
            if secrets:
                put(transaction, _secrets, secrets)
            enqueue(transaction, [code], channel.created_at)

        await self.write(run)

    async def change_channel(
        self, user: str, name: str, *, events: tuple[str, ...] | None, waiting: int | None, jobs: str | None
    ) -> Channel:
        """Change what is told on a channel; None keeps a field.

        Raises NotFound.
        """
        given = {"events": None if events is None else encode(events), "waiting": waiting, "jobs": jobs}
        changes = {key: value for key, value in given.items() if value is not None}

        def run(transaction: Transaction) -> Channel:
            found = _one(transaction, user, name)
            if changes:
                transaction.write(update(_channels).where(_channels.c.id == found.id).values(**changes))
            return _one(transaction, user, name)

        return await self.write(run)

    async def remove_channel(self, user: str, name: str) -> None:
        """Delete a channel with its secrets; what waits to be sent there is dropped.

        Raises NotFound.
        """
        outbox = tables.notify_outbox

        def run(transaction: Transaction) -> None:
            found = _one(transaction, user, name)
            transaction.write(delete(_channels).where(_channels.c.id == found.id))
            names = (found.id, found.id + KEY_SUFFIX)
            transaction.write(delete(_secrets).where(_secrets.c.owner == found.owner, _secrets.c.name.in_(names)))
            waiting = update(outbox).where(outbox.c.channel == found.id, outbox.c.state == "queued")
            transaction.write(waiting.values(state="dropped", error="The channel was removed."))

        await self.write(run)

    async def verify_channel(self, user: str, name: str, expected: str, at: float, *, right: bool) -> Channel:
        """Mark a channel as verified if the code was `right`; count a wrong one.

        `expected` is the id and the time of the code, so that an answer to an earlier code does not count. Raises
        NotFound, InvalidInput `wrong-code`, Conflict `code-expired`.
        """

        def run(transaction: Transaction) -> Channel:
            found = _one(transaction, user, name)
            if found.verified_at is not None:
                return found
            if at > found.code_at + CODE_SECONDS or found.wrong >= MOST_WRONG or code_place(found) != expected:
                raise Conflict(
                    "code-expired",
                    "The code is no longer valid; send a new one with `corral notifications verify NAME --resend`.",
                )
            changes: dict[str, Any] = {"verified_at": at} if right else {"wrong": found.wrong + 1}
            transaction.write(update(_channels).where(_channels.c.id == found.id).values(**changes))
            return _one(transaction, user, name)

        channel = await self.write(run)
        if channel.verified_at is None:
            raise InvalidInput("wrong-code", f"This is not the code; {MOST_WRONG - channel.wrong} tries are left.")
        return channel

    async def renew_code(self, user: str, name: str, code: Outgoing, at: float) -> Channel:
        """Queue a message with a new code for a channel that is not verified.

        Raises NotFound, Conflict `channel-verified` or `too-many-codes`.
        """

        def run(transaction: Transaction) -> Channel:
            found = _one(transaction, user, name)
            if found.verified_at is not None:
                raise Conflict("channel-verified", f"The channel {name} is verified already.")
            if found.codes >= MOST_CODES:
                raise Conflict("too-many-codes", f"{MOST_CODES} codes were sent to {name}; remove the channel first.")
            changes = {"code_at": at, "codes": found.codes + 1, "wrong": 0}
            transaction.write(update(_channels).where(_channels.c.id == found.id).values(**changes))
            enqueue(transaction, [code], at)
            return _one(transaction, user, name)

        return await self.write(run)

    async def messages_since(self, user: str, prefix: str, since: float) -> int:
        """How many messages of a person, with keys of a prefix, were queued since a time, also to removed channels."""
        outbox = tables.notify_outbox
        query = select(func.count()).select_from(outbox)
        query = query.where(outbox.c.user == user, outbox.c.key.startswith(prefix), outbox.c.made_at >= since)
        return await self.read(lambda connection: int(connection.execute(query).scalar_one()))


def code_place(channel: Channel) -> str:
    """What names the last code of a channel."""
    return f"{channel.id}@{channel.code_at!r}"


def forget_account(transaction: Transaction, user: str) -> None:
    """Delete the channels, keys and messages of an account that is deleted."""
    transaction.write(delete(_channels).where(_channels.c.user == user))
    transaction.write(delete(tables.notify_outbox).where(tables.notify_outbox.c.user == user))


def _one(transaction: Transaction, user: str, name: str) -> Channel:
    query = select(_channels).where(_channels.c.user == clean(user), _channels.c.name == clean(name))
    row = transaction.read(query).first()
    if row is None:
        raise NotFound("channel-not-found", f"There is no channel {name[:100]} of yours.")
    return _channel(row)


def _channel(row: Any) -> Channel:
    return Channel(**dict(row._mapping) | {"events": _EVENTS.decode(row.events)})
