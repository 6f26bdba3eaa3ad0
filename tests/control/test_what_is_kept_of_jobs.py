"""Memory of thousands of live jobs: equal parts are shared objects, and rarely read parts are loaded on demand."""

from __future__ import annotations

import gc
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from corral.control.core import world
from corral.control.core.world import Gangs, Job
from corral.frameworks.runnable_job import load_runnable_job
from corral.kernel.ids import JobId, TaskKey
from corral.launcher import create
from corral.model.records import JobSummary
from corral.model.runs import JobRun
from corral.model.store_writes import LiveJob
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

EXAMPLES = Path(__file__).parents[2] / "examples"


def job(number: int, **role: Any) -> Job:
    """A job as it was stored."""
    name, identity = f"j{number}", JobId(f"id{number}")
    document = {"name": name, "roles": {"worker": {"command": "train", "env": {"SEED": str(number)}, **role}}}
    return Job.from_record(
        LiveJob(
            id=identity,
            name=name,
            user="ada",
            queue="default",
            priority=10,
            created_at=1.0,
            doc=load_job(json.dumps(document)).to_json(),
            run=JobRun(identity),
            summary=JobSummary(identity, name, "ada", "default", 10, "shell", "waiting", ""),
            revision=0,
        ),
        (),
    )


def test_jobs_that_ask_for_the_same_share_what_the_rules_read_of_them() -> None:
    one, other, larger = job(1), job(2), job(3, replicas=2)
    assert one.terms is other.terms
    assert one.view is other.view
    assert larger.terms is not one.terms
    assert larger.view is not one.view
    assert other.document.spec.roles[0].env == {"SEED": "2"}


def test_jobs_that_differ_in_their_names_alone_share_what_they_run() -> None:
    one, other, third = (job(number, env={"SEED": seed}) for number, seed in ((1, "7"), (2, "7"), (3, "8")))
    assert one.document.spec is other.document.spec
    assert (one.document.name, other.document.name) == ("j1", "j2")
    assert third.document.spec != one.document.spec


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_document_is_read_as_it_was_checked(path: Path) -> None:
    text = load_runnable_job(path.read_bytes()).to_json()
    assert world._read(text) == UnifiedJob.model_validate_json(text)


def test_only_so_many_documents_stay_in_memory_and_the_others_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_read", lru_cache(4)(UnifiedJob.model_validate_json))
    gc.collect()
    before = sum(isinstance(each, UnifiedJob) for each in gc.get_objects())
    jobs = [job(number) for number in range(20)]
    gc.collect()
    assert sum(isinstance(each, UnifiedJob) for each in gc.get_objects()) - before <= 4
    assert [each.document.name for each in jobs] == [each.name for each in jobs]


def test_a_gang_is_found_once_until_a_placement_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_GANGS", 2)
    gangs, jobs = Gangs(), [job(number) for number in range(3)]
    for each in jobs:
        each.run = create(each.id, each.view, 1.0).job
    first = gangs.of(jobs[0])
    assert gangs.of(jobs[0]) is first
    gangs.forget(jobs[0].id)
    again = gangs.of(jobs[0])
    assert again is not first
    assert [gangs.of(each).job_id for each in jobs] == [each.id for each in jobs]
    assert gangs.of(jobs[0]) is not again, "the oldest leaves when there are too many"


def test_terms_ask_for_the_tasks_that_want_a_place_and_insist_on_the_fewest_that_can_begin() -> None:
    terms = job(1, replicas={"min": 2, "max": 5}).terms
    tasks = [TaskKey("worker", index) for index in (3, 0, 4)]
    request = terms.request(JobId("id1"), 2, tasks, user="ada", created_at=5.0)
    assert (request.roles[0].indexes, request.roles[0].minimum) == ((0, 3, 4), 2)
    assert request.tasks == tuple(sorted(tasks))
