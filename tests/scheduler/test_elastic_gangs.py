"""Elastic gangs start with the free room, shrink for others, and grow back, never above their maximum."""

from __future__ import annotations

import pytest

from corral.model.plan import Rule
from corral.model.requests import GangRequest, TopologyRequest
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def elastic(job: str, least: int, most: int, **fields: object) -> GangRequest:
    return gang(job, role(most, minimum=least), **fields)  # type: ignore[arg-type]


def machines(*free: int) -> list:
    return [node(f"n{at}", devices) for at, devices in enumerate(free)]


@pytest.mark.parametrize(
    ("free", "least", "most", "got"),
    [((4, 4), 6, 8, 8), ((4, 3), 5, 5, 5), ((4, 4, 4), 9, 12, 12), ((4, 3), 6, 8, 7)],
)
def test_a3_a_gang_spreads_over_nodes_where_alnair_gave_up(
    free: tuple[int, ...], least: int, most: int, got: int
) -> None:
    life = Life(machines(*free))
    life.submit(elastic("job", least, most))
    life.settle(0.0)
    assert life.sizes() == {"job": got}


def test_a2_a_newcomer_is_admitted_by_shrinking_and_what_it_leaves_is_grown_into() -> None:
    life = Life(machines(8))
    life.submit(elastic("a", 2, 8))
    life.settle(0.0)
    assert life.sizes() == {"a": 8}
    life.submit(elastic("b", 4, 4, at=1.0))
    life.settle(10.0)
    assert life.sizes() == {"a": 4, "b": 4}
    assert [(receipt.job, receipt.rule, len(receipt.tasks)) for receipt in life.receipts] == [("a", Rule.SHRINK, 4)]
    life.end("b")
    life.settle(20.0)
    assert life.sizes() == {"a": 8}


def test_shrinking_names_the_highest_tasks_and_leaves_the_rendezvous() -> None:
    life = Life(machines(4))
    life.submit(elastic("a", 0, 4))
    life.settle(0.0)
    life.submit(gang("b", role(3), at=1.0))
    found = life.cycle(1.0)
    (eviction,) = found.evictions
    assert sorted(task.index for task in eviction.tasks) == [1, 2, 3]


def test_nobody_is_shrunk_below_the_minimum() -> None:
    life = Life(machines(8))
    life.submit(elastic("a", 6, 8))
    life.settle(0.0)
    life.submit(gang("b", role(4), at=1.0))
    life.settle(1.0)
    assert life.sizes() == {"a": 8} and not life.receipts


def test_who_has_most_to_spare_gives_first() -> None:
    life = Life(machines(12))
    life.submit(elastic("a", 2, 8), elastic("b", 2, 4, at=1.0))
    life.settle(0.0)
    life.submit(gang("c", role(4), at=2.0))
    life.settle(1.0)
    assert life.sizes() == {"a": 4, "b": 4, "c": 4}


def test_growth_waits_behind_everything_that_could_start() -> None:
    life = Life(machines(8))
    life.submit(elastic("a", 2, 8))
    life.settle(0.0)
    life.submit(gang("b", role(6), at=1.0))
    life.settle(1.0)
    assert life.sizes() == {"a": 2, "b": 6}
    life.submit(gang("c", role(6), at=2.0))
    life.end("b")
    life.settle(2.0)
    assert life.sizes() == {"a": 2, "c": 6}


def test_a_lower_priority_shrinks_nobody_above_it() -> None:
    life = Life(machines(4))
    life.submit(elastic("a", 2, 4, priority=100))
    life.settle(0.0)
    life.submit(gang("b", role(2), at=1.0, priority=1))
    life.settle(1.0)
    assert life.sizes() == {"a": 4}


def test_a4_a_gang_moves_to_where_it_gets_more_tasks_when_its_period_is_over() -> None:
    life = Life(machines(4, 8))
    life.submit(gang("wall", role(8)), elastic("a", 2, 8, at=1.0, required="node"))
    life.settle(0.0)
    assert life.sizes() == {"a": 4, "wall": 8}
    life.end("wall")
    life.settle(100.0)
    assert life.sizes() == {"a": 4}
    life.settle(700.0)
    assert life.sizes() == {"a": 8}
    assert life.rules() == [("a", Rule.GROW)]
    life.settle(5000.0)
    assert len(life.receipts) == 1


def test_what_a_gang_moves_to_is_kept_for_it_until_it_starts_anew() -> None:
    life = Life(machines(4, 8))
    life.submit(gang("wall", role(8)), elastic("a", 2, 8, at=1.0, required="node"))
    life.settle(0.0)
    life.end("wall")
    life.settle(100.0)
    found = life.cycle(700.0)
    assert [eviction.rule for eviction in found.evictions] == [Rule.GROW]
    life.submit(gang("b", role(8), at=0.5))
    life.yielded()
    life.cycle(701.0)
    assert life.sizes() == {"a": 8}


def test_a_gang_that_would_lose_more_than_it_gains_stays() -> None:
    life = Life(machines(4, 8))
    life.submit(gang("wall", role(8)), elastic("a", 2, 8, at=1.0, required="node"))
    life.settle(0.0)
    life.end("wall")
    life.settle(100_000.0)
    assert life.sizes() == {"a": 4}


def test_a_gang_that_may_not_be_preempted_gives_nothing_up() -> None:
    life = Life(machines(4))
    life.submit(elastic("a", 2, 4, preemptible=False))
    life.settle(0.0)
    life.submit(gang("b", role(2), at=1.0))
    life.settle(1.0)
    assert life.sizes() == {"a": 4} and not life.receipts


def test_growing_does_not_put_off_the_known_end_of_a_job() -> None:
    life = Life([node("n1")])
    life.submit(gang("other", role(1, 2)), gang("el", role(4, 1, minimum=1), at=1.0, max_duration_seconds=600))
    life.cycle(10.0)
    life.end("other")
    assert [placed.job for placed in life.cycle(100.0).placements] == ["el"]
    assert life.cluster.ends == [(610.0, "el")]


def test_a_role_that_gets_none_of_its_tasks_has_no_preference_that_could_be_missed() -> None:
    life = Life(machines(2))
    helpers = role(4, 2, name="helper", minimum=0, topology=TopologyRequest(preferred="rack"))
    life.submit(gang("job", role(2), helpers))
    life.settle(0.0)
    assert life.sizes() == {"job": 2}
