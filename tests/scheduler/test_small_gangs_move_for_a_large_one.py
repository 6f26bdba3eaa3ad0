"""Consolidation: small gangs move only when all find room again and the result is better."""

from __future__ import annotations

from corral.model.plan import Rule
from corral.scheduler import Policy
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def scattered(policy: Policy | None = None) -> Life:
    """Two nodes of four devices with one small gang on each, and a third node that is fully held."""
    life = Life([node(f"n{at}") for at in range(3)], policy=policy)
    life.submit(gang("a", role(3)), gang("b", role(3), at=1.0), gang("wall", role(4), at=2.0, required="node"))
    life.settle(0.0)
    life.submit(gang("small1", role(1), at=3.0), gang("small2", role(1), at=4.0))
    life.settle(0.0)
    life.end("a", "b")
    assert life.sizes() == {"small1": 1, "small2": 1, "wall": 4}
    assert len({next(iter(life.cluster.holds(job).values())).node for job in ("small1", "small2")}) == 2
    return life


def test_a_small_gang_moves_so_that_a_large_one_fits() -> None:
    life = scattered()
    life.submit(gang("large", role(4), at=5.0, required="node"))
    life.settle(60.0)
    assert life.rules() in ([("small1", Rule.CONSOLIDATION)], [("small2", Rule.CONSOLIDATION)])
    assert life.sizes() == {"large": 4, "small1": 1, "small2": 1, "wall": 4}


def test_nobody_moves_when_more_would_be_lost_than_won() -> None:
    life = scattered()
    life.submit(gang("large", role(4), at=5.0, required="node"))
    life.settle(100_000.0)
    assert not life.receipts


def test_nobody_moves_who_would_find_no_room() -> None:
    life = scattered()
    life.submit(gang("fill", role(3), at=5.0, required="node"), gang("fill2", role(2), at=6.0, required="node"))
    life.settle(10.0)
    life.submit(gang("large", role(4), at=7.0, required="node"))
    life.settle(20.0)
    assert not life.receipts


def test_a_policy_without_consolidation_moves_nobody() -> None:
    life = scattered(Policy("plain", preemption=True))
    life.submit(gang("large", role(4), at=5.0, required="node"))
    life.settle(60.0)
    assert not life.receipts


def test_a_gang_of_whole_nodes_never_moves_for_another_though_it_is_the_cheapest() -> None:
    life = Life([node(f"n{at}") for at in range(4)])
    life.submit(gang("a", role(3)), gang("b", role(3), at=1.0))
    life.settle(0.0)
    life.submit(gang("small1", role(1), at=3.0), gang("small2", role(1), at=4.0))
    life.settle(0.0)
    life.end("a", "b")
    life.submit(gang("whole", role(1, 4), at=5.0))
    life.settle(59.0)
    assert life.sizes() == {"small1": 1, "small2": 1, "whole": 1}
    life.submit(gang("large", role(2, 4), at=59.0))
    life.settle(60.0)
    assert [rule for _, rule in life.rules()] == [Rule.CONSOLIDATION]
    assert life.rules()[0][0] in ("small1", "small2")
    assert life.sizes() == {"large": 2, "small1": 1, "small2": 1, "whole": 1}
