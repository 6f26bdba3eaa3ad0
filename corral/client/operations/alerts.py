"""Alerts and silences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import AlertList, SilenceList, SilenceView


def alerts(matchers: Sequence[str] = ()) -> Call[AlertList]:
    """Return the pending, firing and lately resolved alerts that meet all matchers, such as `severity="fatal"`."""
    return call("GET", "/alerts", {"match": list(matchers)})


def silences() -> Call[SilenceList]:
    """Return the silences that have not ended (administrators)."""
    return call("GET", "/alerts/silences")


def silence(matchers: Sequence[str], *, seconds: float, reason: str) -> Call[SilenceView]:
    """Silence the alerts that meet all matchers, now and for so many seconds (administrators)."""
    return call("POST", "/alerts/silences", data={"matchers": list(matchers), "seconds": seconds, "reason": reason})


def unsilence(silence: str) -> Call[None]:
    """End a silence by its id (administrators)."""
    return call("DELETE", f"/alerts/silences/{silence}")
