"""The channels of a person: an address, whether it is verified, and what is told there."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

import msgspec

from corral.model.notifications.happenings import WORDS, Happening
from corral.model.notifications.messages import Message
from corral.model.records import Record, one_of

MOST_CHANNELS: Final = 20
"""Channels of one person."""
CODE_SECONDS: Final = 3600.0
"""Seconds for which a code verifies an address."""
MOST_CODES: Final = 5
"""Codes that may be sent to one address before it is verified, so that nobody can be flooded."""
MOST_WRONG: Final = 5
"""Wrong codes after which a new code must be sent."""
LEAST_WAITING: Final = 60
"""Seconds; the shortest wait that is told."""
MOST_WAITING: Final = 366 * 86_400
"""Seconds; the longest wait that can be asked for."""
MOST_QUEUED: Final = 1_000
"""Messages of one person that may wait to be sent; further ones are dropped and counted."""
MOST_QUEUED_IN_ALL: Final = 20_000
MOST_KEPT: Final = 20_000
"""Messages of everybody that are kept as history."""
KEPT_SECONDS: Final = 30 * 86_400.0
"""Seconds for which messages that are sent, failed or dropped are kept as history."""
SEALED: Final = "notify"
"""The kind of owner under which sealed addresses and keys are stored: `notify:USER`."""
KINDS_HERE: Final = "notification-kinds"
"""The setting of the store with the kinds of channels that this server can send to; control writes it."""
NETWORKS_HERE: Final = "notification-networks"
"""The setting of the store with the private networks that this server may send to; control writes it."""
KEY_SUFFIX: Final = ":key"
"""After the id of a channel, the name of the secret with its signing key; the id itself names that of its address."""


class ChannelKind(StrEnum):
    """How a message travels."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    """JSON with a signature (Standard Webhooks)."""
    SLACK = "slack"
    """An incoming webhook of Slack, or of Mattermost or Rocket.Chat, which understand the same JSON."""
    TEAMS = "teams"
    """A workflow of Microsoft Teams that posts what its webhook receives."""
    APPRISE = "apprise"
    """A service that the library `apprise` sends to, by its URL."""


class Channel(msgspec.Struct, frozen=True):
    """One channel as stored; times are seconds since 1970. Its address is sealed, unless it is a mail address."""

    id: str
    user: str
    name: str
    kind: str
    shown: str
    """The address without its secret parts; of mail, the whole address."""
    events: tuple[str, ...] = ()
    waiting: int = 0
    """Seconds of waiting in the queue after which it is told; 0 never tells it."""
    jobs: str = "*"
    """A pattern of the names of the jobs that are told, such as `train-*`."""
    created_at: float = 0.0
    verified_at: float | None = None
    code_at: float = 0.0
    """When the last code was sent."""
    codes: int = 0
    """Codes that were sent so far."""
    wrong: int = 0
    """Wrong codes given for the last one."""

    @property
    def owner(self) -> str:
        """Under which owner its sealed values are stored."""
        return f"{SEALED}:{self.user}"

    def takes(self, happening: Happening, job: str) -> bool:
        """Whether its preferences want to be told this of a job of that name."""
        asked = self.waiting > 0 if happening is Happening.WAITING else happening in self.events
        return asked and fnmatchcase(job, self.jobs)


ALERTMANAGER: Final = "alertmanager"
"""The kind of the receivers that a file of alert routes names; people add none."""
_MAIL: Final = "mail:"
_ALERTS: Final = "alerts:"


def mail_channel(address: str) -> Channel:
    """The channel of an address that the administrator's settings name: it is not stored, and needs no code."""
    return Channel(f"{_MAIL}{address}", "", address, ChannelKind.MAIL, address, verified_at=0.0)


def alerts_channel(name: str) -> Channel:
    """The channel of a receiver of alerts, whose address stays in the administrator's file."""
    return Channel(f"{_ALERTS}{name}", "", name, ALERTMANAGER, name, verified_at=0.0)


def named_channel(channel: str) -> Channel | None:
    """The channel of such an address or receiver, by its id; None for the id of a stored channel."""
    if channel.startswith(_ALERTS):
        return alerts_channel(channel.removeprefix(_ALERTS))
    return mail_channel(channel.removeprefix(_MAIL)) if channel.startswith(_MAIL) else None


class Wishes(msgspec.Struct, frozen=True):
    """What a job's own file asks to be told; it replaces the preferences of the channels for that job.

    With neither events nor a wait it only chooses among the channels by name; without names nothing is told.
    """

    events: tuple[str, ...]
    waiting: int = 0
    """Seconds."""
    channels: tuple[str, ...] = ()
    """The names of channels of the job's owner; none stands for all."""

    def takes(self, happening: Happening, channel: Channel, job: str) -> bool:
        """Whether a channel is to be told this of a job of that name."""
        if self.channels and channel.name not in self.channels:
            return False
        if not self.events and not self.waiting:
            return bool(self.channels) and channel.takes(happening, job)
        return self.waiting > 0 if happening is Happening.WAITING else happening in self.events

    def wait_of(self, channel: Channel) -> int:
        """Seconds of waiting after which the channel is told."""
        return self.waiting or channel.waiting


def receivers(
    channels: Iterable[Channel], happening: Happening, job: str, wishes: Wishes | None, at: float
) -> list[Channel]:
    """The verified channels of a job's owner that are told what happened `at` a time.

    What happened before an address was verified is not told there.
    """
    known = [each for each in channels if each.verified_at is not None and each.verified_at <= at]
    if wishes is None:
        return [each for each in known if each.takes(happening, job)]
    return [each for each in known if wishes.takes(happening, each, job)]


class ChannelView(Record, frozen=True):
    """A channel as its owner sees it."""

    name: str
    kind: Annotated[str, one_of(*ChannelKind)]
    address: str
    """Without its secret parts."""
    verified: bool
    events: tuple[Annotated[str, one_of(*WORDS)], ...]
    waiting_seconds: int
    jobs: str
    created_at: str


class NewChannelView(ChannelView, frozen=True):
    """A channel that was just made."""

    signing_key: str = ""
    """The key of a webhook's signatures; it is told only here."""


class NotificationView(Record, frozen=True):
    """One message in the history of a person's notifications."""

    id: int
    at: str
    channel: str
    event: str
    """What happened: one of the events, `code` for a verification, or `test`."""
    job: str
    subject: str
    state: Annotated[str, one_of("queued", "sent", "failed", "dropped")]
    """`failed` was tried in vain, `dropped` was never tried."""
    tries: int
    next_try: str | None = None
    error: str = ""
    """Why the last try failed."""


class Outgoing(msgspec.Struct, frozen=True):
    """A message for one channel, to be queued."""

    key: str
    """Names the occasion and the channel, so that nothing is queued twice."""
    user: str
    channel: str
    """The channel's id."""
    channel_name: str
    message: Message


class Queued(msgspec.Struct, frozen=True):
    """A message that waits to be sent; times are seconds since 1970."""

    id: int
    channel: str
    user: str
    message: Message
    tries: int
    """Tries so far."""
    made_at: float


class JobEvent(msgspec.Struct, frozen=True):
    """A stored event of a job that may be told, with the job as it is now."""

    seq: int
    job: str
    name: str
    user: str
    queue: str
    at: float
    kind: str
    message: str
    data: dict[str, Any]
