"""What is sure of a start and the proposed changes come from one view and never contradict each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from corral.kernel.ids import JobId
from corral.model.plan import Reasons
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.model.start_estimates import Basis, Change, Estimate
from corral.scheduler import EngineUnknown
from corral.scheduler.explain.start_estimate import sure_estimate
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_hived_decides import HivedLife
from tests.scheduler.test_the_smallest_change_is_told import lives


def told(life: Life, job: str) -> tuple[Reasons, Estimate | None, tuple[Change, ...]]:
    """Why a job waits, what is sure of its start, and what would start it; cluster and queue stay the same."""
    before = life.planner.digest()
    reasons, entry = life.planner.explain(JobId(job), life.now), life.queue.first(JobId(job))
    assert reasons is not None and entry is not None
    changes = life.planner.smallest_changes(JobId(job), reasons, life.now)
    assert life.planner.digest() == before
    return reasons, sure_estimate(entry, reasons, life.now), changes


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
    reasons, estimate, changes = told(life, "job")
    assert not reasons.possible
    assert estimate is not None and estimate.basis is Basis.NEVER
    assert words in estimate.message
    assert paths <= {change.path for change in changes}


def test_what_never_fits_and_what_waits_for_machines_is_told_so() -> None:
    life = Life([node("n1")])
    life.submit(gang("never", role(1, 5)), gang("job", role(1, 4), at=1.0))
    life.planner.fold(EngineUnknown("local", "no answer"))
    life.cycle()
    for job, basis in (("never", Basis.NEVER), ("job", Basis.UNKNOWN)):
        _, estimate, _ = told(life, job)
        assert estimate is not None and estimate.basis is basis


def test_one_that_starts_with_the_next_cycle_is_told_so() -> None:
    life = Life([node("n1")])
    life.submit(gang("job"))
    _, estimate, changes = told(life, "job")
    assert estimate is not None
    assert (estimate.basis, estimate.at, changes) == (Basis.NOW, 0.0, ())


def test_under_hiveds_preset_no_change_is_looked_for() -> None:
    life = HivedLife()
    life.submit(*(gang(f"j{at}", role(1, 4), queue="test", priority=0, at=float(at)) for at in range(2)))
    life.settle()
    (job,) = life.requests.keys() - life.running.keys()
    _, estimate, changes = told(life, job)
    assert (estimate, changes) == (None, ())


@settings(max_examples=examples(60), deadline=None)
@given(lives())
def test_what_starts_now_needs_no_change_and_what_never_starts_is_not_possible(life: Life) -> None:
    waiting = [job for job in life.requests if job not in life.running and life.queue.first(JobId(job))]
    for job in waiting:
        reasons, estimate, changes = told(life, job)
        basis = None if estimate is None else estimate.basis
        assert (basis is Basis.NEVER) == (not reasons.possible)
        assert (basis is Basis.NOW) == (reasons.binding.code == "starts-now")
        if estimate is not None and basis is Basis.NOW:
            assert (estimate.at, changes) == (life.now, ())
        if estimate is not None and basis is Basis.NEVER:
            assert ("limit" in estimate.message) == reasons.binding.code.endswith("-limit")
