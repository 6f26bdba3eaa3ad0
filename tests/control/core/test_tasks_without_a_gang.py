"""Tasks of a job without gang scheduling start, end and retry independently."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from corral.control.core.driver import Work
from corral.kernel.ids import JobId
from corral.launcher import LaunchPolicy
from corral.model.exits import NODE_LOST
from tests.control.core.virtual import Played
from tests.control.harness import short
from tests.spec.openpai_files import job_file, role_of

ROOM = 8
"""Devices of all machines."""


@pytest.fixture
def played() -> Played:
    return Played(policy=LaunchPolicy(conflict_delay=(0.0, 0.0), retry_first=0.0), usual=Work(inf))


def roles(name: str, counts: dict[str, int], **more: Any) -> str:
    """A job without gang scheduling whose tasks have one device each."""
    each = {"resources": {"cpu": 1, "devices": 1}, "command": ["true"]}
    shaped = {role: {**each, "replicas": count} for role, count in counts.items()}
    return json.dumps({"name": name, "framework": "shell", "gang": False, "roles": shaped, **more})


def state(played: Played, job: JobId) -> str:
    return played.stored(job).summary.state


def test_a_job_larger_than_the_machines_runs_task_by_task_to_its_end(played: Played) -> None:
    gang = played.submit_file(short("gang", replicas=ROOM + 2, devices=1))
    loose = played.submit_file(short("loose", replicas=ROOM + 2, devices=1, gang=False))
    assert len(played.running(loose)) == ROOM
    assert not played.running(gang)
    started = set(played.running(loose))
    for ended in range(1, ROOM + 3):
        played.end(played.running(loose)[0])
        assert len(played.running(loose)) == min(ROOM, ROOM + 2 - ended)
        started |= set(played.running(loose))
    assert state(played, loose) == "succeeded"
    assert len({attempt.rpartition(".")[0] for attempt in started}) == ROOM + 2


def test_every_role_comes_to_its_turn(played: Played) -> None:
    job = played.submit_file(roles("many", {"first": ROOM, "second": ROOM}))
    assert len(played.running(job)) == ROOM
    played.end(*played.running(job))
    assert len(played.running(job, "second")) == ROOM
    played.end(*played.running(job))
    assert state(played, job) == "succeeded"


def test_a_role_that_has_no_place_keeps_no_other_role_waiting(played: Played) -> None:
    others = played.submit_file(short("others", replicas=2, devices=ROOM // 2 - 1))
    assert len(played.running(others)) == 2
    large, small = ({"resources": {"cpu": 1, "devices": devices}, "command": ["true"]} for devices in (ROOM // 2, 1))
    shaped = {"large": large, "small": {**small, "replicas": 2}}
    job = played.submit_file(json.dumps({"name": "loose", "framework": "shell", "gang": False, "roles": shaped}))
    assert len(played.running(job, "small")) == 2
    assert not played.running(job, "large")
    played.end(*played.running(others), *played.running(job))
    (last,) = played.running(job, "large")
    played.end(last)
    assert state(played, job) == "succeeded"


def test_the_first_failure_ends_it_where_its_policy_says_so(played: Played) -> None:
    job = played.submit_file(short("strict", replicas=ROOM + 2, devices=1, gang=False))
    assert len(played.running(job)) == ROOM
    played.end(played.running(job)[0], code=3)
    summary = played.stored(job).summary
    assert summary.state == "failed" and summary.exit is not None and summary.exit.code == 3
    assert not played.running(job)


def test_whoever_is_more_important_takes_single_tasks_and_the_others_run_on(played: Played) -> None:
    low = played.submit_file(short("low", replicas=ROOM, devices=1, gang=False, priority="test"))
    assert len(played.running(low)) == ROOM
    high = played.submit_file(short("high", devices=2, priority="prod"))
    assert state(played, high) == "running"
    assert len(played.running(low)) == ROOM - 2
    played.end(played.running(high)[0])
    assert len(played.running(low)) == ROOM
    assert played.stored(low).run.attempt == 0


def test_openpais_gang_allocation_false_is_this_with_retries_of_its_own(played: Played) -> None:
    role = role_of(
        instances=ROOM + 2, taskRetryCount=1, resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 1},
        completion={"minSucceededInstances": -1}, extraContainerOptions={"shmMB": 0},
    )  # fmt: skip
    job = played.submit_file(job_file(taskRoles={"worker": role}, extras={"gangAllocation": False}))
    assert len(played.running(job)) == ROOM
    first, *others = played.running(job)
    played.end(first, code=NODE_LOST)
    assert any(each not in others for each in played.running(job)), "another task takes the room"
    again, ended = f"{first.rpartition('.')[0]}.1", 0
    while again not in played.driver.running:
        played.end(played.running(job)[0])
        ended += 1
        assert ended <= ROOM + 2
    assert played.stored(job).run.attempt == 0
