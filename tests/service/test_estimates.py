"""How good estimates were: what held, what was early or late, and who is told of which queue."""

from __future__ import annotations

from typing import Any

import pytest

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.estimates import GivenEstimate, LivedEstimate
from corral.service.estimates import estimates
from corral.service.estimates.report import Verdict, report, verdict
from corral.service.service import Service
from tests.service.conftest import ANN, ROOT, START, FakeControl

HOUR, DAY = 3600.0, 86_400.0


Told = tuple[float | None, float | None, float | None]
USUAL: Told = (600.0, 1200.0, 3600.0)


def given(
    job: str = "a", at: float = START, queue: str = "research", *, told: Told = USUAL, courses: int = 5
) -> GivenEstimate:
    return GivenEstimate(job, queue, at, "7", DAY, courses, *told)


def lived(waited: float | None = None, **more: Any) -> LivedEstimate:
    found = given(**more)
    return LivedEstimate(found, None if waited is None else found.at + waited)


@pytest.mark.parametrize(
    ("waited", "told", "expected"),
    [
        (600.0, (600.0, 1200.0, 3600.0), Verdict.HELD),
        (3600.0, (600.0, 1200.0, 3600.0), Verdict.HELD),
        (599.0, (600.0, 1200.0, 3600.0), Verdict.EARLY),
        (3601.0, (600.0, 1200.0, 3600.0), Verdict.LATE),
        (3 * DAY, (600.0, 1200.0, None), Verdict.HELD),
        (HOUR, (None, None, None), Verdict.EARLY),
        (2 * DAY, (None, None, None), Verdict.HELD),
    ],
)
def test_an_interval_holds_from_end_to_end(waited: float, told: Told, expected: Verdict) -> None:
    assert verdict(lived(waited, told=told), START + 9 * DAY) is expected


def test_who_still_waits_is_late_once_the_interval_is_over_and_undecided_before() -> None:
    assert verdict(lived(), START + 3600) is Verdict.UNDECIDED
    assert verdict(lived(), START + 3601) is Verdict.LATE
    assert verdict(lived(told=(600.0, 1200.0, None)), START + 20 * DAY) is Verdict.UNDECIDED
    assert verdict(LivedEstimate(given(), ended=START + 9000), START + 9000) is Verdict.UNDECIDED


def test_one_course_has_no_interval_and_counts_for_bias_and_error_alone() -> None:
    found = report([lived(1500.0, courses=1, told=(1200.0, 1200.0, 1200.0))], now=START + DAY, days=7).total
    assert (found.coverage, found.width, found.bias, found.error) == (None, None, 300.0, 300.0)


def test_a_report_counts_by_queue_and_over_all_of_them() -> None:
    waits = [60.0, 700.0, 1200.0, 3000.0, 9000.0]
    mine = [lived(wait, job=f"r{number}") for number, wait in enumerate(waits)]
    stopped = LivedEstimate(given("stopped"), ended=START + 50)
    other = lived(30.0, job="v", queue="vision", told=(0.0, 10.0, 60.0))
    old = lived(9e5, job="old", at=START - 7 * DAY)
    now = START + 1800
    found = report([*mine, stopped, lived(job="waits"), other, old], now=now, days=7)
    research, vision = found.queues
    assert (found.days, research.queue, vision.queue) == (7, "research", "vision")
    assert (research.given, research.jobs, research.started, research.waiting, research.not_started) == (7, 7, 5, 1, 1)
    assert (research.early, research.held, research.late, research.coverage) == (1, 3, 1, 0.6)
    assert (research.width, research.past_width) == (3000.0, 9000.0 - 60.0)
    assert (research.bias, research.error) == (0.0, 1140.0)
    assert (vision.coverage, vision.bias, vision.width, vision.past_width) == (1.0, 20.0, 60.0, 0.0)
    assert (found.total.given, found.total.held, found.total.coverage) == (8, 4, 4 / 6)
    assert report([old], now=now, days=30).total.given == 1


def test_most_intervals_beyond_the_horizon_have_no_width() -> None:
    told = [lived(job=str(number), told=(600.0, None, None)) for number in range(3)]
    found = report([*told, lived(job="near")], now=START, days=7).total
    assert (found.given, found.width, found.bias, found.coverage, found.past_width) == (4, None, None, None, None)


async def test_people_are_told_of_the_queues_that_they_may_use(
    service: Service, fake_control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_control.answers["/configuration/check"] = []
    await service.configuration.apply(ROOT, "{kind: Queue, name: research}")
    await service.configuration.apply(ROOT, "{kind: Queue, name: closed, membersOnly: true}")
    await service.context.store.add_estimates([given("a", START - 60), given("b", START - 60, "closed")])
    every = await service.estimates.report(ROOT)
    assert [each.queue for each in every.queues] == ["closed", "research"]
    assert [each.queue for each in (await service.estimates.report(ANN)).queues] == ["research"]
    assert (await service.estimates.report(ANN)).total.given == 1
    one = await service.estimates.report(ROOT, queue="closed", days=30)
    assert [each.queue for each in one.queues] == ["closed"] and one.days == 30
    with pytest.raises(NotFound, match="There is no queue closed; they are default, research"):
        await service.estimates.report(ANN, queue="closed")
    with pytest.raises(InvalidInput, match="the last 7 or 30 days"):
        await service.estimates.report(ROOT, days=8)
    monkeypatch.setattr(estimates, "_INLINE", 0)
    assert await service.estimates.report(ROOT) == every
