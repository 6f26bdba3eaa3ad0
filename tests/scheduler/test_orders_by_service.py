"""SRTF, SRSF and 2D-LAS: their order by the figures of their papers, and how they preempt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import pytest

from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler import History, Policy, WorkReported, find_policy, find_preempt
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.service_orders import LeastAttainedService, device_count, remaining_seconds
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def _history(**received: tuple[float, int]) -> History:
    """Jobs that held so many devices for so many seconds, and hold nothing now."""
    history = History()
    for job, (seconds, devices) in received.items():
        history.holds(JobId(job), devices * 1000, 0.0)
        history.released(JobId(job), 0, seconds, wholly=True)
    return history


def _ordered(name: str, history: History, *gangs: GangRequest) -> list[str]:
    order = find_policy(name).order
    return [each.job for each in sorted(gangs, key=lambda each: order.key(each, history, 1000.0))]


def job(name: str, devices: int, seconds: int, at: float = 0.0) -> GangRequest:
    """A job of one task."""
    return gang(name, role(1, devices), max_duration_seconds=seconds, at=at)


def test_shortest_remaining_time_and_service_differ_where_gangs_have_several_devices() -> None:
    """J2 runs longer than J3, and needs less service (the distinction of Tiresias, NSDI 2019)."""
    jobs = job("J1", 2, 2), job("J2", 1, 8), job("J3", 2, 6)
    assert _ordered("srtf", History(), *jobs) == ["J1", "J3", "J2"]
    assert _ordered("srsf", History(), *jobs) == ["J1", "J2", "J3"]


@pytest.mark.parametrize(
    ("received", "srtf", "srsf"),
    [
        ({}, "bcad", "bacd"),
        ({"a": (90.0, 1)}, "abcd", "abcd"),
        ({"c": (59.0, 4), "a": (50.0, 1)}, "cbad", "cabd"),
        ({"d": (5000.0, 8)}, "bcad", "bacd"),
        ({"a": (100.0, 1), "b": (900.0, 2)}, "abcd", "abcd"),
    ],
)
def test_what_a_job_received_counts_against_what_it_declared(
    received: dict[str, tuple[float, int]], srtf: str, srsf: str
) -> None:
    jobs = job("a", 1, 100, 1.0), job("b", 2, 40, 2.0), job("c", 4, 60, 3.0), job("d", 8, 0, 0.0)
    history = _history(**received)
    assert "".join(_ordered("srtf", history, *jobs)) == srtf
    assert "".join(_ordered("srsf", history, *jobs)) == srsf


def test_reported_progress_replaces_the_declared_duration() -> None:
    life = Life([node("n1")])
    request = job("reports", 1, 1000)
    assert remaining_seconds(request, life.cluster.history, 0.0) == 1000.0
    assert remaining_seconds(job("unknown", 1, 0), life.cluster.history, 0.0) == inf
    life.submit(request)
    life.cycle(0.0)
    life.planner.fold(WorkReported(request.job, 0.0, 0.25))
    assert remaining_seconds(request, life.cluster.history, 100.0) == 300.0


def test_the_devices_of_a_gang_are_those_of_all_its_tasks() -> None:
    assert device_count(gang("gang", role(3, 2), role(2, 4, name="ps"))) == 14.0
    assert device_count(gang("none", role(3, 0))) == 1.0


@pytest.mark.parametrize(
    ("received", "ordered"),
    [
        ({}, "abc"),
        ({"a": (57_599.0, 1)}, "abc"),
        ({"a": (57_600.0, 1)}, "bca"),
        ({"a": (7_200.0, 8), "b": (7_199.0, 8)}, "bca"),
        ({"a": (57_600.0, 1), "b": (90_000.0, 8)}, "cab"),
    ],
)
def test_a_job_moves_down_a_level_when_its_attained_service_reaches_the_bound(
    received: dict[str, tuple[float, int]], ordered: str
) -> None:
    jobs = (gang(name, at=float(at)) for at, name in enumerate("abc"))
    assert "".join(_ordered("las", _history(**received), *jobs)) == ordered


def test_least_attained_service_may_have_several_levels() -> None:
    order, history = LeastAttainedService((10.0, 100.0)), _history(a=(9.0, 1), b=(50.0, 1), c=(50.0, 2))
    assert [order.key(gang(name), history, 500.0)[0] for name in "abcd"] == [0, 1, 2, 0]


def test_a_running_job_yields_to_one_with_less_remaining_time_and_goes_on_after_it() -> None:
    policy = replace(find_policy("srtf"), preempt=find_preempt("order"))
    life = Life([node("n1")], policy=policy)
    life.submit(job("long", 4, 10_000))
    life.cycle(0.0)
    life.submit(job("short", 4, 100, 1.0), job("longer", 4, 20_000, 2.0))
    assert life.cycle(2.0).again_at == 60.0, "nobody yields in its first minute"
    assert not life.receipts
    life.settle(60.0)
    assert life.rules() == [("long", Rule.ORDER)] and set(life.running) == {"short"}
    assert life.receipts[0].message == "The policy's order puts job short of ada first."
    life.now = 160.0
    life.end("short")
    life.settle(160.0)
    assert set(life.running) == {"long"}, "9,940 s are less than 20,000"
    life.settle(400.0)
    assert len(life.receipts) == 1


def test_a_job_that_received_much_yields_to_new_ones_without_an_event_and_nobody_takes_turns() -> None:
    policy = Policy("las", LeastAttainedService((400.0,)), preemption=True, preempt=find_preempt("order"))
    life = Life([node("n1")], policy=policy)
    life.submit(gang("first", role(4)))
    life.cycle(0.0)
    life.submit(gang("second", role(4), at=1.0))
    assert life.cycle(70.0).again_at == 100.001 and not life.receipts, "four devices for 100 s"
    life.settle(100.001)
    assert life.rules() == [("first", Rule.ORDER)] and set(life.running) == {"second"}
    for minute in range(5, 20):
        life.settle(60.0 * minute)
    assert len(life.receipts) == 1, "both are in the lower level now"


@dataclass(frozen=True)
class LeastServed:
    """Least device-seconds first; it does not say when a running gang moves back."""

    changes_with_time = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return (history.of(gang.job, now).device_seconds, gang.submitted_at)


def test_an_order_that_does_not_foresee_its_changes_is_asked_every_minute_while_gangs_wait() -> None:
    policy = Policy("least", LeastServed(), preemption=True, preempt=find_preempt("order"))
    life = Life([node("n1")], policy=policy)
    life.submit(gang("first", role(4), preemptible=False))
    life.cycle(0.0)
    life.submit(gang("second", role(4), at=1.0))
    assert [life.cycle(at).again_at for at in (70.0, 130.0, 190.0)] == [130.0, 190.0, 250.0]
    life.end("first")
    life.settle(200.0)
    assert life.cycle(201.0).again_at is None, "nothing waits"


def test_a_running_job_whose_reported_progress_stands_still_is_asked_about_every_minute() -> None:
    life = Life([node("n1")], policy=replace(find_policy("srtf"), preempt=find_preempt("order")))
    life.submit(job("reports", 4, 1000))
    life.cycle(0.0)
    life.planner.fold(WorkReported(JobId("reports"), 0.0, 0.5))
    life.submit(job("waits", 4, 300, 1.0))
    assert life.cycle(100.0).again_at == 160.0, "100 s are left, and more with each second without progress"
    life.settle(310.0)
    assert set(life.running) == {"waits"}


def test_nobody_yields_by_order_who_is_protected_or_only_younger() -> None:
    life = Life([node("n1")], policy=replace(find_policy("fifo"), preemption=True, preempt=find_preempt("order")))
    life.submit(gang("younger", role(4), at=5.0))
    life.cycle(5.0)
    life.submit(gang("older", role(4), at=1.0))
    life.settle(500.0)
    assert set(life.running) == {"younger"}
    kept = Life([node("n1")], policy=replace(find_policy("srtf"), preempt=find_preempt("order")))
    kept.submit(gang("kept", role(1, 4), max_duration_seconds=10_000, preemptible=False))
    kept.cycle(0.0)
    kept.submit(job("short", 4, 100, 1.0))
    kept.settle(500.0)
    assert set(kept.running) == {"kept"}
