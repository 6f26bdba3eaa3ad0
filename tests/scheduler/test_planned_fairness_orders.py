"""The order `shockwave-program`: planned jobs come first in each round; when plans are made anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.requests import GangRequest
from corral.scheduler import History, WorkReported, find_policy, find_preempt
from corral.scheduler.policy.future_fairness import FutureFairness, Schedule
from corral.scheduler.policy.planned_fairness import PlannedFairness
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

ORDER = PlannedFairness()
SHORT, LONG = gang("short", max_duration_seconds=120), gang("long", max_duration_seconds=2400)


def planned(gangs: list[GangRequest], devices: float, now: float = 0.0, order: PlannedFairness = ORDER) -> History:
    history = History()
    history.contention.note(len(gangs), now)
    history.prepared = order.prepare(gangs, devices, history, now)
    return history


def first(history: History, gangs: list[GangRequest], now: float) -> list[str]:
    return [each.job for each in sorted(gangs, key=lambda each: ORDER.key(each, history, now))]


def test_the_jobs_of_this_round_come_first_and_the_longest_of_the_others_next() -> None:
    """On one device the short job has the first round. A job that came since is behind all others."""
    gangs = [LONG, SHORT, gang("longest", max_duration_seconds=90_000)]
    history = planned([LONG, SHORT], 1.0)
    assert first(history, [LONG, SHORT], 0.0) == first(history, [LONG, SHORT], 119.0) == ["short", "long"]
    assert first(history, [LONG, SHORT], 120.0) == ["long", "short"]
    assert first(history, gangs, 120.0)[-1] == "longest"
    assert [ORDER.moves_back_at(LONG, history, now) for now in (0.0, 119.5, 120.0, 5000.0)] == [120, 120, 240, 5040]
    names = first(planned(gangs, 1.0), gangs, 0.0)
    durations = {str(each.job): each.max_duration_seconds for each in gangs}
    assert durations[names[1]] > durations[names[2]], (
        "one is planned, and the longest of the others may use what it leaves"
    )


def test_a_plan_is_followed_until_jobs_come_or_go_and_never_one_of_the_market() -> None:
    gangs = [LONG, SHORT]
    history = planned(gangs, 1.0)
    before = history.prepared
    assert isinstance(before, Schedule) and set(before.rounds) == {"long", "short"}
    assert ORDER.prepare(gangs, 1.0, history, 959.0) is before
    assert ORDER.prepare(gangs, 1.0, history, 960.0) is not before
    assert ORDER.prepare([*gangs, gang("new", at=50.0)], 1.0, history, 119.0) is before
    assert ORDER.prepare([*gangs, gang("new", at=50.0)], 1.0, history, 120.0) is not before
    market = FutureFairness().prepare(gangs, 1.0, history, 10.0)
    assert market is not before and isinstance(market, Schedule) and not market.rounds
    history.prepared = market
    assert ORDER.prepare(gangs, 1.0, history, 11.0) is not market


def test_jobs_beyond_the_most_follow_in_the_order_of_the_market() -> None:
    gangs = [gang(f"job-{number}", max_duration_seconds=1000 + 500 * number) for number in range(6)]
    small = PlannedFairness(most=2)
    history = planned(gangs, 1.0, order=small)
    assert isinstance(history.prepared, Schedule)
    inside = set(history.prepared.rounds)
    market = FutureFairness()
    history.prepared = market.prepare(gangs, 1.0, history, 0.0)
    by_market = [each.job for each in sorted(gangs, key=lambda each: market.key(each, history, 0.0))]
    assert inside == set(by_market[:2])
    history.prepared = small.prepare(gangs, 1.0, history, 0.0)
    assert first(history, gangs, 0.0)[2:] == by_market[2:]


def test_a_job_larger_than_the_machines_is_in_no_plan() -> None:
    gangs = [gang("huge", role(1, 4), max_duration_seconds=500), SHORT, LONG]
    found = planned(gangs, 2.0).prepared
    assert isinstance(found, Schedule) and set(found.rounds) == {"short", "long"}
    assert isinstance(planned(gangs, 0.0).prepared, Schedule), "no machine is known yet"


def test_what_is_done_is_reported_or_follows_from_the_service() -> None:
    history = History()
    history.holds(SHORT.job, 1000, 0.0)
    assert ORDER.forecast(SHORT, 1.0, 1, history, 30.0).done == pytest.approx(30 / 120)
    history.report(WorkReported(SHORT.job, 30.0, 0.7), (1, 1))
    assert ORDER.forecast(SHORT, 1.0, 1, history, 30.0).done == pytest.approx(0.7)


def test_any_reported_progress_gives_a_plan() -> None:
    """A job that reports next to nothing after an hour is taken to need ten years, and counts as late within bounds."""
    history = History()
    for each in (SHORT, LONG):
        history.holds(each.job, 1000, 0.0)
        history.report(WorkReported(each.job, 3600.0, 1e-300), (1, 1))
    history.contention.note(2, 0.0)
    found = ORDER.prepare([LONG, SHORT], 1.0, history, 3600.0)
    assert isinstance(found, Schedule) and sum(each.bit_count() for each in found.rounds.values()) == ORDER.rounds


def test_a_long_job_gives_its_round_to_a_late_short_one_and_has_the_next() -> None:
    policy = replace(find_policy("shockwave-program"), preempt=find_preempt("order"), preemption=True)
    life = Life([node("n1")], policy=policy)
    life.submit(gang("long", role(1, 4), max_duration_seconds=2400))
    life.settle(0.0)
    life.submit(gang("short", role(1, 4), at=10.0, max_duration_seconds=120))
    life.settle(10.0)
    assert set(life.running) == {"long"}, "a plan is followed for a round"
    life.settle(130.0)
    assert set(life.running) == {"short"}
    life.end("short")
    life.settle(250.0)
    assert set(life.running) == {"long"}


def test_without_scipy_the_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.scheduler.policy.registry.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="The policy shockwave-program needs scipy") as refused:
        find_policy("shockwave-program")
    assert refused.value.code == "no-scipy"
