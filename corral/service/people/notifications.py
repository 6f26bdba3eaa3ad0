"""The channels on which people are told of their jobs: add, verify, change, test and remove them, and read the history."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from corral.model.notifications.channels import (
    KEY_SUFFIX,
    KINDS_HERE,
    LEAST_WAITING,
    MOST_WAITING,
    NETWORKS_HERE,
    Channel,
    ChannelKind,
    ChannelView,
    NewChannelView,
    NotificationView,
    Outgoing,
)
from corral.model.notifications.destinations import Network, host_refusal, read_networks, read_url
from corral.model.notifications.happenings import abbreviated, expanded
from corral.model.notifications.messages import Message, about_code, about_test
from corral.model.notifications.services import read_service, service_refusal
from corral.model.notifications.signatures import is_code, signing_key, verification_code
from corral.model.records import Page, rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.accounts import check_email
from corral.service.people.credentials import new_id
from corral.store.notification_channels import code_place

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MOST_PATTERN: Final = 200
_KEY_BYTES: Final = 32
_DAY: Final = 86_400.0
_HOUR: Final = 3600.0
_CODES_A_DAY: Final = 20
"""Codes that one person may have sent in a day, to all addresses together."""
_TESTS_AN_HOUR: Final = 20
_MISSING: Final = {
    ChannelKind.MAIL: "it has no mail server (CORRAL_MAIL_SERVER)",
    ChannelKind.APPRISE: "its library is not installed (pip install 'corral[notify]')",
}
"""Why a kind is not there while others are."""
DEFAULT_EVENTS: Final = ("preempted", "ended", "idle", "hung")
"""What a new channel is told unless its owner says otherwise."""


class Notifications:
    """The channels of people."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def all(self, actor: Actor) -> list[ChannelView]:
        """The actor's channels, by name."""
        await self._context.check(actor, "notification.list", _resource(actor))
        return [ChannelView(**_fields(each)) for each in await self._store.channels_of([actor.user])]

    async def add(
        self,
        actor: Actor,
        name: str,
        kind: str,
        address: str,
        *,
        events: Sequence[str] = DEFAULT_EVENTS,
        waiting: int = 0,
        jobs: str = "*",
    ) -> NewChannelView:
        """Add a channel, and send it a code; nothing else is sent there before the code is given to `verify`.

        The answer has the key of a webhook's signatures, which is told only here. Raises InvalidInput for a bad field,
        Conflict `channel-exists`, `too-many-channels` or `no-such-kind`, TooManyRequests `too-many-codes`.
        """
        resource = _resource(actor, name)
        decision = await self._context.check(actor, "notification.change", resource)
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                "bad-channel-name",
                "A channel's name has up to 63 letters, digits, . _ - and begins with a letter or digit.",
            )
        await self._check_kind(kind)
        shown, told = await self._shown(kind, address), _events(events)
        _check_preferences(waiting, jobs)
        await self._check_rate(actor, "code/", _DAY, _CODES_A_DAY)
        now = self._clock.now()
        made = Channel(new_id(), actor.user, name, kind, shown, told, waiting, jobs, now, None, now, 1)
        values = {} if kind == ChannelKind.MAIL else {made.id: address}
        key = signing_key(secrets.token_bytes(_KEY_BYTES)) if kind == ChannelKind.WEBHOOK else ""
        values |= {made.id + KEY_SUFFIX: key} if key else {}
        box = self._context.secret_box
        sealed = {each: box.seal(made.owner, each, value) for each, value in values.items()}
        await self._store.add_channel(made, sealed, _code(made, now))
        await self._context.note(actor, "notification.change", resource, decision, added=kind, address=shown)
        return NewChannelView(**_fields(made), signing_key=key)

    async def verify(self, actor: Actor, name: str, code: str) -> ChannelView:
        """Verify a channel with the code that it was sent.

        Raises NotFound, InvalidInput `wrong-code`, Conflict `code-expired`.
        """
        resource = _resource(actor, name)
        decision = await self._context.check(actor, "notification.change", resource)
        channel = await self._existing(actor, name)
        right = is_code(code, verification_code(self._context.key, channel.id, channel.code_at))
        found = await self._store.verify_channel(actor.user, name, code_place(channel), self._clock.now(), right=right)
        await self._context.note(actor, "notification.change", resource, decision, verified=found.shown)
        return ChannelView(**_fields(found))

    async def send_code(self, actor: Actor, name: str) -> None:
        """Send another code to a channel that is not verified.

        Raises NotFound, Conflict `channel-verified` or `too-many-codes`, TooManyRequests.
        """
        await self._context.check(actor, "notification.change", _resource(actor, name))
        channel = await self._existing(actor, name)
        await self._check_rate(actor, "code/", _DAY, _CODES_A_DAY)
        now = self._clock.now()
        await self._store.renew_code(actor.user, name, _code(channel, now), now)

    async def change(
        self,
        actor: Actor,
        name: str,
        *,
        events: Sequence[str] | None = None,
        waiting: int | None = None,
        jobs: str | None = None,
    ) -> ChannelView:
        """Change what is told on a channel; None keeps a field.

        Raises NotFound, InvalidInput.
        """
        resource = _resource(actor, name)
        decision = await self._context.check(actor, "notification.change", resource)
        told = None if events is None else _events(events)
        _check_preferences(waiting or 0, "*" if jobs is None else jobs)
        found = await self._store.change_channel(actor.user, name, events=told, waiting=waiting, jobs=jobs)
        await self._context.note(actor, "notification.change", resource, decision)
        return ChannelView(**_fields(found))

    async def remove(self, actor: Actor, name: str) -> None:
        """Remove a channel; what waits to be sent there is dropped.

        Raises NotFound.
        """
        resource = _resource(actor, name)
        decision = await self._context.check(actor, "notification.change", resource)
        await self._store.remove_channel(actor.user, name)
        await self._context.note(actor, "notification.change", resource, decision, removed=name)

    async def test(self, actor: Actor, name: str) -> None:
        """Send a test message to a verified channel; the history tells what came of it.

        Raises NotFound, Conflict `channel-not-verified`, TooManyRequests.
        """
        await self._context.check(actor, "notification.change", _resource(actor, name))
        channel = await self._existing(actor, name)
        if channel.verified_at is None:
            raise Conflict(
                "channel-not-verified", f"The channel {name} is not verified; give the code that it was sent."
            )
        await self._check_rate(actor, "test/", _HOUR, _TESTS_AN_HOUR)
        now = self._clock.now()
        message = about_test(actor.user, name, now)
        await self._store.queue_messages([_to(channel, f"test/{new_id()}", message)], now)

    async def history(self, actor: Actor, *, limit: int = 100, after: str = "") -> Page[NotificationView]:
        """One page of the actor's messages, newest first."""
        await self._context.check(actor, "notification.list", _resource(actor))
        return await self._store.messages_of(actor.user, limit=limit, after_cursor=after)

    async def _existing(self, actor: Actor, name: str) -> Channel:
        for each in await self._store.channels_of([actor.user]):
            if each.name == name:
                return each
        raise NotFound("channel-not-found", f"There is no channel {name[:100]} of yours.")

    async def _check_kind(self, kind: str) -> None:
        if kind not in set(ChannelKind):
            raise InvalidInput("bad-channel-kind", f"A channel is {', '.join(ChannelKind)}, not {kind[:50]!r}.")
        here = await self._store.setting(KINDS_HERE, [])
        if kind not in here:
            why = _MISSING[ChannelKind(kind)] if here and ChannelKind(kind) in _MISSING else "its control never ran"
            raise Conflict("no-such-kind", f"This server sends nothing to channels of the kind {kind}: {why}.")

    async def _shown(self, kind: str, address: str) -> str:
        """The address as it may be shown; raises InvalidInput for one that is none, or that nothing is sent to.

        Names are not resolved here: the answer would tell what only this server's network knows.
        """
        if kind == ChannelKind.MAIL:
            if not address:
                raise InvalidInput("bad-email", "A mail channel needs an address.")
            check_email(address)
            return address
        listed = read_networks(",".join(await self._store.setting(NETWORKS_HERE, [])))
        if kind == ChannelKind.APPRISE:
            return _shown_service(address, listed)
        try:
            place = read_url(address)
        except ValueError as error:
            raise InvalidInput("bad-webhook", f"The address is not a webhook: {error}.") from None
        if why := host_refusal(place, listed):
            raise InvalidInput("webhook-refused", f"Nothing is sent to {place.host}: {why}.")
        return place.shown

    async def _check_rate(self, actor: Actor, prefix: str, seconds: float, most: int) -> None:
        since = self._clock.now() - seconds
        if await self._store.messages_since(actor.user, prefix, since) >= most:
            what = "codes in a day" if seconds == _DAY else "test messages in an hour"
            raise TooManyRequests("too-many-messages", f"{most} {what} were sent already; try again later.")


def _shown_service(address: str, listed: Sequence[Network]) -> str:
    try:
        service = read_service(address)
    except ValueError as error:
        raise InvalidInput("bad-service", f"This is not the address of a service: {error}.") from None
    if why := service_refusal(service, listed):
        raise InvalidInput("service-refused", f"Nothing is sent to {service.shown}: {why}.")
    return service.shown


def _resource(actor: Actor, name: str = "") -> Resource:
    return Resource("notification", name, owner=actor.user)


def _fields(channel: Channel) -> dict[str, Any]:
    return {
        "name": channel.name,
        "kind": channel.kind,
        "address": channel.shown,
        "verified": channel.verified_at is not None,
        "events": abbreviated(channel.events),
        "waiting_seconds": channel.waiting,
        "jobs": channel.jobs,
        "created_at": rfc3339(channel.created_at),
    }


def _events(words: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(str(each) for each in expanded(words))
    except ValueError as error:
        raise InvalidInput("bad-event", f"A channel is told of events: {error}.") from None


def _check_preferences(waiting: int, jobs: str) -> None:
    if waiting and not LEAST_WAITING <= waiting <= MOST_WAITING:
        raise InvalidInput(
            "bad-waiting", f"A wait is told after {LEAST_WAITING} to {MOST_WAITING:,} seconds; 0 never tells it."
        )
    if not 0 < len(jobs) <= _MOST_PATTERN:
        raise InvalidInput(
            "bad-pattern", f"A pattern of job names has 1 to {_MOST_PATTERN} characters, such as train-*."
        )


def _code(channel: Channel, now: float) -> Outgoing:
    return _to(channel, f"code/{channel.id}/{now!r}", about_code(channel.user, channel.name, now))


def _to(channel: Channel, key: str, message: Message) -> Outgoing:
    return Outgoing(key, channel.user, channel.id, channel.name, message)
