"""Convert estimated starts and the forecasts that they come from to the API's form."""

from __future__ import annotations

from corral.model.messages import by_name
from corral.model.records import JobSummary, rfc3339, rfc3339_or_none
from corral.model.start_estimates import Estimate, ForecastMark
from corral.model.views import EstimateView, ForecastView


def estimate_view(found: Estimate, after: tuple[JobSummary, ...], now: float) -> EstimateView:
    """The estimate with the names of the jobs `after` which it starts in place of their ids."""
    return EstimateView(
        basis=str(found.basis),
        message=by_name(found.message, {job.id: job.name for job in after}.get),
        at=rfc3339_or_none(found.at),
        seconds=None if found.at is None else round(max(0.0, found.at - now), 3),
        after=after,
        p10=rfc3339_or_none(found.p10),
        p50=rfc3339_or_none(found.p50),
        p90=rfc3339_or_none(found.p90),
        forecast=None if found.forecast is None else forecast_view(found.forecast),
    )


def forecast_view(mark: ForecastMark) -> ForecastView:
    """Which forecast it is."""
    return ForecastView(rfc3339(mark.at), mark.revision, mark.seeds)
