"""How long jobs are expected to run: by their own word, else by what ended jobs like them took."""

from __future__ import annotations

from math import inf
from statistics import correlation, mean
from typing import Any

import pytest

from corral.control.core.world import Job
from corral.control.what_if.run_times import ENOUGH, RunTimes, stem
from corral.model.what_if import PastRun
from tests.control.core.virtual import Played


def job(name: str = "train-7", **more: Any) -> Job:
    """A job of ada's that waits for four devices in the queue `default`."""
    played = Played(nodes=1, devices=2)
    identity = played.submit(name, devices=4, **more)
    played.settle()
    return played.core.world.jobs[identity]


def past(seconds: float, name: str = "train-1", user: str = "ada", queue: str = "default") -> list[PastRun]:
    """As many equal runs as make a distribution."""
    return [PastRun(user, name, queue, 4.0, seconds)] * ENOUGH


@pytest.mark.parametrize(
    ("name", "expected"), [("train-7", "train"), ("train", "train"), ("a_12", "a"), ("12", "12"), ("v2.lr.3", "v2.lr")]
)
def test_a_stem_has_no_numbers_at_its_end(name: str, expected: str) -> None:
    assert stem(name) == expected


def test_the_jobs_own_duration_counts_before_anything_else() -> None:
    times = RunTimes(past(100.0), 0)
    assert times.drawn(job(maxDuration=60)) == 60.0
    assert times.known.own == 1


def test_the_nearest_group_with_enough_jobs_is_drawn_from() -> None:
    wanted = job()
    of_others, of_queue, alike = past(10.0, user="eve", queue="other"), past(20.0, user="bob"), past(30.0)
    assert RunTimes([*of_others, *of_queue, *alike], 0).drawn(wanted) == 30.0
    assert RunTimes([*of_others, *of_queue], 0).drawn(wanted) == 20.0
    assert RunTimes(of_others, 0).drawn(wanted) == 10.0
    assert RunTimes([], 0).drawn(wanted) == inf


def test_a_running_job_takes_longer_than_it_has_run() -> None:
    runs = [PastRun("ada", "train-1", "default", 4.0, float(seconds)) for seconds in range(10, 110, 10)]
    wanted = job()
    drawn = {RunTimes(runs, seed).drawn(wanted, 75.0) for seed in range(40)}
    assert drawn == {80.0, 90.0, 100.0}
    assert RunTimes(runs, 0).drawn(wanted, 500.0) == 1000.0


def test_jobs_of_a_queue_run_alike_within_a_course_and_evenly_over_courses() -> None:
    runs = [PastRun("ada", "train-1", "default", 4.0, float(seconds)) for seconds in range(1, 101)]
    played = Played(nodes=1, devices=2)
    names = [played.submit(name, devices=4) for name in ("train-7", "train-8")]
    played.settle()
    one, other = (played.core.world.jobs[name] for name in names)
    pairs = [(times.drawn(one), times.drawn(other)) for times in (RunTimes(runs, seed) for seed in range(400))]
    assert 0.2 < correlation(*zip(*pairs, strict=True)) < 0.5
    assert 44 < mean(first for first, _ in pairs) < 57


def test_equal_seeds_draw_equal_times() -> None:
    runs = [PastRun("ada", "train-1", "default", 4.0, float(seconds)) for seconds in range(1, 1000)]
    wanted = job()
    assert RunTimes(runs, 3).drawn(wanted) == RunTimes(runs, 3).drawn(wanted) != RunTimes(runs, 4).drawn(wanted)
