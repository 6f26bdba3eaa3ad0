"""A week of Philly is lived with estimates: intervals hold for 70 to 90 % of the jobs and are narrower than past waits.

The trace has neither user nor name: run times are drawn by virtual cluster and size. To be quick, the week is that of five
virtual clusters, on as many machines as make their jobs wait, with three courses of 12 hours each half hour. An end that is
later than 12 hours is open; the width of such an interval is infinite.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from corral.kernel.quantile import quantile
from corral.service.estimates.report import interval, report
from tests.sim.estimated_week import DAY, Week

pytestmark = pytest.mark.timeout(900)
"""Seconds; it takes 30 to 40 of processor time."""
CLUSTERS = ("11cb48", "103959", "ee9e8c", "2869ce", "7f04ca")


def test_intervals_hold_for_four_fifths_and_are_narrower_than_past_waits(data_folder: Path) -> None:
    week = Week(data_folder / "philly" / "philly.csv", datetime(2017, 11, 13), CLUSTERS, nodes=28)
    lived = week.live()
    found = report(lived.estimates, now=week.begin + 30 * DAY, days=30).total
    assert found.given == found.started == found.jobs >= 200
    assert found.coverage is not None and 0.7 <= found.coverage <= 0.9
    assert found.width is not None, "most intervals have an end"
    judged = {each.given.job: interval(each) for each in lived.estimates}
    ours = [judged[job][1] - judged[job][0] for job, _, _ in lived.compared]
    plain = [width for _, width, _ in lived.compared]
    assert len(plain) >= 200
    assert quantile(sorted(ours), 0.5) < quantile(sorted(plain), 0.5)
