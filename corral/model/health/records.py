"""What is stored of a node's health, and its forms in the API."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corral.model.accounts import AuditWrite
from corral.model.health.signs import NODE, Sign, SignKind
from corral.model.health.states import Cause, HealthState
from corral.model.records import Record, one_of, rfc3339

HEALTH: Final = "health"
"""The author of cordons that the ledger makes."""


class Score(msgspec.Struct, frozen=True):
    """A score as it was at a time; it halves in every half-life."""

    value: float
    at: float

    def now(self, now: float, half_life: float) -> float:
        """The score at a time; a clock that went backwards does not raise it. Times are in seconds."""
        return float(self.value * 2.0 ** (-max(0.0, now - self.at) / half_life))


class NodeHealth(msgspec.Struct, frozen=True):
    """The health of one node as it is stored. Times are in seconds since 1970."""

    node: str
    state: HealthState = HealthState.HEALTHY
    since: float = 0.0
    by: str = ""
    """Who moved it to this state: an administrator, or `health`."""
    why: str = ""
    scores: dict[int, Score] = {}
    """By device; that of `NODE` is about the whole node."""
    failed_starts: tuple[str, ...] = ()
    """The jobs that could not be started there since the last start that worked, each once."""
    closed: bool = False
    """Whether its cordon has been in force since it was closed."""
    job: str = ""
    """Its validation job."""
    validations: tuple[float, ...] = ()
    """When the ledger asked for a validation, in the last day."""


class HealthEntry(msgspec.Struct, frozen=True):
    """One entry of a node's history: a sign, or a move from one state to another."""

    node: str
    at: float
    what: str
    """The kind of the sign, or `moved`."""
    reason: str
    device: int = NODE
    weight: float = 0.0
    job: str = ""
    before: str = ""
    after: str = ""
    by: str = ""


class HealthAct(msgspec.Struct, frozen=True):
    """What an administrator has done with a node, as front asks it of control."""

    node: str
    cause: Cause
    by: str
    why: str = ""
    audit: AuditWrite | None = None


class HealthSigns(msgspec.Struct, frozen=True):
    """Signs of a health monitor, as front passes them to control."""

    signs: tuple[Sign, ...]


class DeviceScore(Record, frozen=True):
    """The score of one device."""

    device: int
    score: float


class HealthView(Record, frozen=True):
    """The health of a node in the API."""

    node: str
    state: Annotated[str, one_of(*HealthState)]
    score: float
    """The sum of all scores of the node and its devices, now."""
    since: str | None = None
    by: str = ""
    why: str = ""
    devices: tuple[DeviceScore, ...] = ()
    """The devices with a score of their own."""
    job: str = ""
    """The validation job that runs or ran last; "" is none."""


class HealthEntryView(Record, frozen=True):
    """One entry of a node's history in the API."""

    at: str
    what: Annotated[str, one_of(*SignKind, "moved")]
    reason: str
    device: int | None = None
    weight: float = 0.0
    """What it added to the score; 0: too many nodes had the same trouble at once."""
    job: str = ""
    before: str = ""
    after: str = ""
    by: str = ""


def health_view(health: NodeHealth, now: float, half_life: float) -> HealthView:
    """Convert a node's health to the API's form."""
    scores = {device: score.now(now, half_life) for device, score in sorted(health.scores.items())}
    return HealthView(
        health.node,
        str(health.state),
        round(sum(scores.values()), 2),
        rfc3339(health.since) if health.since else None,
        health.by,
        health.why,
        tuple(DeviceScore(device, round(value, 2)) for device, value in scores.items() if device != NODE),
        health.job,
    )


def entry_view(entry: HealthEntry) -> HealthEntryView:
    """Convert an entry of the history to the API's form."""
    device = None if entry.device == NODE else entry.device
    return HealthEntryView(
        rfc3339(entry.at), entry.what, entry.reason, device, entry.weight, entry.job, entry.before, entry.after, entry.by
    )  # fmt: skip
