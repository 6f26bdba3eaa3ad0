"""The health of nodes and its history survive a restart, in bounds."""

from __future__ import annotations

import pytest

from corral.model.health.records import HealthEntry, NodeHealth, Score
from corral.model.health.states import HealthState
from corral.store import Store, health_records
from tests.store.makers import START


def entry(number: int, node: str = "local/n1", what: str = "node-exit", at: float = START) -> HealthEntry:
    return HealthEntry(node, at + number, what, f"reason {number} \ud800", weight=4.0)


async def test_what_is_known_of_nodes_is_read_back(store: Store) -> None:
    known = NodeHealth("local/n1", HealthState.CORDONED, START, "health", "its score is 12", {-1: Score(12.0, START)})
    await store.keep_health([known], [entry(0)])
    later = NodeHealth("local/n1", HealthState.REPAIRING, START + 1, "root", "fan", {3: Score(1.0, START)})
    await store.keep_health([later, NodeHealth("local/n0")], [])
    assert await store.node_health() == [NodeHealth("local/n0"), later]


async def test_the_history_comes_in_pages_newest_first(store: Store) -> None:
    await store.keep_health([], [*map(entry, range(3)), entry(9, "local/n2")])
    first = await store.health_history("local/n1", limit=2)
    assert [each.at - START for each in first.items] == [2, 1] and first.next is not None
    second = await store.health_history("local/n1", limit=2, after_cursor=first.next)
    assert [each.at - START for each in second.items] == [0] and second.next is None


async def test_old_history_and_too_much_of_it_is_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_records, "MOST_KEPT", 5)
    await store.keep_health([], [entry(0, at=START - health_records.KEPT_SECONDS - 1)])
    await store.keep_health([], [entry(1)])
    assert len((await store.health_history("local/n1")).items) == 1
    await store.keep_health([], list(map(entry, range(20))))
    assert len((await store.health_history("local/n1")).items) == 5


async def test_a_move_is_an_event(store: Store) -> None:
    moved = HealthEntry(
        "local/n1", START, "moved", "its score is 12", before="suspected", after="cordoned", by="health"
    )
    await store.keep_health([], [moved])
    (event,) = await store.events(0)
    assert (event.kind, event.message) == ("node.health", "local/n1 is cordoned by health: its score is 12")


async def test_figures_are_found_by_those_they_are_compared_with(store: Store) -> None:
    await store.put_figures("local/n1", "8 a100", START, {"copy": 10.0})
    await store.put_figures("local/n1", "8 a100", START, {"copy": 20.0})
    await store.put_figures("local/n2", "4 t4", START, {"copy": 1.0})
    assert await store.figures_alike("8 a100") == {"local/n1": {"copy": 20.0}}
