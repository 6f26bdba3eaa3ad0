"""Queue messages from the events of jobs, and send what is queued, beside the control loop.

The leader reads the stored events in order, and stores the messages in one transaction with how far it has read. A key per
event and channel makes each message unique, also if two controls read the same events. A try is counted before it is
made: if the process ends before it notes the result, the message is sent once more, so a message comes at least once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, InvalidInput
from corral.model.notifications.channels import Channel, JobEvent, Outgoing, Queued, Wishes, named_channel, receivers
from corral.model.notifications.happenings import Happening, happening_of
from corral.model.notifications.messages import CODE, MOST_TOGETHER, Message, about, about_wait
from corral.monitor.look_again import look_again
from corral.monitor.notifications.sender import Sender

log = structlog.get_logger()

EVERY_SECONDS: Final = 2.0
"""Seconds between two looks at events and at what is due."""
UNUSED_SECONDS: Final = 6.0
"""The same while nobody has a verified channel: only codes for new channels can be due."""
WAITS_SECONDS: Final = 30.0
"""Seconds between two looks at the jobs that wait."""
FORGET_SECONDS: Final = 3600.0
TRIES: Final = 12
"""Tries of a message before it is given up: over about five hours."""
_FIRST_RETRY: Final = 30.0
"""Seconds until the second try; each further one waits twice as long."""
_LONGEST_RETRY: Final = 3600.0
OLDEST_SECONDS: Final = 86_400.0
"""Seconds after which a message is given up, however often it was tried."""
_DUE: Final = 500
_AT_ONCE: Final = 8
"""Channels that are sent to at the same time."""
_CURSOR_LAG: Final = 2_000
"""Numbers of events without a message after which the position is stored all the same."""


class Waiting(msgspec.Struct, frozen=True):
    """A job that waits, as control knows it; times are seconds since 1970."""

    job: str
    name: str
    user: str
    queue: str
    since: float
    reason: str
    doc: str
    """Its canonical document as JSON text."""


class Records(Protocol):
    """The part of the store that the notifier uses."""

    async def setting(self, key: str, default: object = None) -> object: ...  # noqa: D102
    async def last_seq(self) -> int: ...  # noqa: D102
    async def users_with_channels(self) -> frozenset[str]: ...  # noqa: D102
    async def channels_of(self, users: Collection[str]) -> list[Channel]: ...  # noqa: D102
    async def channel_by_id(self, channel: str) -> Channel | None: ...  # noqa: D102
    async def job_events(self, after: int, last: int) -> tuple[int, list[JobEvent]]: ...  # noqa: D102
    async def job_documents(self, jobs: Sequence[str]) -> dict[str, str]: ...  # noqa: D102
    async def queue_messages(  # noqa: D102
        self, outgoing: Sequence[Outgoing], now: float, *, cursor: int | None = None
    ) -> int: ...
    async def look_at_notifications(self, now: float) -> tuple[bool, int, bool]: ...  # noqa: D102
    async def due_messages(  # noqa: D102
        self, now: float, limit: int, *, without: Collection[str] = ()
    ) -> list[Queued]: ...
    async def claim_messages(self, claimed: Sequence[Queued], next_at: float) -> list[Queued]: ...  # noqa: D102
    async def note_messages(  # noqa: D102
        self, ids: Sequence[int], state: str, error: str = "", next_at: float | None = None
    ) -> None: ...
    async def forget_messages(self, now: float) -> None: ...  # noqa: D102


class Notifier:
    """Queues and sends messages while this control leads."""

    def __init__(
        self,
        store: Records,
        sender: Sender,
        clock: Clock,
        *,
        cursor: str,
        waiting: Callable[[], Iterable[Waiting]],
        wishes_of: Callable[[str], Wishes | None],
    ) -> None:
        """`cursor` names the setting of the position; `wishes_of` reads what a job's document asks to be told."""
        self._store = store
        self._sender = sender
        self._clock = clock
        self._setting = cursor
        self._waiting = waiting
        self._wishes_of = wishes_of
        self._cursor: int | None = None
        self._stored = 0
        self._used = False
        """Whether anybody had a verified channel at the last look."""
        self._waits_at = 0.0
        self._forgotten = 0.0
        self._sending: dict[str, asyncio.Task[None]] = {}
        """By channel."""

    async def run(self, ready: asyncio.Event) -> None:
        """Look again and again, from when control leads until cancelled; a fault never ends it."""
        try:
            await look_again(
                ready, self.look, lambda: EVERY_SECONDS if self._used else UNUSED_SECONDS, "notifications have to wait"
            )
        finally:
            for task in self._sending.values():
                task.cancel()

    async def look(self) -> None:
        """Queue what has happened, begin to send what is due, and delete what is old."""
        now = self._clock.now()
        if self._used or self._cursor is None or not await self._has_nothing_to_do(now):
            people = await self._store.users_with_channels()
            self._used = bool(people)
            await self.read_events(people)
            if now - self._waits_at >= WAITS_SECONDS:
                self._waits_at = now
                await self.look_at_waits(people)
            await self.send_due()
        if now - self._forgotten >= FORGET_SECONDS:
            self._forgotten = now
            await self._store.forget_messages(now)

    async def _has_nothing_to_do(self, now: float) -> bool:
        """Whether nobody has a verified channel and no message is due; what has happened is then told to nobody."""
        told, last, due = await self._store.look_at_notifications(now)
        if told or due:
            return False
        self._cursor = last
        return True

    async def read_events(self, people: frozenset[str]) -> int:
        """Queue messages for the events since the last look; returns how many were new.

        Without a verified channel nothing is read, and nothing is stored.
        """
        last = await self._store.last_seq()
        if self._cursor is None:
            stored = await self._store.setting(self._setting)
            self._cursor = self._stored = stored if isinstance(stored, int) and people else last
            if people and not isinstance(stored, int):  # a restart from now on goes on from here
                await self._store.queue_messages((), self._clock.now(), cursor=last)
        if not people:
            self._cursor = last
            return 0
        added = 0
        while self._cursor < last:
            reached, events = await self._store.job_events(self._cursor, last)
            outgoing = await self._of_events([each for each in events if each.user in people])
            if outgoing or reached - self._stored >= _CURSOR_LAG or not self._stored:
                added += await self._store.queue_messages(outgoing, self._clock.now(), cursor=reached)
                self._stored = reached
            self._cursor = reached
        return added

    async def _of_events(self, events: Sequence[JobEvent]) -> list[Outgoing]:
        told = [(each, found) for each in events if (found := happening_of(each.kind, each.message, each.data))]
        if not told:
            return []
        channels = await self._channels({each.user for each, _ in told})
        documents = await self._store.job_documents(sorted({each.job for each, _ in told}))
        outgoing = []
        for event, happening in told:
            wishes = self._wishes_of(documents.get(event.job, ""))
            given = receivers(channels[event.user], happening, event.name, wishes, event.at)
            message = about(
                happening, event.at, event.message, job=event.job, name=event.name, user=event.user, queue=event.queue,
                code=event.data.get("code"),
            )  # fmt: skip
            outgoing += [_outgoing(f"event/{event.seq}", each, message) for each in given]
        return outgoing

    async def look_at_waits(self, people: frozenset[str]) -> int:
        """Queue messages for jobs that wait longer than somebody allows; returns how many were new."""
        now = self._clock.now()
        waiting = [each for each in self._waiting() if each.user in people]
        channels = await self._channels({each.user for each in waiting})
        outgoing = []
        for each in waiting:
            wishes = self._wishes_of(each.doc)
            for channel in receivers(channels[each.user], Happening.WAITING, each.name, wishes, now):
                allowed = channel.waiting if wishes is None else wishes.wait_of(channel)
                if now - each.since < allowed:
                    continue
                about_it = about_wait(
                    each.since, now, each.reason, job=each.job, name=each.name, user=each.user, queue=each.queue
                )
                outgoing.append(_outgoing(f"wait/{each.job}/{each.since:.0f}", channel, about_it))
        return await self._store.queue_messages(outgoing, now) if outgoing else 0

    async def _channels(self, users: set[str]) -> Mapping[str, list[Channel]]:
        found: dict[str, list[Channel]] = {user: [] for user in users}
        for channel in await self._store.channels_of(sorted(users)) if users else ():
            found[channel.user].append(channel)
        return found

    async def send_due(self) -> None:
        """Begin to send what is due, to a few channels at the same time."""
        self._sending = {name: task for name, task in self._sending.items() if not task.done()}
        if len(self._sending) >= _AT_ONCE:
            return
        by_channel: dict[str, list[Queued]] = {}
        for each in await self._store.due_messages(self._clock.now(), _DUE, without=self._sending.keys()):
            by_channel.setdefault(each.channel, []).append(each)
        for name, queued in by_channel.items():
            if len(self._sending) < _AT_ONCE:
                self._sending[name] = asyncio.create_task(self._send_to(name, queued))

    async def settle(self) -> None:
        """Wait until what is being sent has been sent or refused."""
        await asyncio.gather(*self._sending.values())

    async def _send_to(self, name: str, queued: Sequence[Queued]) -> None:
        try:
            channel = named_channel(name) or await self._store.channel_by_id(name)
            if channel is None:
                await self._store.note_messages([each.id for each in queued], "dropped", "The channel was removed.")
                return
            fresh = await self._without_old(queued)
            parts = _parts(fresh, together=self._sender.together(channel))
            for at, part in enumerate(parts):
                if (why := await self._try(channel, part)) and at + 1 < len(parts):
                    rest = [each.id for later in parts[at + 1 :] for each in later]
                    await self._store.note_messages(rest, "queued", why, self._clock.now() + _FIRST_RETRY)
                    return
        except CorralError as error:
            log.warning("a message has to wait", code=error.code, message=error.message)
        except Exception:
            log.exception("a message could not be sent", channel=name)

    async def _without_old(self, queued: Sequence[Queued]) -> list[Queued]:
        """The messages that are not too old to be sent; the others are noted as failed."""
        since = self._clock.now() - OLDEST_SECONDS
        old = [each.id for each in queued if each.made_at < since]
        if old:
            await self._store.note_messages(old, "failed", "Could not be sent within a day.")
        return [each for each in queued if each.made_at >= since]

    async def _try(self, channel: Channel, part: Sequence[Queued]) -> str:
        """Try to send what is sent as one; returns why the channel's other messages have to wait, "" if they need not."""
        now = self._clock.now()
        mine = await self._store.claim_messages(part, now + _pause(part[0].tries + 1))
        if not mine:
            return ""
        ids, tries = [each.id for each in mine], max(each.tries for each in mine)
        try:
            await self._sender.send(channel, mine)
        except InvalidInput as error:
            await self._store.note_messages(ids, "failed", error.message)
        except Exception as error:  # an address is any text of its owner
            why = error.message if isinstance(error, CorralError) else f"It could not be sent: {type(error).__name__}."
            log.warning("a message was not sent", channel=channel.id, tries=tries, error=why[:300])
            if tries >= TRIES:
                await self._store.note_messages(ids, "failed", f"Could not be sent in {tries} tries. {why}")
            else:
                await self._store.note_messages(ids, "queued", why)
            return why
        else:
            await self._store.note_messages(ids, "sent")
        return ""


def _pause(tries: int) -> float:
    """Seconds from a try to the next one."""
    return min(_LONGEST_RETRY, _FIRST_RETRY * 2.0 ** (tries - 1))


def _parts(queued: Sequence[Queued], *, together: bool) -> list[Sequence[Queued]]:
    """What is sent as one: messages of equally many tries; a code goes by itself."""
    if not together:
        return [[each] for each in queued]
    groups: dict[tuple[int, int], list[Queued]] = {}
    for each in queued:
        alone = each.id if each.message.event == CODE else 0
        groups.setdefault((each.tries, alone), []).append(each)
    return [group[at : at + MOST_TOGETHER] for group in groups.values() for at in range(0, len(group), MOST_TOGETHER)]


def _outgoing(occasion: str, channel: Channel, message: Message) -> Outgoing:
    return Outgoing(f"{occasion}/{channel.id}", channel.user, channel.id, channel.name, message)
