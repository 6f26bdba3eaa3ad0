"""Read what Alertmanager's webhook sends (prometheus.io/docs/alerting/latest/configuration, webhook_config)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from corral.kernel.errors import InvalidInput, TooLarge
from corral.model.alerts.stored import AlertSource, StoredAlert

MOST_BYTES: Final = 1024 * 1024
"""The most bytes of a call of the webhook."""
MOST_TOLD: Final = 1000
"""The most alerts of a call."""
KEPT_SECONDS: Final = 2 * 86_400.0
"""Seconds after which an alert that was not told again is forgotten; Alertmanager repeats every four hours."""
RESOLVED_SECONDS: Final = 900.0
"""Seconds for which an alert that ended is shown."""
_MOST_LABELS: Final = 64
_NEVER: Final = "0001-01-01T00:00:00Z"

_Text = Annotated[str, msgspec.Meta(max_length=4000)]
_Texts = Annotated[dict[Annotated[str, msgspec.Meta(max_length=200)], _Text], msgspec.Meta(max_length=_MOST_LABELS)]


class ToldAlert(msgspec.Struct, rename="camel"):
    """An alert as Alertmanager tells it."""

    status: str
    labels: _Texts
    annotations: _Texts = {}
    starts_at: Annotated[str, msgspec.Meta(max_length=64)] = ""
    ends_at: Annotated[str, msgspec.Meta(max_length=64)] = ""


class WebhookCall(msgspec.Struct):
    """A call of the webhook: of Alertmanager's fields, those that are read; any others are ignored."""

    alerts: list[ToldAlert]


_CALL: Final = msgspec.json.Decoder(WebhookCall)


def told_alerts(body: bytes, now: float) -> list[StoredAlert]:
    """The alerts of a call; `now` is in seconds since 1970. Raises InvalidInput, TooLarge."""
    if len(body) > MOST_BYTES:
        raise TooLarge("too-large", f"A call of the alerts' webhook has at most {MOST_BYTES} bytes.")
    try:
        told = _CALL.decode(body).alerts
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput("bad-alerts", f"This is not what Alertmanager's webhook sends: {error}.") from None
    if len(told) > MOST_TOLD:
        raise TooLarge("too-many-alerts", f"A call of the alerts' webhook has at most {MOST_TOLD} alerts.")
    return [_alert(place, each, now) for place, each in enumerate(told)]


def merged(before: Mapping[str, StoredAlert], told: list[StoredAlert], now: float) -> list[StoredAlert]:
    """The alerts of Alertmanager after a call: told ones replace earlier ones, and old ones are forgotten."""
    kept = {key: each for key, each in before.items() if each.expires_at > now}
    for each in told:
        earlier = kept.get(each.fingerprint)
        acted = earlier.acted_at if earlier is not None and earlier.state == each.state else 0.0
        kept[each.fingerprint] = msgspec.structs.replace(each, acted_at=acted)
    return list(kept.values())


def _alert(place: int, told: ToldAlert, now: float) -> StoredAlert:
    name = told.labels.get("alertname", "")
    if not name or told.status not in ("firing", "resolved"):
        raise InvalidInput(
            "bad-alert", f"Alert {place} needs a label alertname, and the status firing or resolved.", place=place
        )
    labels = {key: value for key, value in told.labels.items() if value}
    begun = min(now, _seconds(place, told.starts_at, now))
    if told.status == "firing":
        return StoredAlert(
            AlertSource.ALERTMANAGER, name, labels, told.annotations, "firing", begun, fired_at=begun,
            expires_at=now + KEPT_SECONDS,
        )  # fmt: skip
    ended = min(now, _seconds(place, told.ends_at, now))
    return StoredAlert(
        AlertSource.ALERTMANAGER, name, labels, told.annotations, "resolved", begun, fired_at=begun, resolved_at=ended,
        expires_at=now + RESOLVED_SECONDS,
    )  # fmt: skip


def _seconds(place: int, text: str, now: float) -> float:
    """A time in seconds since 1970; `now` where none is told."""
    if text in ("", _NEVER):
        return now
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        raise InvalidInput(
            "bad-alert-time", f"Alert {place} has the time {text!r}, which is none.", place=place
        ) from None
