"""Show alerts, silence them, and take those of an Alertmanager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.units import format_duration
from corral.model.alerts.matchers import match_all, parse_matcher
from corral.model.alerts.stored import AlertSource, Silence, StoredAlert, silencing
from corral.model.alerts.views import AlertList, SilenceList, SilenceView, Taken, alert_view, silence_view
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.alerts.webhook import merged, told_alerts
from corral.service.context import Context

LONGEST_SILENCE: Final = 31 * 86_400
"""The longest silence, in seconds."""
_MOST_MATCHERS: Final = 20
_LONGEST_REASON: Final = 500
_USER: Final = "username"
_JOB: Final = "job_name"


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
        if len(matchers) > _MOST_MATCHERS:
            raise InvalidInput("too-many-matchers", f"At most {_MOST_MATCHERS} matchers choose among alerts.")
        conditions, now = tuple(map(parse_matcher, matchers)), self._context.clock.now()
        alerts, silences = await self._store.alerts(), await self._store.silences(now)

        def seen() -> Sequence[tuple[StoredAlert, tuple[str, ...]]]:
            return [
                (each, silencing(silences, each.labels, now))
                for each in alerts
                if (actor.is_admin or _is_about(actor.user, each.labels))
                and match_all(conditions, each.labels)
                and not 0 < each.expires_at <= now
            ]

        # Thousands of alerts under hundreds of silences take a second, in which others want answers.
        return await asyncio.to_thread(seen)

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


def _is_about(user: str, labels: dict[str, str]) -> bool:
    """Whether an alert is about a job of a user."""
    return labels.get(_USER) == user or (_USER not in labels and labels.get(_JOB, "").partition("~")[0] == user)
