"""Alerts and silences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import AlertList, PastAlertView, SilenceList, SilenceView
    from corral.client.types import Page


def alerts(matchers: Sequence[str] = ()) -> Call[AlertList]:
    """Return the pending, firing and lately resolved alerts that meet all matchers, such as `severity="fatal"`."""
    return call("GET", "/alerts", {"match": list(matchers)})


def alert_history(
    matchers: Sequence[str] = (), *, begin: str = "", end: str = "", limit: int = 100, after: str = ""
) -> Call[Page[PastAlertView]]:
    """Return a page of the alerts that began to fire between two times (the last week), the latest first."""
    query = {"match": list(matchers), "from": begin, "to": end, "limit": limit, "after": after}
    return call("GET", "/alerts/history", query)


def silences() -> Call[SilenceList]:
    """Return the silences that have not ended (administrators)."""
    return call("GET", "/alerts/silences")


def silence(matchers: Sequence[str], *, seconds: float, reason: str) -> Call[SilenceView]:
    """Silence the alerts that meet all matchers, now and for so many seconds (administrators)."""
    return call("POST", "/alerts/silences", data={"matchers": list(matchers), "seconds": seconds, "reason": reason})


def unsilence(silence: str) -> Call[None]:
    """End a silence by its id (administrators)."""
    return call("DELETE", f"/alerts/silences/{silence}")
