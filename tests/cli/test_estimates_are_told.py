"""Estimated starts in words: how sure they are, the range of most courses, and the forecast that they come from."""

from __future__ import annotations

from typing import Any

import pytest

from corral.cli.estimates import estimate_text, forecast_text, short_estimate

AT = "2026-11-27T12:00:00.000Z"
EARLY = "2026-11-27T11:30:00.000Z"
LATE = "2026-11-27T14:00:00.000Z"


def estimate(basis: str, seconds: float | None = 3600.0, **more: Any) -> Any:
    """An estimate as the server answers it."""
    at = None if seconds is None else AT
    return {"basis": basis, "message": "Because.", "at": at, "seconds": seconds, "after": [], **more}


@pytest.mark.parametrize(
    ("given", "long", "short"),
    [
        (estimate("at-latest", p10=AT, p90=AT), "at the latest in 1h. Because.", "at most 1h"),
        (estimate("expected", p10=EARLY, p90=LATE), "expected in 1h (30m to 3h). Because.", "1h"),
        (estimate("expected", p10=EARLY, p90=None), "expected in 1h (30m to later). Because.", "1h"),
        (estimate("expected"), "expected in 1h. Because.", "1h"),
        (estimate("not-before", p10=None, p90=None), "not within the next 1h. Because.", "over 1h"),
        (estimate("unknown", None), "Because.", ""),
        (estimate("never", None), "Because.", "never"),
        (estimate("now", 0.0), "Because.", "now"),
    ],
)
def test_an_estimate_is_told(given: Any, long: str, short: str) -> None:
    assert (estimate_text(given), short_estimate(given)) == (long, short)


def test_a_server_that_tells_no_estimate_leaves_the_column_empty() -> None:
    assert short_estimate(None) == ""


def test_a_forecast_is_named_by_time_and_revision() -> None:
    told = forecast_text({"at": AT, "revision": "1.42", "seeds": 20})
    assert told == f"the forecast of {AT}, revision 1.42, 20 courses"
