"""Evaluate the rules every 30 s beside the control loop, and store what becomes of their alerts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, Protocol

import msgspec
import structlog

from corral.control.alerts.actions import AlertActions
from corral.control.alerts.past_series import PastSeries, Read
from corral.control.alerts.reported_figures import Named
from corral.control.alerts.sample_series import SampleSeries
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError
from corral.model.alerts.stored import AlertSource, Silence, StoredAlert
from corral.model.metrics.job_figures import JOB_FIGURES
from corral.model.metrics.samples import Samples
from corral.model.store_writes import ServerEvent
from corral.monitor.look_again import look_again
from corral.monitor.rules.alerting import Alert, AlertState
from corral.monitor.rules.evaluator import RulesEvaluator
from corral.monitor.rules.rules_file import Group
from corral.monitor.rules.series import labels_of
from corral.store.alert_records import Merge

log = structlog.get_logger()

EVERY_SECONDS: Final = 30.0
"""Seconds between two evaluations."""
_REST: Final = 50.0
"""Multiple of an evaluation's own time that passes before the next one: rules take at most 2 % of a core."""
_TOLD_ROUNDS: Final = 3.0
"""Rounds in which an agent's figures must have come; a node without them has no series, and no alert."""
_MOST_EVENTS: Final = 20
"""The most events of an evaluation; of more, the last one tells their number."""


class Records(Protocol):
    """The part of the store that has alerts."""

    async def alerts(self, source: str = "") -> list[StoredAlert]:
        """The alerts of a source."""
        ...

    async def replace_alerts(self, source: AlertSource, merge: Merge) -> None:
        """Replace the alerts of a source."""
        ...

    async def silences(self, now: float) -> list[Silence]:
        """The silences that have not ended."""
        ...

    async def tell_of_server(self, told: Sequence[ServerEvent]) -> None:
        """Store events of the server."""
        ...


class AlertKeeper:
    """The rules of a server. What fails here is logged once, and never stops the scheduler."""

    def __init__(
        self,
        groups: Sequence[Group],
        store: Records,
        samples: Callable[[], Samples],
        clock: Clock,
        *,
        instance: str = "",
        actions: AlertActions | None = None,
        machines: Callable[[float], Mapping[str, Samples]] = lambda rounds: {},
        kept: Read | None = None,
        reported: Callable[[float], Iterable[Named]] = lambda now: (),
    ) -> None:
        """`samples` tells what is measured now; `instance` is the label of that name of its series.

        `machines` are, by node, what agents of other machines told within a number of rounds.

        `kept` reads the store of series, which has the past from before the start; None where there is none.

        `reported` are what jobs report of their work at a time.

        `actions` are done about alerts of the rules and of Alertmanager.
        """
        self._actions = actions
        self._rules = RulesEvaluator(groups)
        history = None if kept is None else PastSeries(kept, self._rules.past).of
        self._series = SampleSeries(self._rules.selectors, self._rules.past, instance, history)
        self._store = store
        self._samples, self._machines = samples, machines
        self._reported = reported if self._series.reads(JOB_FIGURES) else lambda now: ()
        self._clock = clock
        self._cost = 0.0
        """Seconds of processor time of the last evaluation."""
        self._errors: dict[str, str] = {}
        self._known: dict[str, StoredAlert] | None = None

    def reads(self, name: str) -> bool:
        """Whether a rule reads a metric of this name."""
        return self._series.reads((name,))

    async def run(self, ready: asyncio.Event) -> None:
        """Evaluate from when control leads until cancelled."""
        await look_again(
            ready,
            self.evaluate,
            lambda: max(EVERY_SECONDS, _REST * self._cost),
            "the alert rules could not be evaluated",
        )

    async def evaluate(self) -> None:
        """Evaluate all rules once.

        Raises Unavailable if the store does not answer: the alerts are then stored by the next evaluation.
        """
        if self._known is None:
            await self._restore()
        now = self._clock.now()
        seen = self._samples(), self._machines(_TOLD_ROUNDS), list(self._reported(now))
        self._cost = await asyncio.to_thread(self._step, *seen, now)
        self._tell_errors()
        found = {}
        for rule, alert in self._rules.alerts():
            told = _stored(rule.name, alert)
            found[told.fingerprint] = _as_acted(told, self._known or {})
        if found != self._known:
            events = changes(self._known or {}, found, now)
            await self._store.replace_alerts(AlertSource.RULES, lambda _: list(found.values()))
            self._known = found
            if events:
                await self._store.tell_of_server(events)
        if self._actions is not None:
            await self._act(self._actions, now)

    async def _act(self, actions: AlertActions, now: float) -> None:
        """Do what the routes say, and store when it was done."""
        acted = await actions.act(await self._store.alerts(), await self._store.silences(now), now)

        def noted(before: Mapping[str, StoredAlert]) -> list[StoredAlert]:
            return [
                msgspec.structs.replace(each, acted_at=now) if key in acted else each for key, each in before.items()
            ]

        if acted:
            for source in AlertSource:
                await self._store.replace_alerts(source, noted)
            self._known = {each.fingerprint: each for each in noted(self._known or {})}

    async def _restore(self) -> None:
        """Go on with the alerts that were stored before a restart, so that their `for` does not begin anew."""
        known = await self._store.alerts(AlertSource.RULES)
        self._rules.restore((each.rule, _restored(each)) for each in known)
        self._known = {each.fingerprint: each for each in known}

    def _step(self, samples: Samples, machines: Mapping[str, Samples], reported: Sequence[Named], now: float) -> float:
        begun = time.thread_time()
        self._series.read(samples, now, machines, reported)
        self._rules.evaluate(self._series, now)
        return time.thread_time() - begun

    def _tell_errors(self) -> None:
        errors = {state.rule.name: state.error for group in self._rules.groups for state in group.rules if state.error}
        for name, error in errors.items():
            if self._errors.get(name) != error:
                log.warning("an alert rule fails", rule=name, error=error)
        self._errors = errors


def changes(before: Mapping[str, StoredAlert], after: Mapping[str, StoredAlert], now: float) -> list[ServerEvent]:
    """The events of alerts that began or ceased to fire."""
    told = []
    for key, alert in after.items():
        fires, fired = (each is not None and each.state == AlertState.FIRING for each in (alert, before.get(key)))
        if fires and not fired:
            told.append(ServerEvent(now, "server.alert-fires", _text(alert), alert.rule))
        elif fired and not fires:
            told.append(ServerEvent(now, "server.alert-ends", f"Over: {_text(alert)}", alert.rule))
    if len(told) > _MOST_EVENTS:
        more = len(told) - _MOST_EVENTS + 1
        told[_MOST_EVENTS - 1 :] = [
            ServerEvent(now, "server.alert-fires", f"{more} more alerts changed; `corral alerts` lists them.")
        ]
    return told


def _as_acted(alert: StoredAlert, known: Mapping[str, StoredAlert]) -> StoredAlert:
    """The alert with the time of its actions, if it has fired since before them."""
    earlier = known.get(alert.fingerprint)
    if earlier is None or earlier.state != alert.state or earlier.fired_at != alert.fired_at:
        return alert
    return msgspec.structs.replace(alert, acted_at=earlier.acted_at)


def _text(alert: StoredAlert) -> str:
    said = alert.annotations.get("summary") or ", ".join(f'{name}="{each}"' for name, each in alert.labels.items())
    return f"{alert.rule}: {said}"[:500]


def _said(error: Exception) -> str:
    return error.message if isinstance(error, CorralError) else repr(error)


def _stored(rule: str, alert: Alert) -> StoredAlert:
    return StoredAlert(
        AlertSource.RULES,
        rule,
        dict(alert.labels),
        dict(alert.annotations),
        str(alert.state),
        alert.since,
        alert.value if isfinite(alert.value) else None,
        alert.fired_at,
        alert.kept_since,
        alert.resolved_at,
    )


def _restored(stored: StoredAlert) -> Alert:
    return Alert(
        labels_of(stored.labels),
        tuple(stored.annotations.items()),
        0.0 if stored.value is None else stored.value,
        AlertState(stored.state),
        stored.since,
        stored.fired_at,
        stored.kept_since,
        stored.resolved_at,
    )
