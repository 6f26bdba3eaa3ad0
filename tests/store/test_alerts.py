"""Alerts and silences are stored, bounded, and replaced as a whole."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Conflict
from corral.model.alerts.stored import MOST_ALERTS, MOST_SILENCES, AlertSource, Silence, StoredAlert
from corral.store import Store


def _alert(
    name: str, state: str = "firing", source: AlertSource = AlertSource.RULES, since: float = 1.0
) -> StoredAlert:
    return StoredAlert(source, name, {"alertname": name, "n": "ü\0"}, {"summary": "x"}, state, since)


async def test_alerts_of_a_source_replace_each_other_and_come_in_order(store: Store) -> None:
    one, other = _alert("A", "pending"), _alert("B", since=5.0)
    told = _alert("A", "resolved", AlertSource.ALERTMANAGER)
    await store.replace_alerts(AlertSource.RULES, lambda before: [one, other])
    await store.replace_alerts(AlertSource.ALERTMANAGER, lambda before: [told])
    assert await store.alerts() == [other, one, told]

    fired = msgspec.structs.replace(one, state="firing")

    def merge(before: object) -> list[StoredAlert]:
        assert before == {one.fingerprint: one, other.fingerprint: other}
        return [fired]

    await store.replace_alerts(AlertSource.RULES, merge)
    assert await store.alerts() == [fired, told]
    assert await store.alerts("alertmanager") == [told]


async def test_of_too_many_alerts_those_that_fire_stay(store: Store) -> None:
    many = [_alert(f"A{number}", "pending") for number in range(MOST_ALERTS)] + [_alert("fires")]
    await store.replace_alerts(AlertSource.RULES, lambda before: many)
    found = await store.alerts()
    assert len(found) == MOST_ALERTS and found[0].rule == "fires"
    await store.replace_alerts(AlertSource.RULES, lambda before: [])
    assert await store.alerts() == []


async def test_silences_end_and_are_bounded(store: Store) -> None:
    first = Silence("s1", ('alertname=~"Node.*"', "node_name!=n2"), "root", "moving racks", 10.0, 20.0)
    await store.add_silence(first)
    (found,) = await store.silences(19.0)
    assert found == first and await store.silences(20.0) == []
    assert found.silences({"alertname": "NodeNotReady", "node_name": "n1"}, 15.0)
    assert not found.silences({"alertname": "NodeNotReady", "node_name": "n2"}, 15.0)
    assert not found.silences({"alertname": "NodeNotReady", "node_name": "n1"}, 20.0)
    assert await store.remove_silence("s1") and not await store.remove_silence("s1")
    for number in range(MOST_SILENCES):
        await store.add_silence(msgspec.structs.replace(first, id=f"s{number}"))
    with pytest.raises(Conflict, match="There are 500 silences"):
        await store.add_silence(msgspec.structs.replace(first, id="more"))
    await store.add_silence(msgspec.structs.replace(first, id="later", begins=30.0, ends=40.0))
    assert [each.id for each in await store.silences(30.0)] == ["later"]
