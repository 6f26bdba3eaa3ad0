"""An estimated start comes true when every job uses its full duration, or the estimate says why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import GangRequest
from corral.model.start_estimates import Basis, Estimate
from corral.scheduler import EngineUnknown, Policy, find_policy
from corral.scheduler.explain import start_estimate as estimating
from corral.scheduler.explain.start_estimate import estimate
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_hived_decides import HivedLife

GRACE = 30.0


def estimated(life: Life, job: str, grace: float = GRACE) -> Estimate:
    """The estimate for a waiting job; cluster and queue stay bit for bit the same."""
    before = life.cluster.digest(), life.queue.digest()
    reasons = life.planner.explain(JobId(job), life.now)
    assert reasons is not None
    found = estimate(life.planner, JobId(job), reasons, life.now, lambda _: grace)
    assert (life.cluster.digest(), life.queue.digest()) == before
    assert found is not None
    return found


def test_the_first_that_waits_is_told_when_it_starts_at_the_latest() -> None:
    life = Life([node("n1")])
    life.submit(gang("long", role(1, 2), max_duration_seconds=3600))
    life.cycle(100.0)
    life.submit(gang("head", role(1, 4), at=100.0))
    life.cycle(200.0)
    found = estimated(life, "head")
    assert (found.basis, found.at, found.after) == (Basis.AT_LATEST, 3700.0 + GRACE, ("long",))
    assert "when job long ends" in found.message


def test_one_behind_it_is_told_what_is_expected() -> None:
    life = Life([node("n1")])
    life.submit(gang("long", role(1, 2), max_duration_seconds=3600))
    life.cycle()
    life.submit(gang("head", role(1, 4), at=1.0, max_duration_seconds=60), gang("next", role(1, 4), at=2.0))
    life.cycle()
    found = estimated(life, "next", 0.0)
    assert (found.basis, found.at, found.after) == (Basis.EXPECTED, 3660.0, ("head",))


def test_what_has_no_known_end_is_named() -> None:
    life = Life([node("n1")])
    life.submit(gang("endless", role(1, 2)), gang("bounded", role(1, 1), max_duration_seconds=60))
    life.cycle()
    life.submit(gang("head", role(1, 4), at=1.0))
    life.cycle()
    found = estimated(life, "head")
    assert (found.basis, found.at, found.after) == (Basis.UNKNOWN, None, ("endless",))
    assert found.message == "Unknown: it waits for job endless, which has no maxDuration."


def test_one_that_comes_before_and_has_no_known_end_is_named() -> None:
    life = Life([node("n1")])
    life.submit(gang("long", role(1, 4), max_duration_seconds=60))
    life.cycle()
    life.submit(gang("head", role(1, 4), at=1.0), gang("next", role(1, 4), at=2.0))
    life.cycle()
    found = estimated(life, "next")
    assert (found.basis, found.after) == (Basis.UNKNOWN, ("head",))
    assert found.message == "Unknown: it waits for job head before it in the queue order, which has no maxDuration."


def test_whoever_waits_for_others_that_yield_is_told_their_grace_period() -> None:
    life = Life([node("n1")])
    life.submit(gang("low", role(1, 4)))
    life.cycle()
    life.submit(gang("high", role(1, 4), at=1.0, priority=100))
    life.cycle(50.0)
    found = estimated(life, "high")
    assert (found.at, found.after) == (50.0 + GRACE, ("low",))
    life.yielded()
    life.cycle(60.0)
    assert estimated(life, "low").after == ("high",), "it waits again in its old place"


def test_a_protected_borrower_is_waited_for_and_then_has_to_yield() -> None:
    queues = (QueueSpec("owner", deserved={"devices": 4}), QueueSpec("guest", min_runtime_seconds=600.0))
    life = Life([node("n1")], queues)
    life.submit(gang("guest", role(1, 4), queue="guest"))
    life.cycle()
    life.submit(gang("own", role(1, 4), queue="owner", at=1.0))
    life.cycle(10.0)
    found = estimated(life, "own")
    assert (found.at, found.after) == (600.0 + GRACE, ("guest",))


def test_a_limit_that_binds_names_the_jobs_of_the_queue() -> None:
    life = Life([node("n1")], [QueueSpec("lab", limit={"devices": 1})])
    life.submit(gang("mine", queue="lab"))
    life.cycle()
    life.submit(gang("job", queue="lab", at=1.0))
    life.cycle()
    found = estimated(life, "job")
    assert (found.basis, found.after) == (Basis.UNKNOWN, ("mine",))


def test_what_never_fits_and_what_waits_for_machines_is_told_so() -> None:
    life = Life([node("n1")])
    life.submit(gang("never", role(1, 5)), gang("job", role(1, 4), at=1.0))
    life.planner.fold(EngineUnknown("local", "no answer"))
    life.cycle()
    assert estimated(life, "never").basis == Basis.NEVER
    assert estimated(life, "job").basis == Basis.UNKNOWN


def test_one_that_starts_with_the_next_cycle_is_told_so() -> None:
    life = Life([node("n1")])
    life.submit(gang("job"))
    assert (estimated(life, "job").basis, estimated(life, "job").at) == (Basis.NOW, 0.0)


def test_under_hiveds_preset_nothing_is_estimated_and_no_change_is_looked_for() -> None:
    life = HivedLife()
    life.submit(*(gang(f"j{at}", role(1, 4), queue="test", priority=0, at=float(at)) for at in range(2)))
    life.settle()
    (job,) = life.requests.keys() - life.running.keys()
    reasons = life.planner.explain(JobId(job), life.now)
    assert reasons is not None
    found = life.planner.outlook(JobId(job), reasons, life.now)
    assert found is not None and found.changes == ()
    assert (found.estimate.basis, found.estimate.at) == (Basis.NOT_ESTIMATED, None)
    assert found.estimate.message.startswith("Under the preset hived neither starts nor changes are estimated")


# -- many -------------------------------------------------------------------------------------------------------------


def crowd(policy: Policy | None = None) -> Life:
    """Two running jobs that end, one that does not, and more waiting jobs than the simulation covers."""
    life = Life([node("n1"), node("n2")], policy=policy)
    life.submit(
        *(gang(f"run{at}", role(1, 2), max_duration_seconds=600 * (1 + at)) for at in range(3)),
        gang("endless", role(1, 2)),
    )
    life.cycle()
    life.submit(gang("head", role(2, 2), at=1.0), *(gang(f"w{at}", role(1, 2), at=2.0 + at) for at in range(6)))
    life.cycle()
    return life


def test_among_many_the_head_is_told_its_reserved_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "MOST_WAITING", 4)
    found = estimated(crowd(), "head")
    assert (found.basis, found.at, found.after) == (Basis.AT_LATEST, 1200.0, ("run1",))


def test_among_many_the_others_are_told_no_time_before_which_they_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "MOST_WAITING", 4)
    found = estimated(crowd(), "w3")
    assert (found.basis, found.at, found.after) == (Basis.NOT_BEFORE, 600.0, ("run0",))
    assert "7 jobs wait and 4 run, too many for a forecast" in found.message


def test_when_too_much_happens_before_nobody_looks_further_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "_FEWEST_LOOKS", 3)
    monkeypatch.setattr(estimating, "_LOOKS_COST", 3)
    found = estimated(crowd(), "w5", 0.0)
    assert found.basis == Basis.NOT_BEFORE and found.at is not None
    monkeypatch.undo()
    assert (estimated(crowd(), "w5", 0.0).at or found.at) >= found.at


# -- simulated as estimated -------------------------------------------------------------------------------------------


@st.composite
def bounded(draw: st.DrawFn, job: str, at: float) -> GangRequest:
    """A gang of bounded duration, elastic or not."""
    tasks = draw(st.integers(1, 4))
    minimum = draw(st.sampled_from([tasks, tasks, 1]))
    return gang(
        job,
        role(tasks, draw(st.integers(1, 4)), minimum=minimum),
        at=at,
        priority=draw(st.sampled_from([10, 10, 50, -1])),
        required=draw(st.sampled_from(["", "", "node"])),
        queue=draw(st.sampled_from(["a", "b"])),
        max_duration_seconds=draw(st.integers(1, 9)) * 60,
    )


def until_all_started(life: Life) -> dict[str, float]:
    """The start of each waiting gang if running ones use their full duration and preempted ones end at once."""
    started: dict[str, float] = {}
    life.yielded()
    while True:
        found = life.cycle()
        for placed in found.placements:
            started.setdefault(placed.job, life.now)
        life.yielded()
        if found.placements or found.evictions:
            continue
        times = [end for end, _ in life.cluster.ends]
        times += [found.again_at] if found.again_at is not None and found.again_at > life.now else []
        if not times:
            return started
        life.now = min(times)
        life.end(*[job for end, job in life.cluster.ends if end <= life.now])


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(["fair", "priority", "fifo"]))
def test_what_is_estimated_is_what_happens(data: st.DataObject, policy: str) -> None:
    protected, owned = (
        data.draw(st.sampled_from([0.0, 90.0])),
        data.draw(st.sampled_from([(), (CellQuota("node", 1),)])),
    )
    queues = [QueueSpec("a", deserved={"devices": 4}), QueueSpec("b", min_runtime_seconds=protected, cells=owned)]
    life = Life([node("n1"), node("n2", rack="r2")], queues, find_policy(policy))
    for number in range(data.draw(st.integers(2, 8))):
        life.now = float(number)
        life.submit(data.draw(bounded(f"j{number}", float(number))))
        life.cycle()
    waiting = [job for job in life.requests if job not in life.running]
    told = {job: estimated(life, job, 0.0) for job in waiting}
    happens = until_all_started(life)
    for job, found in told.items():
        if found.basis in (Basis.AT_LATEST, Basis.EXPECTED, Basis.NOW):
            assert found.at == happens[job], (job, found)
        elif found.basis == Basis.NEVER:
            assert job not in happens
        else:
            raise AssertionError((job, found))
