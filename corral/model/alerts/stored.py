"""Alerts and silences as they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from corral.model.alerts.matchers import Matcher, match_all, parse_matcher

MOST_ALERTS: Final = 2000
"""The most alerts that are stored of a source; those that fire come first."""
MOST_SILENCES: Final = 500


class AlertSource(StrEnum):
    """Who raised an alert."""

    RULES = "rules"
    """Corral's own evaluator of the rules file."""
    ALERTMANAGER = "alertmanager"
    """An Alertmanager, or a program that calls the webhook as one does."""


class StoredAlert(msgspec.Struct, frozen=True, gc=False):
    """An alert and its state. Times are in seconds since 1970; 0 is never."""

    source: str
    rule: str
    labels: dict[str, str]
    annotations: dict[str, str]
    state: str
    """`pending`, `firing` or `resolved`."""
    since: float
    value: float | None = None
    fired_at: float = 0.0
    kept_since: float = 0.0
    resolved_at: float = 0.0
    expires_at: float = 0.0
    """When an alert of Alertmanager is forgotten that was not told again."""

    acted_at: float = 0.0
    """When the actions of its route were done last."""

    @property
    def fingerprint(self) -> str:
        """A short name of the alert, the same for the same labels."""
        return fingerprint_of(self.labels)


class PastAlert(NamedTuple):
    """An alert that fired, from when to when; it ended at 0 if it fires. Times are in seconds since 1970."""

    alert: StoredAlert
    fired_at: float
    ended_at: float


class Silence(msgspec.Struct, frozen=True, dict=True):
    """Alerts that are not told to anybody for a while. Times are in seconds since 1970."""

    id: str
    matchers: tuple[str, ...]
    by: str
    reason: str
    begins: float
    ends: float

    @cached_property
    def conditions(self) -> tuple[Matcher, ...]:
        """Its matchers, parsed."""
        return tuple(map(parse_matcher, self.matchers))

    def silences(self, labels: Mapping[str, str], now: float) -> bool:
        """Whether it silences an alert with these labels now."""
        return self.begins <= now < self.ends and match_all(self.conditions, labels)


def user_of(labels: Mapping[str, str]) -> str:
    """The user whose job or account an alert is about; "" if it is about nobody's."""
    return labels["username"] if "username" in labels else labels.get("job_name", "").partition("~")[0]


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """16 hexadecimal digits of the labels."""
    return hashlib.sha256(msgspec.json.encode(sorted(labels.items()))).hexdigest()[:16]


def silencing(silences: Iterable[Silence], labels: Mapping[str, str], now: float) -> tuple[str, ...]:
    """The ids of the silences that an alert is under now."""
    return tuple(each.id for each in silences if each.silences(labels, now))
