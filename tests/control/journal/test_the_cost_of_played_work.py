"""What it costs to know when the tasks of an elastic job end in another life."""

from __future__ import annotations

from cProfile import Profile
from math import inf
from pstats import Stats
from typing import Any

import pytest

from corral.control.core.world import Job
from corral.control.journal.played_work import PlayedJob
from corral.control.journal.recorded_work import RecordedWork
from corral.kernel.ids import AttemptId, TaskKey
from tests.control.core.virtual import Played


def elastic_job() -> Job:
    """An elastic job as a core has it."""
    played = Played(nodes=1)
    identity = played.submit("grows", replicas={"min": 1, "max": 1000})
    played.settle()
    return played.core.world.jobs[identity]


def played_job(tasks: int, courses: int = 1) -> PlayedJob:
    """A job of which each task began and ended a second after the one before, in each of its courses.

    All but the last of the courses fail. The other life begins at 0, and it does the same there.
    """
    work, keys = RecordedWork({"worker": 1}), [TaskKey("worker", index) for index in range(tasks)]
    for course in range(courses):
        for second, key in enumerate(keys, begin(tasks, course)):
            work.start(course, key, "node", float(second), 0.0)
        for second, key in enumerate(keys, begin(tasks, course) + 2 * tasks):
            work.end(course, key, float(second), int(course < courses - 1))
    job = PlayedJob(elastic_job(), work, 0.0, lambda job, seconds: inf)
    job.learn(work, inf)
    for course in range(courses):
        for second, key in enumerate(keys, begin(tasks, course)):
            attempt = AttemptId(f"job.{course}.worker.{key.index}.0")
            job.begin(key, attempt, float(begin(tasks, course)), float(second), "node")
    return job


def begin(tasks: int, course: int) -> int:
    """When a course begins."""
    return 1 + 4 * tasks * course


def calls_of_a_forecast(tasks: int) -> int:
    """How many functions a forecast calls."""
    job, profile = played_job(tasks), Profile()
    ends, _ = profile.runcall(job.forecast)
    assert sorted(at for at, _ in ends.values()) == [begin(tasks, 0) + 2.0 * tasks + each for each in range(tasks)]
    stats: Any = Stats(profile)
    return int(stats.total_calls)


def test_a_forecast_costs_little_more_than_its_tasks_are_more() -> None:
    """Every start and every end is a step of its own."""
    assert calls_of_a_forecast(400) < 8 * calls_of_a_forecast(100)


def test_what_was_done_in_courses_that_are_over_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    job, plain, taken = played_job(4, courses=30), PlayedJob._take, [0]
    before = job.forecast()

    def counted(job: PlayedJob, call: Any) -> None:
        taken[0] += 1
        plain(job, call)

    monkeypatch.setattr(PlayedJob, "_take", counted)
    job.learn(job._recorded, inf)
    assert taken[0] == 4 and job.forecast() == before
    assert sorted(before[0].values()) == [(begin(4, 29) + 8.0 + each, 0) for each in range(4)]
