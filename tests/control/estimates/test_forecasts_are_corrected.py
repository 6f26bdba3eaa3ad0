"""What a forecast hands out is corrected by past errors, but what hangs on nothing drawn stays; both are kept."""

from __future__ import annotations

import msgspec

from corral.control.estimates.given import given_by
from corral.control.forecast.courses import Forecasted
from corral.control.forecast.forecasts import Forecast, Moment
from corral.kernel.ids import JobId
from corral.model.estimate_correction import Correction
from corral.model.start_estimates import Basis, Estimate
from tests.control.core.virtual import Played

START = 1_000_000_000.0


def forecast(jobs: dict[str, Estimate], correction: Correction) -> Forecast:
    found = {job: msgspec.Raw(msgspec.msgpack.encode(each)) for job, each in jobs.items()}
    return Forecast(Moment(START, "7", "7", (), correction), Forecasted(found, (), 5, ()))


def estimate(p10: float, p50: float, p90: float | None) -> Estimate:
    end = None if p90 is None else START + p90
    return Estimate(Basis.EXPECTED, "So it was drawn.", START + p50, p10=START + p10, p50=START + p50, p90=end)


def test_drawn_starts_are_corrected_and_sure_ones_are_not() -> None:
    drawn, sure = estimate(100.0, 200.0, 400.0), estimate(300.0, 300.0, 300.0)
    told = forecast({"drawn": drawn, "sure": sure}, Correction(-0.5, 0.2, 1.0))
    found = told.estimate("drawn")
    assert found is not None and found.p10 and found.p50 and found.p90 and found.at == found.p50
    assert found.p10 < START + 100 < START + 200 < found.p50 < found.p90 and found.p90 > START + 900
    assert found.message.startswith("Of 5 drawn courses, corrected by how earlier estimates missed.")
    kept = told.estimate("sure")
    assert kept is not None and (kept.at, kept.p90, kept.message) == (sure.at, sure.p90, sure.message)


def test_what_is_handed_out_is_kept_with_what_the_courses_said() -> None:
    played = Played(nodes=1, devices=2)
    identity = played.submit("waits", devices=4, queue="default")
    played.settle()
    world = played.core.world
    told = forecast(
        {identity: estimate(100.0, 200.0, None), "gone": estimate(1.0, 2.0, 3.0)}, Correction(0.0, 0.0, 1.0)
    )
    (given,) = given_by(told, world, lambda job, at: True)
    assert (given.job, given.queue, given.at, given.courses) == (identity, "default", START, 5)
    assert given.raw == (100.0, 200.0, None) and given.p90 is None
    assert list(given_by(told, world, lambda job, at: job != JobId(identity))) == []
