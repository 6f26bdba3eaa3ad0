"""In 10,000 random events on 40 random clusters no guarantee breaks, no device is given twice (rows H3, H4, H7-H11)."""

from __future__ import annotations

from collections import Counter

import pytest

from corral.scheduler.planners.hived.algorithm import Order
from tests.examples import at_least
from tests.scheduler.hived_life import Life

CLUSTERS, EVENTS = at_least(10, 40), 250


def test_h3_left_is_never_less_than_what_the_virtual_clusters_have_free() -> None:
    """After every event: the invariant per chain and level, one group per device, and kept state equal to a recount."""
    seen: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        life = Life(seed, Order.HISTORY if seed % 2 else Order.CONFIGURATION)
        for event in range(EVENTS):
            life.happen()
            wrong = life.wrong()
            assert not wrong, (seed, event, wrong)
        seen.update(life.seen)
    for what in ("Bind", "Preempt", "Wait", "refused", "health", "reconfigured", "lost guarantee", "ignored", "parted"):
        assert seen[what] > CLUSTERS // 2, f"the lives hardly saw {what}, and prove little: {seen}"


@pytest.mark.parametrize("order", list(Order))
def test_the_same_events_give_the_same_state(order: Order) -> None:
    lives = [Life("twins", order), Life("twins", order)]
    for _ in range(200):
        for life in lives:
            life.happen()
        assert lives[0].algorithm.digest() == lives[1].algorithm.digest()


def test_h11_a_state_rebuilt_from_what_was_bound_has_the_same_free_cells() -> None:
    """Crash recovery: replaying the bindings in the order of the configuration leaves the same cells free."""
    for seed in range(12):
        life = Life(("rebuilt", seed), Order.CONFIGURATION)
        for _ in range(60):
            life.happen()
        for request in life.waiting:
            life.algorithm.delete_unallocated(request)
        rebuilt, changes = life.algorithm.reconfigured(life.algorithm.cluster)
        assert changes.lazily_preempted == ()
        assert rebuilt.differences() == []
        for chain, ledger in life.algorithm.state.ledgers.items():
            fresh = rebuilt.state.ledgers[chain]
            if not any(cells for levels in [*ledger.doomed.values(), *fresh.doomed.values()] for cells in levels):
                assert [list(map(_address, cells)) for cells in fresh.free] == [
                    list(map(_address, cells)) for cells in ledger.free
                ]


def _address(cell: object) -> str:
    return str(cell.address)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(12))
def test_h2_h3_an_owner_gets_every_cell_it_has_not_used(seed: int) -> None:
    """With all nodes healthy, a gang of the size of an unused owned cell never waits, whatever else runs."""
    life = Life(("owner", seed), Order.CONFIGURATION)
    for _ in range(80):
        life.happen()
    for node, device in life.algorithm.state.forest.devices:
        life.algorithm.set_node_health(node, healthy=True)
        life.algorithm.set_device_health(node, device, healthy=True)
    assert not life.wrong()
    life.claim_everything()
    assert not life.wrong()
