"""The changes of a question: nodes, quotas, jobs and rules other than they are."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.what_if.changes import changes_of
from corral.control.what_if.course import play
from corral.kernel.errors import CorralError, NotFound
from corral.kernel.ids import JobId
from corral.model.what_if import AddedNodes, Course, NewWork, Question
from corral.spec.job_reader import load_job
from tests.control.core.virtual import Played
from tests.control.what_if.test_a_course_is_what_then_happens import lasting

HOUR = 3600.0
DAY = 24 * HOUR


def asked(played: Played, **changes: Any) -> Course:
    """The course with these changes, for a day."""
    core, now = played.core, played.driver.now
    question = Question(DAY, (0,), **changes)
    found = changes_of(question, core, now, core.policy, lambda clusters: ())
    return play(core, found, (), now=now, horizon=DAY, seed=0)


@pytest.fixture
def full() -> tuple[Played, list[JobId]]:
    """One node of four devices that a job holds for an hour, and two that wait for all of them."""
    played = Played(nodes=1, devices=4)
    jobs = [lasting(played, f"job-{number}", 3600, float(number), devices=4) for number in range(3)]
    played.run(10.0)
    return played, jobs


def test_as_things_are_jobs_start_one_after_another(full: tuple[Played, list[JobId]]) -> None:
    played, (_, second, third) = full
    assert asked(played).starts == pytest.approx({second: HOUR - 10, third: 2 * HOUR - 10}, abs=0.01)


def test_an_added_node_takes_the_first_that_waits(full: tuple[Played, list[JobId]]) -> None:
    played, (_, second, third) = full
    course = asked(played, add_nodes=(AddedNodes(1, "local/node0"),))
    assert course.starts == pytest.approx({second: 0.0, third: HOUR - 10}, abs=0.01)
    assert course.devices == 8


def test_a_drained_node_has_its_job_wait_for_another(full: tuple[Played, list[JobId]]) -> None:
    played, (_, second, third) = full
    course = asked(played, drain=("local/node0",), add_nodes=(AddedNodes(1, "local/node0"),))
    assert course.starts == pytest.approx({second: 0.0, third: 2 * HOUR}, abs=0.01)  # the drained one is between them
    assert (course.queues["default"].preempted, course.devices) == (1, 4)


def test_a_stopped_job_leaves_its_devices_to_the_next(full: tuple[Played, list[JobId]]) -> None:
    played, (first, second, third) = full
    assert asked(played, stop=(first,)).starts == pytest.approx({second: 0.0, third: HOUR}, abs=0.01)


def test_a_higher_priority_goes_first(full: tuple[Played, list[JobId]]) -> None:
    played, (_, second, third) = full
    course = asked(played, priorities={third: "50"})
    assert course.starts == pytest.approx({third: 0.0, second: 2 * HOUR}, abs=0.01)  # after the one that it preempts


def test_a_limit_of_the_queue_holds_jobs_back(full: tuple[Played, list[JobId]]) -> None:
    played, _ = full
    queue = {"kind": "Queue", "name": "default", "limit": {"devices": 2}}
    course = asked(played, documents=(queue,))
    assert course.starts == {} and course.queues["default"].waiting == 2


def test_submitted_jobs_come_after_those_that_wait(full: tuple[Played, list[JobId]]) -> None:
    played, (_, second, third) = full
    role = {"replicas": 1, "command": ["true"], "resources": {"cpu": 1, "devices": 4}}
    document = load_job({"name": "more", "framework": "shell", "maxDuration": "30m", "roles": {"worker": role}})
    course = asked(played, submit=(NewWork(document.to_json(), "ada", times=2),))
    assert len(course.starts) == 4
    added = sorted(at for job, at in course.starts.items() if job not in (second, third))
    assert added == pytest.approx([3 * HOUR - 10, 3.5 * HOUR - 10], abs=0.01)


def test_an_unknown_node_and_a_job_that_is_over_are_refused(full: tuple[Played, list[JobId]]) -> None:
    played, (first, _, _) = full
    for changes in ({"drain": ("local/nod0",)}, {"add_nodes": (AddedNodes(1, "local/nod0"),)}):
        with pytest.raises(NotFound, match=r"There is no node local/nod0; did you mean local/node0\?"):
            asked(played, **changes)
    played.run(2 * HOUR)
    with pytest.raises(NotFound, match="is over already"):
        asked(played, stop=(first,))


def test_a_policy_that_is_not_there_is_refused(full: tuple[Played, list[JobId]]) -> None:
    played, _ = full
    with pytest.raises(CorralError, match="There is no policy 'no-such'"):
        asked(played, documents=({"kind": "Policy", "name": "default", "preset": "no-such"},))
