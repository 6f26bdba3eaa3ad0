"""The states of alerts, moved by what the rules find, as Prometheus 2.42 moves them (rules/alerting.go)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.monitor.rules.operators import Vector
from corral.monitor.rules.rules_file import Rule
from corral.monitor.rules.series import NAME, Labels, labels_of

RESOLVED_FOR: Final = 900.0
"""Seconds for which an alert that ended is shown as resolved."""
ALERT_NAME: Final = "alertname"


class AlertState(StrEnum):
    """The state of an alert; one that is not there is inactive."""

    PENDING = "pending"
    """Its condition holds, but not yet for the time of its rule. -> firing, gone"""
    FIRING = "firing"
    """Its condition has held long enough. -> resolved"""
    RESOLVED = "resolved"
    """Its condition held, and ceased. -> pending, gone"""


class Sign(StrEnum):
    """What happens to an alert."""

    HOLDS = "holds"
    LASTS = "lasts"
    """The condition has held for the time of the rule."""
    CEASES = "ceases"
    """The condition no longer holds, and the time for which the rule keeps it firing is over."""
    EXPIRES = "expires"
    """It has been resolved for RESOLVED_FOR seconds."""


TRANSITIONS: Final[dict[tuple[AlertState | None, Sign], AlertState | None]] = {
    (None, Sign.HOLDS): AlertState.PENDING,
    (AlertState.PENDING, Sign.LASTS): AlertState.FIRING,
    (AlertState.PENDING, Sign.CEASES): None,
    (AlertState.FIRING, Sign.CEASES): AlertState.RESOLVED,
    (AlertState.RESOLVED, Sign.HOLDS): AlertState.PENDING,
    (AlertState.RESOLVED, Sign.EXPIRES): None,
}
"""Every move of an alert; None is an alert that is not there. Any other sign changes nothing."""


class Alert(NamedTuple):
    """An alert of a rule. Times are in seconds since 1970; 0 is never."""

    labels: Labels
    annotations: Labels
    value: float
    state: AlertState
    since: float
    """When its condition began to hold."""
    fired_at: float = 0.0
    kept_since: float = 0.0
    """When its condition ceased, while the rule keeps it firing."""
    resolved_at: float = 0.0


Alerts = Mapping[Labels, Alert]
"""The alerts of one rule by their labels."""


def step(rule: Rule, before: Alerts, found: Vector, now: float, *, held_before: float = 0.0) -> dict[Labels, Alert]:
    """The alerts of a rule after an evaluation found these series.

    Alerts that began before `held_before` do not cease: the source does not reach as far back as the rule looks.

    Raises InvalidInput if two series would raise alerts with the same labels.
    """
    holding = _alerts_of(rule, found, now)
    after: dict[Labels, Alert] = {}
    for labels, fresh in holding.items():
        old = before.get(labels)
        if old is None or old.state is AlertState.RESOLVED:
            alert = fresh._replace(state=_required(None if old is None else old.state, Sign.HOLDS))
        else:
            alert = old._replace(value=fresh.value, annotations=fresh.annotations, kept_since=0.0)
        after[labels] = _lasting(rule, alert, now)
    for labels, alert in before.items():
        if labels in holding:
            continue
        held = alert.since < held_before and alert.state is not AlertState.RESOLVED
        kept = alert if held else _ceased(rule, alert, now)
        if kept is not None:
            after[labels] = kept
    return after


def _alerts_of(rule: Rule, found: Vector, now: float) -> dict[Labels, Alert]:
    alerts: dict[Labels, Alert] = {}
    for series, value in found.items():
        named = dict(series)
        labels = {name: each for name, each in named.items() if name != NAME}
        labels |= {name: template.text_for(named, value) for name, template in rule.labels}
        key = labels_of(labels | {ALERT_NAME: rule.name})
        if key in alerts:
            raise InvalidInput("same-alerts", f"Two alerts of the rule {rule.name} have the same labels.")
        annotations = tuple((name, template.text_for(named, value)) for name, template in rule.annotations)
        alerts[key] = Alert(key, annotations, value, AlertState.PENDING, now)
    return alerts


def _lasting(rule: Rule, alert: Alert, now: float) -> Alert:
    if alert.state is AlertState.PENDING and now - alert.since >= rule.hold:
        return alert._replace(state=_required(alert.state, Sign.LASTS), fired_at=now)
    return alert


def _ceased(rule: Rule, alert: Alert, now: float) -> Alert | None:
    if alert.state is AlertState.RESOLVED:
        return None if now - alert.resolved_at > RESOLVED_FOR else alert
    if alert.state is AlertState.FIRING and rule.keep:
        alert = alert._replace(kept_since=alert.kept_since or now)
        if now - alert.kept_since < rule.keep:
            return alert
    state = TRANSITIONS[alert.state, Sign.CEASES]
    return None if state is None else alert._replace(state=state, resolved_at=now)


def _required(state: AlertState | None, sign: Sign) -> AlertState:
    moved = TRANSITIONS[state, sign]
    assert moved is not None
    return moved
