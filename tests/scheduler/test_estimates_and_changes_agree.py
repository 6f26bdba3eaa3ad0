"""The estimated start and the proposed changes come from one view and never contradict each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from corral.kernel.ids import JobId
from corral.model.plan import Reasons
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.model.start_estimates import Basis, Outlook
from corral.scheduler.explain.outlook import outlook
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_the_smallest_change_is_told import lives


def told(life: Life, job: str) -> tuple[Reasons, Outlook]:
    reasons = life.planner.explain(JobId(job), life.now)
    assert reasons is not None
    found = outlook(life.planner, JobId(job), reasons, life.now)
    assert found is not None
    return reasons, found


NEVER = (
    (
        gang("job", role(1, 2), queue="lab", at=9.0),
        "a limit is below what it needs",
        {"queue", "Queue/lab: limit.devices"},
    ),
    (gang("job", role(1, 5), at=9.0), "the machines cannot hold it even when empty", set()),
    (
        gang("job", role(node_selector={"disk": "fast"}), at=9.0),
        "the machines cannot hold it even when empty",
        {"roles.worker.nodeSelector.disk"},
    ),
)


@pytest.mark.parametrize(("request_", "words", "paths"), NEVER)
def test_never_names_what_the_changes_would_change(request_: GangRequest, words: str, paths: set[str]) -> None:
    life = Life([node("n1")], [QueueSpec("default"), QueueSpec("lab", limit={"devices": 1})])
    life.submit(request_)
    life.cycle()
    reasons, found = told(life, "job")
    assert not reasons.possible
    assert found.estimate.basis is Basis.NEVER
    assert words in found.estimate.message
    assert paths <= {change.path for change in found.changes}


def test_a_job_that_starts_at_once_in_the_room_of_one_that_yields_is_told_to_change_nothing() -> None:
    life = Life([node("n1"), node("n2")], [QueueSpec("lab", limit={"devices": 4}), QueueSpec("other")])
    life.submit(gang("low", role(1, 4), queue="lab", at=3.0))
    life.cycle(3.0)
    life.submit(gang("high", role(1, 2), queue="lab", at=4.0, priority=100), gang("job", queue="lab", at=1.0))
    life.cycle(5.0)
    _, found = told(life, "job")
    assert (found.estimate.basis, found.estimate.at) == (Basis.EXPECTED, life.now)
    assert found.changes == ()


@settings(max_examples=examples(60), deadline=None)
@given(lives())
def test_what_starts_now_needs_no_change_and_what_never_starts_is_not_possible(life: Life) -> None:
    waiting = [job for job in life.requests if job not in life.running and life.queue.first(JobId(job))]
    for job in waiting:
        reasons, found = told(life, job)
        estimate = found.estimate
        assert (estimate.basis is Basis.NEVER) == (not reasons.possible)
        assert (estimate.basis is Basis.NOW) == (reasons.binding.code == "starts-now")
        assert estimate.at is None or estimate.at >= life.now
        if found.changes:
            assert estimate.at is None or estimate.at > life.now
            assert estimate.basis in (Basis.NEVER, Basis.UNKNOWN, Basis.NOT_ESTIMATED) or estimate.at is not None
        if estimate.basis is Basis.NEVER:
            assert ("limit" in estimate.message) == reasons.binding.code.endswith("-limit")
