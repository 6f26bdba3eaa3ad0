"""Alerts and silences in the API."""

from __future__ import annotations

from typing import Annotated

from corral.model.alerts.stored import AlertSource, PastAlert, Silence, StoredAlert
from corral.model.records import Record, one_of, rfc3339, rfc3339_or_none


class AlertView(Record, frozen=True):
    """An alert: a condition of a rule that holds for some labels, or held until a short while ago."""

    fingerprint: str
    """A short name of the alert, the same for the same labels."""
    name: str
    """The name of its rule."""
    state: Annotated[str, one_of("pending", "firing", "resolved")]
    """`pending`: the condition holds, but not yet for the rule's `for`."""
    severity: str
    """Its label `severity`, such as info, warn, error or fatal."""
    labels: dict[str, str]
    annotations: dict[str, str]
    value: float | None
    """The value of the rule's expression; null where the source tells none."""
    since: str
    """When its condition began to hold."""
    fired_at: str | None
    resolved_at: str | None
    source: Annotated[str, one_of(*AlertSource)]
    """`rules`: Corral's own evaluator; `alertmanager`: the webhook."""
    silenced_by: tuple[str, ...]
    """The ids of the silences that it is under."""


class AlertList(Record, frozen=True):
    """All alerts that the caller may see, those that fire first."""

    items: tuple[AlertView, ...]


class PastAlertView(Record, frozen=True):
    """An alert that fired."""

    fingerprint: str
    """A short name of the alert, the same for the same labels."""
    name: str
    """The name of its rule."""
    severity: str
    labels: dict[str, str]
    annotations: dict[str, str]
    value: float | None
    """The value of the rule's expression; null where the source tells none."""
    fired_at: str
    ended_at: str | None
    """null while it fires."""
    source: Annotated[str, one_of(*AlertSource)]


class SilenceView(Record, frozen=True):
    """A silence: alerts that meet all its matchers are told to nobody until it ends."""

    id: str
    matchers: tuple[str, ...]
    """Such as `alertname=~"Node.*"`; the operators are =, !=, =~ and !~."""
    by: str
    reason: str
    begins: str
    ends: str


class SilenceList(Record, frozen=True):
    """The silences that have not ended."""

    items: tuple[SilenceView, ...]


class Taken(Record, frozen=True):
    """How many alerts the webhook took."""

    firing: int
    resolved: int


def alert_view(alert: StoredAlert, silenced_by: tuple[str, ...]) -> AlertView:
    """Convert an alert to the API's form."""
    return AlertView(
        alert.fingerprint,
        alert.rule,
        alert.state,
        alert.labels.get("severity", ""),
        alert.labels,
        alert.annotations,
        alert.value,
        rfc3339(alert.since),
        rfc3339_or_none(alert.fired_at or None),
        rfc3339_or_none(alert.resolved_at or None),
        alert.source,
        silenced_by,
    )


def past_alert_view(past: PastAlert) -> PastAlertView:
    """Convert an alert of the history to the API's form."""
    alert = past.alert
    return PastAlertView(
        alert.fingerprint,
        alert.rule,
        alert.labels.get("severity", ""),
        alert.labels,
        alert.annotations,
        alert.value,
        rfc3339(past.fired_at),
        rfc3339_or_none(past.ended_at or None),
        alert.source,
    )


def silence_view(silence: Silence) -> SilenceView:
    """Convert a silence to the API's form."""
    begins, ends = rfc3339(silence.begins), rfc3339(silence.ends)
    return SilenceView(silence.id, silence.matchers, silence.by, silence.reason, begins, ends)
