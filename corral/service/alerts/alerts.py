"""Show alerts, silence them, and take those of an Alertmanager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.units import format_duration
from corral.model.alerts.matchers import Matcher, match_all, parse_matcher
from corral.model.alerts.stored import AlertSource, Silence, StoredAlert, silencing, user_of
from corral.model.alerts.views import (
    AlertList,
    PastAlertView,
    SilenceList,
    SilenceView,
    Taken,
    alert_view,
    past_alert_view,
    silence_view,
)
from corral.model.records import Page, rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.alerts.webhook import merged, told_alerts
from corral.service.context import Context
from corral.service.times import read_time

LONGEST_SILENCE: Final = 31 * 86_400
"""The longest silence, in seconds."""
_MOST_MATCHERS: Final = 20
_LONGEST_REASON: Final = 500
HISTORY_SECONDS: Final = 7 * 86_400.0
"""How far the history looks back where nobody says how far."""


class Alerts:
    """Alerts and silences."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def list(self, actor: Actor, matchers: Sequence[str] = ()) -> AlertList:
        """The alerts that meet all matchers: all for administrators, those about their own jobs for others.

        Raises InvalidInput for a matcher that cannot be read.
        """
        return AlertList(tuple(alert_view(*each) for each in await self.found(actor, matchers)))

    async def found(self, actor: Actor, matchers: Sequence[str] = ()) -> Sequence[tuple[StoredAlert, tuple[str, ...]]]:
        """Stored alerts that the actor may see, each with the silences that it is under."""
        await self._context.check(actor, "job.list", Resource("job"))
        conditions, now = _conditions(matchers), self._context.clock.now()
        alerts, silences = await self._store.alerts(), await self._store.silences(now)

        def seen() -> Sequence[tuple[StoredAlert, tuple[str, ...]]]:
            return [
                (each, silencing(silences, each.labels, now))
                for each in alerts
                if (actor.is_admin or user_of(each.labels) == actor.user)
                and match_all(conditions, each.labels)
                and not 0 < each.expires_at <= now
            ]

        # Thousands of alerts under hundreds of silences take a second, in which others want answers.
        return await asyncio.to_thread(seen)

    async def history(
        self,
        actor: Actor,
        matchers: Sequence[str] = (),
        *,
        begin: str = "",
        end: str = "",
        limit: int = 100,
        after: str = "",
    ) -> Page[PastAlertView]:
        """One page of the alerts that began to fire between two times, by default in the last week, the latest first.

        Administrators see all, others those about their own jobs. Raises InvalidInput for what is no time, matcher or
        cursor.
        """
        await self._context.check(actor, "job.list", Resource("job"))
        conditions, now = _conditions(matchers), self._context.clock.now()
        until = read_time("to", end) if end else now + 1
        since = read_time("from", begin) if begin else max(0.0, until - HISTORY_SECONDS)
        if since >= until:
            raise InvalidInput("bad-period", f"The period from {rfc3339(since)} to {rfc3339(until)} has no length.")
        found = await self._store.past_alerts(
            lambda past: match_all(conditions, past.alert.labels),
            begin=since, end=until, about=None if actor.is_admin else actor.user, limit=limit, after_cursor=after,
        )  # fmt: skip
        return Page([past_alert_view(each) for each in found.items], found.next)

    async def silences(self, actor: Actor) -> SilenceList:
        """The silences that have not ended, for administrators."""
        await self._context.check(actor, "alert.silence", Resource("alert"))
        found = await self._store.silences(self._context.clock.now())
        return SilenceList(tuple(map(silence_view, found)))

    async def silence(self, actor: Actor, matchers: Sequence[str], *, seconds: float, reason: str) -> SilenceView:
        """Silence alerts that meet all matchers, now and later, for so many seconds.

        Raises Forbidden for anybody but administrators, InvalidInput for matchers that meet all alerts or cannot be
        read, for no reason and for a length out of bounds, Conflict if there are too many silences.
        """
        resource = Resource("alert")
        decision = await self._context.check(actor, "alert.silence", resource)
        if not 0 < len(matchers) <= _MOST_MATCHERS:
            raise InvalidInput("no-matcher", f"A silence needs 1 to {_MOST_MATCHERS} matchers, such as node_name=n1.")
        conditions = [parse_matcher(each) for each in matchers]
        if all(each.matches("") for each in conditions):
            raise InvalidInput("silences-all", "These matchers would silence every alert; name a label's value.")
        if not 0 < seconds <= LONGEST_SILENCE:
            most = format_duration(LONGEST_SILENCE)
            raise InvalidInput("bad-silence", f"A silence is longer than nothing and at most {most}.")
        why = " ".join("".join(each if each.isprintable() else " " for each in reason).split())
        if not 0 < len(why) <= _LONGEST_REASON:
            raise InvalidInput("no-reason", f"A silence needs a reason of at most {_LONGEST_REASON} characters.")
        now = self._context.clock.now()
        made = Silence(token_hex(6), tuple(matchers), actor.user, why, now, now + seconds)
        line = self._context.line(
            actor,
            "alert.silence",
            resource,
            decision,
            silence=made.id,
            matchers=list(matchers),
            seconds=seconds,
            why=why,
        )
        await self._store.add_silence(made, audit=line)
        return silence_view(made)

    async def unsilence(self, actor: Actor, silence: str) -> None:
        """End a silence. Raises Forbidden for anybody but administrators, NotFound."""
        resource = Resource("alert")
        decision = await self._context.check(actor, "alert.silence", resource)
        line = self._context.line(actor, "alert.silence", resource, decision, silence=silence[:100], ends=True)
        if not await self._store.remove_silence(silence, audit=line):
            raise NotFound("no-silence", f"There is no silence {silence[:100]!r}; `corral alerts silences` lists them.")

    async def take(self, actor: Actor, body: bytes) -> Taken:
        """Take what Alertmanager's webhook sends.

        Raises Forbidden for anybody but administrators, InvalidInput, TooLarge.
        """
        await self._context.check(actor, "alert.tell", Resource("alert"))
        now = self._context.clock.now()
        told = told_alerts(body, now)
        await self._store.replace_alerts(AlertSource.ALERTMANAGER, lambda before: merged(before, told, now))
        firing = sum(each.state == "firing" for each in told)
        return Taken(firing, len(told) - firing)


def _conditions(matchers: Sequence[str]) -> tuple[Matcher, ...]:
    if len(matchers) > _MOST_MATCHERS:
        raise InvalidInput("too-many-matchers", f"At most {_MOST_MATCHERS} matchers choose among alerts.")
    return tuple(map(parse_matcher, matchers))
