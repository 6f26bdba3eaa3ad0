"""Send messages to a channel: by mail, as a signed webhook, or to a chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from corral.kernel.clock import Clock
from corral.kernel.errors import InvalidInput
from corral.model.alerts.told import webhook_call
from corral.model.notifications.channels import ALERTMANAGER, Channel, ChannelKind, Queued
from corral.model.notifications.messages import (
    CODE,
    Message,
    plain_text,
    slack_json,
    teams_json,
    webhook_json,
    with_code,
)
from corral.model.notifications.signatures import signature, verification_code
from corral.monitor.notifications.http_post import Poster
from corral.monitor.notifications.services import Services

if TYPE_CHECKING:
    from corral.monitor.mail import Mailer

Open = Callable[[Channel], Awaitable[tuple[str, str]]]
"""Opens a channel's sealed values: its address, and its signing key or ""."""
_ALONE: Final = frozenset({ChannelKind.WEBHOOK})
"""Kinds of channels that get each message by itself."""


class Sender:
    """Sends the messages of one channel at a time."""

    def __init__(
        self,
        *,
        clock: Clock,
        key: bytes,
        poster: Poster,
        services: Services,
        mailer: Mailer | None,
        open_channel: Open,
        url: str = "",
    ) -> None:
        """`key` is the server's key, of which codes are derived; `url` is where people reach the server."""
        self._clock = clock
        self._key = key
        self._poster = poster
        self._services = services
        self._mailer = mailer
        self._open = open_channel
        self._url = url

    @staticmethod
    def together(channel: Channel) -> bool:
        """Whether several messages to the channel are sent as one."""
        return channel.kind not in _ALONE

    async def send(self, channel: Channel, queued: Sequence[Queued]) -> None:
        """Send messages; several only where they are sent as one.

        Raises Unavailable if a later try may succeed, InvalidInput if none will.
        """
        messages = [self._complete(channel, each.message) for each in queued]
        if channel.kind == ChannelKind.MAIL:
            await self._mail(channel.shown, messages)
            return
        address, signing_key = await self._open(channel)
        match channel.kind:
            case ChannelKind.SLACK:
                await self._poster.post(address, msgspec.json.encode(slack_json(messages, self._url)), {})
            case ChannelKind.TEAMS:
                await self._poster.post(address, msgspec.json.encode(teams_json(messages, self._url)), {})
            case ChannelKind.APPRISE:
                await self._services.send(address, *plain_text(messages, self._url))
            case ChannelKind.WEBHOOK:
                await self._webhook(address, signing_key, queued[0], messages[0])
            case kind if kind == ALERTMANAGER:
                call = webhook_call(channel.name, [each.data for each in messages], self._url)
                await self._poster.post(address, msgspec.json.encode(call), {})
            case _:
                raise InvalidInput(
                    "no-such-channel", f"This server sends nothing to channels of the kind {channel.kind}."
                )

    async def _mail(self, address: str, messages: Sequence[Message]) -> None:
        if self._mailer is None:
            raise InvalidInput("no-mail-server", "This server has no mail server (CORRAL_MAIL_SERVER).")
        await self._mailer.send(address, *plain_text(messages, self._url))

    async def _webhook(self, address: str, signing_key: str, queued: Queued, message: Message) -> None:
        name, at = f"msg_{queued.id}", int(self._clock.now())
        body = msgspec.json.encode(webhook_json(message, self._url, number=queued.tries))
        signed = signature(signing_key, name, at, body)
        headers = {"webhook-id": name, "webhook-timestamp": str(at), "webhook-signature": signed}
        await self._poster.post(address, body, headers)

    def _complete(self, channel: Channel, message: Message) -> Message:
        if message.event != CODE:
            return message
        return with_code(message, verification_code(self._key, channel.id, message.at))
