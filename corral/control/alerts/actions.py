"""Stop or tag the jobs, cordon the nodes and fix the GPUs that alerts name, by the same intents as people; mail alerts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from corral.control.alerts.clock_fixes import ClockFixer
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.alerts.stored import Silence, StoredAlert, silencing
from corral.model.alerts.told import told_alert
from corral.model.cordons import Cordon
from corral.model.notifications.channels import Channel, ChannelKind, Outgoing, alerts_channel, mail_channel
from corral.model.notifications.messages import about_alert
from corral.model.store_writes import IntentKind, JobRecord
from corral.monitor.rules.inhibition import Inhibited
from corral.monitor.rules.routes import MAILS, Action, Route, Routes
from corral.store.cluster_views import NodeRow

log = structlog.get_logger()

_BY: Final = "alert:"
_LONGEST: Final = 300
_TOLD_OVER: Final = frozenset({Action.WEBHOOK})
"""What is done about an alert that is over."""
_TELLING: Final = MAILS | _TOLD_OVER
_MINOR: Final = re.compile(r"[0-9]{1,4}")
_OWNER: Final = ":alerts"
"""Stands for a user in the queue of messages to administrators; no account has such a name."""


class Records(Protocol):
    """The part of the store that actions need."""

    async def find_job(self, ref: str, user: str | None = None) -> JobRecord | None:
        """Find a job."""
        ...

    async def add_intent(
        self, job: JobId, kind: IntentKind, data: dict[str, object] | None = None, *, actor: str, at: float,
        audit: AuditWrite | None = None,
    ) -> int:  # fmt: skip
        """Store an intent."""
        ...

    async def change_tag(
        self, job: JobId, tag: str, *, there: bool, actor: str, at: float, audit: AuditWrite | None = None
    ) -> bool:
        """Add or remove a tag."""
        ...

    async def nodes(self) -> Sequence[NodeRow]:
        """All nodes."""
        ...

    async def cordons(self) -> dict[str, Cordon]:
        """Cordons by node."""
        ...

    async def put_cordon(self, cordon: Cordon, *, audit: AuditWrite | None = None) -> None:
        """Cordon a node."""
        ...

    async def channels_of(self, users: Collection[str]) -> list[Channel]:
        """The channels of people."""
        ...

    async def queue_messages(self, outgoing: Sequence[Outgoing], now: float) -> int:
        """Queue messages, each occasion once."""
        ...


class AlertActions:
    """Does what the routes say about alerts that fire and that neither a person silences nor another alert inhibits."""

    def __init__(self, routes: Routes, store: Records, fixer: ClockFixer | None = None) -> None:
        """`fixer` sets the clocks of GPUs; None only if no route does that."""
        self._routes = routes
        self._store = store
        self._fixer = fixer

    async def act(self, alerts: Iterable[StoredAlert], silences: Sequence[Silence], now: float) -> set[str]:
        """Act on alerts that are due; returns the fingerprints of those that were acted on.

        An action that a refusal makes impossible is logged and not tried again before the routes' `repeat`. Raises
        Unavailable if the store does not answer; what was done until then is done again, which changes nothing.
        """
        alerts = list(alerts)
        routed = [(each, self._routes.of(each.labels)) for each in alerts if self._is_due(each, now)]
        if not routed:
            return set()
        inhibited = Inhibited(self._routes.inhibit, (each.labels for each in alerts if each.state == "firing"))
        done = set()
        for alert, route in routed:
            if route is None or silencing(silences, alert.labels, now) or inhibited.holds(alert.labels):
                continue
            over = alert.state == "resolved"
            for action in _TOLD_OVER.intersection(route.actions) if over else route.actions:
                try:
                    await self._do(action, route, alert, now)
                except Unavailable:
                    raise
                except CorralError as error:
                    log.warning("an alert's action failed", alert=alert.rule, action=str(action), error=error.message)
            done.add(alert.fingerprint)
        return done

    def _is_due(self, alert: StoredAlert, now: float) -> bool:
        """Whether an alert fires and has not acted for `repeat`, or is over and its receivers may not know."""
        if alert.state == "resolved":
            return bool(self._routes.webhooks) and not alert.acted_at
        repeat = self._routes.repeat
        return alert.state == "firing" and (not alert.acted_at or (repeat > 0 and now - alert.acted_at >= repeat))

    async def _do(self, action: Action, route: Route, alert: StoredAlert, now: float) -> None:
        if action is Action.CORDON_NODES:
            await self._cordon(alert, now)
            return
        if action is Action.FIX_GPU_CLOCKS:
            await self._fix(alert, now)
            return
        job = await self._job(alert.labels)
        if action in _TELLING:
            await self._tell(action, alert, job, now)
            return
        if job is None:
            log.warning("an alert names no job", alert=alert.rule, action=str(action), labels=alert.labels)
            return
        actor = _actor(alert)
        if action is Action.TAG_JOBS:
            for tag in route.tags:
                line = _line(alert, "job.tag", f"job:{job.id}", now)
                await self._store.change_tag(job.id, tag, there=True, actor=actor, at=now, audit=line)
        elif job.live:
            line = _line(alert, "job.stop", f"job:{job.id}", now)
            await self._store.add_intent(job.id, IntentKind.STOP, {}, actor=actor, at=now, audit=line)

    async def _tell(self, action: Action, alert: StoredAlert, job: JobRecord | None, now: float) -> None:
        """Queue a message for each address; the same one again is known by its key, until the alert acts anew."""
        if action is Action.WEBHOOK:
            channels = [alerts_channel(each) for each in self._routes.webhooks]
        elif action is Action.EMAIL_ADMIN:
            channels = [mail_channel(each) for each in self._routes.mail_to]
        else:
            channels = await self._mail_channels(alert.labels.get("username") or (job.user if job is not None else ""))
        summary = alert.annotations.get("summary") or alert.annotations.get("description", "")
        message = about_alert(
            alert.labels, summary, alert.fired_at or alert.since, now,
            job=job.id if job is not None else "", data=told_alert(alert),
        )  # fmt: skip
        occasion = f"alert/{alert.fingerprint}/{alert.fired_at:.0f}/{alert.state}/{alert.acted_at:.0f}"
        outgoing = [
            Outgoing(f"{occasion}/{each.id}", each.user or _OWNER, each.id, each.name, message) for each in channels
        ]
        await self._store.queue_messages(outgoing, now)

    async def _mail_channels(self, user: str) -> list[Channel]:
        found = await self._store.channels_of([user]) if user else []
        return [each for each in found if each.kind == ChannelKind.MAIL and each.verified_at is not None]

    async def _job(self, labels: Mapping[str, str]) -> JobRecord | None:
        """The job of `job_name`: USER~NAME, or a name beside `username`; a name alone could be anybody's."""
        name, user = labels.get("job_name", ""), labels.get("username", "")
        if not name or ("~" not in name and not user):
            return None
        return await self._store.find_job(name, user or None)

    async def _node(self, alert: StoredAlert) -> str:
        """The node of `node_name`; "" if there is none, or several have the name."""
        name = alert.labels.get("node_name", "")
        known = [each.node.name for each in await self._store.nodes()]
        found = [each for each in known if name and name in (each, each.partition("/")[2])]
        if len(found) == 1:
            return found[0]
        log.warning("an alert names no node", alert=alert.rule, node=name, found=len(found))
        return ""

    async def _fix(self, alert: StoredAlert, now: float) -> None:
        node, number = await self._node(alert), alert.labels.get("minor_number", "")
        if not _MINOR.fullmatch(number):
            log.warning("an alert names no GPU", alert=alert.rule, minor_number=number[:_LONGEST])
        elif node and self._fixer is not None:
            line = _line(alert, "node.fix-gpu-clocks", f"node:{node}", now)
            await self._fixer.fix(node, int(number), line, _actor(alert))

    async def _cordon(self, alert: StoredAlert, now: float) -> None:
        name = await self._node(alert)
        cordons = await self._store.cordons()
        if not name or name in cordons:
            return
        if sum(each.by.startswith(_BY) for each in cordons.values()) >= self._routes.most_nodes:
            log.warning("alerts have cordoned enough nodes", alert=alert.rule, node=name, most=self._routes.most_nodes)
            return
        why = (alert.annotations.get("summary") or alert.rule)[:_LONGEST]
        line = _line(alert, "node.cordon", f"node:{name}", now)
        await self._store.put_cordon(Cordon(name, _actor(alert), why, now), audit=line)


def _actor(alert: StoredAlert) -> str:
    return f"{_BY}{alert.rule}"[:100]


def _line(alert: StoredAlert, action: str, resource: str, now: float) -> AuditWrite:
    return AuditWrite(now, _actor(alert), action, resource, "alert-route", True, {"alert": alert.labels})
