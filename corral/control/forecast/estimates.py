"""Hand out the estimated start of a waiting job: from what is sure now, else from the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from corral.control.core.world import World
from corral.control.forecast.forecasts import Forecast
from corral.kernel.ids import JobId
from corral.model.device_timeline import ExpectedStays
from corral.model.plan import Reasons
from corral.model.start_estimates import Basis, Estimate
from corral.scheduler.explain.start_estimate import sure_estimate

_NONE_YET: Final = "Not estimated: the forecast is being made; ask again in a moment."
_NO_FORECAST: Final = "The forecast is being made; look again in a moment."
_TOO_NEW: Final = "Not estimated: it waits only since the last forecast; ask again in a moment."


def given_estimate(
    world: World, forecast: Forecast | None, trouble: str, job: JobId, reasons: Reasons | None, now: float
) -> Estimate | None:
    """The estimate that whoever asks is given, by `explain` and by the waiting list; None if the job does not wait.

    `reasons` are why it waits, as far as they are known; `trouble` is why there is no new forecast.
    """
    entry = world.queue.first(job)
    if entry is None:
        return None
    found = None if reasons is None else sure_estimate(entry, reasons, now)
    if found is None and forecast is not None:
        found = forecast.estimate(job) or Estimate(Basis.NOT_ESTIMATED, _TOO_NEW)
    if found is None:
        found = Estimate(Basis.NOT_ESTIMATED, f"Not estimated: {trouble}; see control.log." if trouble else _NONE_YET)
    return msgspec.structs.replace(found, message=world.in_names(found.message, job))


def expected_stays(forecast: Forecast | None, trouble: str, nodes: Sequence[str]) -> ExpectedStays:
    """What the forecast has on some nodes; `trouble` is why there is no new forecast."""
    if forecast is not None:
        return forecast.stays(nodes)
    return ExpectedStays(trouble=f"Nothing is expected: {trouble}; see control.log." if trouble else _NO_FORECAST)
