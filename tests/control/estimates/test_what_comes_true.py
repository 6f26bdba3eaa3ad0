"""Estimates of a running control are completed when their jobs start, and correct the next ones."""

from __future__ import annotations

from corral.model.estimates import GivenEstimate
from corral.service.estimates.report import report
from tests.control.harness import House, short


async def test_a_job_that_starts_completes_its_estimates(house: House) -> None:
    control = await house.begin()
    runs = await house.submit(short("runs", devices=4))
    await house.until(runs, "running")
    waits = await house.submit(short("waits", devices=4, end_with=0))
    await house.explained(waits)
    now, told = house.clock.now(), (0.0, 5.0, 3600.0)
    control.estimates.given([GivenEstimate(waits, "default", now, "1", 86400.0, 5, *told, told)])
    await control.estimates.keep()
    assert [each.is_open for each in await house.store.estimates(now)] == [True]
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(waits, "succeeded")
    await control.estimates.keep()
    (lived,) = await house.store.estimates(now)
    assert lived.started is not None and lived.started >= now
    assert report([lived], now=house.clock.now(), days=7).total.coverage == 1.0
