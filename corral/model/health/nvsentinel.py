"""NVSentinel's health events as JSON, turned into signs.

Source of the fields: NVSentinel's `HealthEvent` message (docs/DATA_FLOW.md of that project). An event of a healthy
component, and one of which the overrides say that it must not lead to a quarantine, is no sign.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corral.kernel.errors import InvalidInput
from corral.model.health.signs import NODE, Sign, SignKind
from corral.model.inventory import Node
from corral.model.records import Record

MOST_BYTES: Final = 262_144
"""Bytes of one call."""
_MOST: Final = 500
"""Events of one call."""
_FATAL, _OTHER = 10.0, 2.0
"""Weights: a fatal fault closes the node under the default settings."""
_Text = Annotated[str, msgspec.Meta(max_length=2000)]


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """An impacted component."""

    entity_type: _Text = ""
    entity_value: _Text = ""


class Overrides(msgspec.Struct, frozen=True):
    """What should not be done about an event."""

    skip: bool = False


class HealthEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One event; fields that are not read are left out."""

    node_name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    agent: _Text = ""
    check_name: _Text = ""
    is_fatal: bool = False
    is_healthy: bool = False
    message: _Text = ""
    error_code: Annotated[list[_Text], msgspec.Meta(max_length=50)] = []
    entities_impacted: Annotated[list[Entity], msgspec.Meta(max_length=200)] = []
    metadata: dict[str, _Text] = {}
    quarantine_overrides: Overrides | None = None


class HealthEvents(msgspec.Struct, frozen=True):
    """NVSentinel's list of events."""

    events: Annotated[list[HealthEvent], msgspec.Meta(max_length=_MOST)]


class HealthEventsTaken(Record, frozen=True):
    """How many signs events gave."""

    signs: int
    """Events of healthy components give none."""


def read_events(body: bytes) -> list[HealthEvent]:
    """The events of a call: NVSentinel's list, or one event.

    Raises InvalidInput naming the field that is wrong.
    """
    try:
        return msgspec.json.decode(body, type=HealthEvents).events
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "events" not in str(error) or "missing" not in str(error):
            raise InvalidInput("bad-health-event", f"The health events cannot be read: {error}.") from None
    try:
        return [msgspec.json.decode(body, type=HealthEvent)]
    except msgspec.DecodeError as error:
        raise InvalidInput("bad-health-event", f"The health event cannot be read: {error}.") from None


def signs_of(event: HealthEvent, node: Node, now: float) -> list[Sign]:
    """The signs of an event of a node, one for each device that it names, at a time in seconds since 1970."""
    if event.is_healthy or (event.quarantine_overrides is not None and event.quarantine_overrides.skip):
        return []
    codes = f" ({', '.join(event.error_code)})" if event.error_code else ""
    reason = f"{event.agent or 'a health monitor'}: {event.check_name}{codes}: {event.message}"[:300]
    sign = Sign(
        SignKind.HEALTH_EVENT, node.name, now, reason,
        weight=_FATAL if event.is_fatal else _OTHER, source=f"{event.agent}/{event.check_name}"[:200],
    )  # fmt: skip
    devices = _devices(event, node) or [NODE]
    return [msgspec.structs.replace(sign, device=device) for device in devices]


def _devices(event: HealthEvent, node: Node) -> list[int]:
    named = {each.entity_value for each in event.entities_impacted}
    named |= {event.metadata[key] for key in ("gpu_uuid", "gpu_index") if key in event.metadata}
    return [device.index for device in node.devices if device.id in named or str(device.index) in named]
