"""A course tells what then happens, event for event, when run times are known and nobody else comes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.driver import Work
from corral.control.forecast.courses import _played
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import play
from corral.kernel.ids import JobId
from corral.model.phases import Phase, phase
from corral.model.what_if import Course
from tests.control.core.virtual import BEGIN, Played
from tests.examples import examples

HOUR = 3600.0


def lasting(played: Played, name: str, seconds: int, at: float = 0.0, **more: object) -> JobId:
    """Submit a job that declares its duration and takes that long."""
    return played.submit(name, at, work=Work(float(seconds)), maxDuration=seconds, **more)


def course_of(played: Played, changes: Changes | None = None, horizon: float = 24 * HOUR) -> Course:
    """The course from now on."""
    core, now = played.core, played.driver.now
    return play(core, changes or Changes(), (), now=now, horizon=horizon, seed=0)


def next_starts(played: Played, jobs: list[JobId], since: float) -> dict[JobId, float]:
    """When those jobs started next, in seconds after `since`."""
    found = {job: [BEGIN + at - since for at in played.when(job, "job.started")] for job in jobs}
    return {job: min(at for at in times if at >= 0) for job, times in found.items() if max(times, default=-1) >= 0}


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10_000))
def test_every_start_comes_at_the_time_that_was_said(seed: int) -> None:
    draw = Random(seed)
    played = Played(nodes=2, devices=4)
    jobs = [
        lasting(
            played, f"job-{number}", draw.randint(60, 4000), draw.uniform(0, 1000),
            devices=draw.choice([1, 2, 4]), replicas=draw.choice([1, 1, 2]), priority=draw.choice([0, 0, 10, 100]),
        )
        for number in range(12)
    ]  # fmt: skip
    played.run(1000.0)
    now = played.driver.now
    waiting = [job for job in jobs if phase(played.stored(job).run) is Phase.WAITING]
    said = course_of(played)
    played.run(24 * HOUR)
    assert said.starts == pytest.approx(next_starts(played, waiting, now), abs=1e-3)


def test_what_waits_beyond_the_horizon_is_apart_from_what_no_node_can_hold() -> None:
    played = Played(nodes=2, devices=4)
    lasting(played, "holds", 100 * 3600, devices=4, replicas=2)
    later, never = (lasting(played, name, 600, devices=number) for name, number in (("later", 4), ("never", 5)))
    played.settle()
    said = course_of(played)
    assert later not in said.starts and never not in said.starts
    assert said.never == (never,)
    forecast = _played(played.core, (), played.driver.now, 1, lambda: True)[1]
    assert forecast is not None and forecast.never == (never,), "the forecast is the course before in many questions"


def test_asking_changes_nothing() -> None:
    played = Played(nodes=1, devices=4)
    for number in range(6):
        lasting(played, f"job-{number}", 600, devices=2)
    played.settle()
    facts, revision = list(played.driver.store.facts), played.core.world.cluster.revision
    first, second = course_of(played), course_of(played)
    assert first == second
    assert (played.driver.store.facts, played.core.world.cluster.revision) == (facts, revision)


def test_queues_are_told_of_their_waits_and_devices() -> None:
    played = Played(nodes=1, devices=4)
    for number in range(3):
        lasting(played, f"job-{number}", 2 * 3600, devices=4)
    played.settle()
    course = course_of(played, horizon=3 * HOUR)
    default = course.queues["default"]
    assert (default.started, default.ended, default.waiting) == (1, 1, 1)
    assert default.waits == pytest.approx([2 * HOUR, 3 * HOUR], abs=0.01)
    assert default.used == pytest.approx(4.0)
    assert course.devices == 4 and set(course.used) == {4.0}
    assert (course.waiting[0], course.waiting[-1]) == (2, 1)


def test_a_timeline_tells_what_runs_where_and_since_when() -> None:
    played = Played(nodes=2, devices=4)
    running = lasting(played, "running", 2 * 3600, devices=4, replicas=2)
    played.settle()
    waiting = lasting(played, "waiting", 3600, at=60.0, devices=3)
    played.run(100.0)
    core, now = played.core, played.driver.now
    course = play(core, Changes(), (), now=now, horizon=2.5 * HOUR, seed=0, timeline=True)
    assert course.nodes == dict.fromkeys(sorted(core.machines.nodes), 4)
    first, second, third = course.stays
    assert {first.node, second.node} == set(course.nodes)
    for stay in (first, second):
        assert (stay.job, stay.name, stay.devices, stay.begin) == (running, "running", (0, 1, 2, 3), 0.0)
        assert stay.end == pytest.approx(2 * HOUR - 100, abs=0.01)
    assert (third.job, len(third.devices), third.end) == (waiting, 3, None)
    assert third.begin == pytest.approx(course.starts[waiting], abs=0.01)
    assert course.stays_left_out == 0


def test_no_two_stays_of_a_timeline_are_on_a_device_at_once() -> None:
    played = Played(nodes=2, devices=4)
    draw = Random(7)
    for number in range(20):
        lasting(played, f"job-{number}", draw.randint(60, 4000), devices=draw.choice([1, 2, 4]), priority=number % 3)
    played.settle()
    core, now = played.core, played.driver.now
    course = play(core, Changes(), (), now=now, horizon=24 * HOUR, seed=0, timeline=True)
    assert len(course.stays) >= 20
    for node in course.nodes:
        for device in range(4):
            there = [stay for stay in course.stays if stay.node == node and device in stay.devices]
            ends = [stay.end for stay in there[:-1]]
            assert all(end is not None and end <= later.begin for end, later in zip(ends, there[1:], strict=True))


def test_a_long_timeline_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.what_if.stays.MOST_STAYS", 3)
    monkeypatch.setattr("corral.control.what_if.stays._MOST_RECORDED", 5)
    played = Played(nodes=1, devices=1)
    for number in range(8):
        lasting(played, f"job-{number}", 600, devices=1)
    played.settle()
    course = play(played.core, Changes(), (), now=played.driver.now, horizon=24 * HOUR, seed=0, timeline=True)
    assert (len(course.stays), course.stays_left_out) == (3, 5)
