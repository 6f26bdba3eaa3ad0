"""Estimated starts and their forecast in words, as `corral explain` and `corral line` show them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from corral.cli.output import span
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.schema import EstimateView, ForecastView

_STARTS = {"at-latest": "at the latest in", "expected": "expected in", "not-before": "not within the next"}
_SHORT = {"at-latest": "at most ", "expected": "", "not-before": "over "}
_NO_TIME = {"never": "never", "now": "now"}


def estimate_text(estimate: EstimateView) -> str:
    """Return the likely start of a waiting job, the range of most courses, and the assumptions."""
    how = _STARTS.get(estimate["basis"])
    if how is None or estimate["seconds"] is None:
        return str(estimate["message"])
    return f"{how} {span(estimate['seconds'])}{_range(estimate)}. {estimate['message']}"


def _range(estimate: EstimateView) -> str:
    """Return the range from P10 to P90; "" where all courses agree, or for a server that tells none."""
    p10, p90, at = estimate.get("p10"), estimate.get("p90"), estimate["at"]
    if p10 is None or p10 == p90 or at is None or estimate["seconds"] is None:
        return ""
    early = span(estimate["seconds"] + _seconds(at, p10))
    late = "later" if p90 is None else span(estimate["seconds"] + _seconds(at, p90))
    return f" ({early} to {late})"


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def short_estimate(estimate: EstimateView | None) -> str:
    """Return the likely start in a word or two, for a table; "" if nothing is known."""
    if estimate is None:
        return ""
    how, seconds = _SHORT.get(estimate["basis"]), estimate["seconds"]
    if how is None or seconds is None:
        return _NO_TIME.get(estimate["basis"], "")
    return f"{how}{span(seconds)}"


def forecast_text(forecast: ForecastView) -> str:
    """Return which forecast it is: its time, revision and courses."""
    return f"the forecast of {forecast['at']}, revision {forecast['revision']}, {counted(forecast['seeds'], 'course')}"
