"""Alerts in the JSON of Alertmanager's webhooks (prometheus.io/docs/alerting/latest/configuration, webhook_config)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from corral.model.alerts.stored import StoredAlert
from corral.model.records import rfc3339

NEVER: Final = "0001-01-01T00:00:00Z"
"""The end of an alert that fires."""


def told_alert(alert: StoredAlert) -> dict[str, Any]:
    """One alert of a call."""
    resolved = alert.state == "resolved"
    return {
        "status": "resolved" if resolved else "firing",
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": rfc3339(alert.fired_at or alert.since),
        "endsAt": rfc3339(alert.resolved_at) if resolved else NEVER,
        "generatorURL": "",
        "fingerprint": alert.fingerprint,
    }


def webhook_call(receiver: str, alerts: Sequence[dict[str, Any]], url: str) -> dict[str, Any]:
    """A call that tells alerts to a receiver; `url` is the server's."""
    fires = any(each["status"] == "firing" for each in alerts)
    return {
        "version": "4",
        "groupKey": f"corral/{receiver}",
        "truncatedAlerts": 0,
        "status": "firing" if fires else "resolved",
        "receiver": receiver,
        "groupLabels": {},
        "commonLabels": _common([each["labels"] for each in alerts]),
        "commonAnnotations": _common([each["annotations"] for each in alerts]),
        "externalURL": url,
        "alerts": list(alerts),
    }


def _common(texts: Sequence[dict[str, str]]) -> dict[str, str]:
    """What all of them have."""
    return dict(set.intersection(*(set(each.items()) for each in texts)))
