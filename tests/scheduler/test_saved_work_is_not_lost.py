"""Among equal gangs, the one that saved most recently is preempted first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.model.queues import QueueSpec
from corral.scheduler import Checkpointed
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def full(count: int, **fields: object) -> Life:
    """Gangs of two devices that fill their machines, all started at 0."""
    life = Life([node(f"n{at}") for at in range((count + 1) // 2)], [QueueSpec("default")])
    life.submit(*(gang(f"low{at}", role(2), at=float(at), priority=1, **fields) for at in range(count)))  # type: ignore[arg-type]
    life.cycle(0.0)
    assert len(life.running) == count
    return life


def saved(life: Life, job: str, at: float, attempt: int = 0) -> None:
    life.planner.fold(Checkpointed(JobId(job), attempt, at))


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        ([], 200.0),
        ([(0, 60.0)], 80.0),
        ([(0, 60.0), (0, 90.0)], 20.0),
        ([(0, 60.0), (0, 30.0)], 80.0),
        ([(1, 60.0)], 200.0),
        ([(0, 100.0)], 0.0),
        ([(0, 130.0)], 0.0),
    ],
    ids=["never", "once", "twice", "old news", "another attempt", "just now", "a clock ahead"],
)
def test_only_what_was_done_since_the_last_checkpoint_is_lost(words: list[tuple[int, float]], lost: float) -> None:
    life = full(2)
    for attempt, at in words:
        saved(life, "low0", at, attempt)
    assert life.cluster.gangs.by_job[JobId("low0")].cost(100.0) == lost
    assert life.cluster.gangs.by_job[JobId("low1")].cost(100.0) == 200.0
    assert life.cluster.consistent()


def test_news_changes_the_picture_once_and_forks_know_it() -> None:
    life = full(2)
    before, revision = life.cluster.digest(), life.cluster.revision
    saved(life, "low0", 60.0)
    after = life.cluster.digest()
    assert after != before and life.cluster.revision == revision + 1
    for at in (60.0, 10.0):
        saved(life, "low0", at)
    saved(life, "nobody", 70.0)
    assert life.cluster.digest() == after == life.cluster.fork().digest()
    life.end("low0")
    life.submit(gang("low0", role(2), priority=1))
    life.cycle(80.0)
    assert life.cluster.gangs.by_job[JobId("low0")].cost(90.0) == 20.0, "an attempt begins without anything saved"


@given(st.permutations(range(5)), st.integers(1, 3))
@settings(max_examples=examples(40), deadline=None)
def test_of_equal_gangs_those_that_saved_last_yield_first(order: list[int], needed: int) -> None:
    life = full(5)
    for place, job in enumerate(order):
        if place:
            saved(life, f"low{job}", 10.0 * place)
    life.submit(gang("urgent", role(2 * needed), at=9.0, priority=100))
    free_already = 1  # gangs that already fit: the third node is half empty
    found = life.cycle(100.0)
    latest = [f"low{job}" for job in order[::-1]]
    yielding = {eviction.job for eviction in found.evictions}
    assert yielding == set(latest[: needed - free_already])
    costs = {eviction.job: eviction.cost_device_seconds for eviction in found.evictions}
    assert costs == {f"low{job}": 2 * (100.0 - 10.0 * order.index(job)) for job in order if f"low{job}" in costs}


def test_what_was_saved_counts_after_the_rule_and_the_priority() -> None:
    life = Life([node("n1")], [QueueSpec("default")])
    life.submit(gang("weak", role(2), priority=1), gang("strong", role(2), at=1.0, priority=5))
    life.cycle(0.0)
    saved(life, "strong", 99.0)
    life.submit(gang("urgent", role(2), at=2.0, priority=100))
    life.settle(100.0)
    assert life.rules() == [("weak", Rule.PRIORITY)]


@pytest.mark.parametrize("save", [False, True])
def test_a_gang_that_has_run_for_long_moves_for_a_larger_one_only_once_it_has_saved_its_work(save: bool) -> None:
    life = Life([node("n1"), node("n2")], [QueueSpec("default")])
    life.submit(*(gang(job, role(count), at=float(at)) for at, (job, count) in enumerate((("a", 1), ("x", 3)))))
    life.submit(*(gang(job, role(count), at=float(at)) for at, (job, count) in enumerate((("c", 1), ("y", 3)), 2)))
    life.cycle(0.0)
    life.end("x", "y")
    for job in ("a", "c") if save else ():
        saved(life, job, 19_999.0)
    life.submit(gang("large", role(4), at=9.0, required="node"))
    life.cycle(20_000.0)
    assert [rule for _, rule in life.rules()] == ([Rule.CONSOLIDATION] if save else [])
