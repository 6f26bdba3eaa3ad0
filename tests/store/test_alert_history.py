"""Alerts that fired are kept after their end, each spell once, bounded in age and number."""

from __future__ import annotations

import msgspec
import pytest

from corral.model.alerts.stored import AlertSource, PastAlert, StoredAlert
from corral.store import Store, alert_history
from corral.store.alert_history import KEPT_SECONDS


def alert(name: str, state: str = "firing", fired: float = 0.0, **more: float) -> StoredAlert:
    labels = {"alertname": name, "username": "\u00fc\0"}
    return StoredAlert(AlertSource.RULES, name, labels, {"summary": "x"}, state, fired, None, fired, **more)


async def told(store: Store, *alerts: StoredAlert, source: AlertSource = AlertSource.RULES) -> None:
    await store.replace_alerts(source, lambda before: alerts)


async def past(store: Store, **more: object) -> list[PastAlert]:
    page = await store.past_alerts(lambda each: True, begin=0.0, end=1e12, **more)  # type: ignore[arg-type]
    return list(page.items)


async def spells(store: Store) -> list[tuple[str, float, float]]:
    return [(each.alert.rule, each.fired_at, each.ended_at) for each in await past(store)]


async def test_each_spell_is_kept_once_from_its_beginning_to_its_end(store: Store) -> None:
    at = store.clock.now()
    waiting, firing = alert("A", "pending"), alert("A", fired=at)
    await told(store, waiting)
    assert await spells(store) == []
    await told(store, firing)
    await told(store, msgspec.structs.replace(firing, value=2.0, acted_at=at))
    assert await spells(store) == [("A", at, 0.0)]
    await told(store, msgspec.structs.replace(firing, state="resolved", resolved_at=at + 5))
    await told(store)
    assert await spells(store) == [("A", at, at + 5)]
    again = alert("A", fired=at + 20)
    await told(store, again)
    assert await spells(store) == [("A", at + 20, 0.0), ("A", at, at + 5)]
    await told(store)  # its rule is gone from the file
    assert await spells(store) == [("A", at + 20, at + 20), ("A", at, at + 5)]


async def test_an_alert_that_fires_anew_ends_its_spell_before(store: Store) -> None:
    at = store.clock.now()
    await told(store, alert("A", fired=at))
    await told(store, alert("A", fired=at + 1))
    (latest, earlier) = await spells(store)
    assert latest == ("A", at + 1, 0.0) and earlier[1] == at and earlier[2] > 0


async def test_an_alertmanager_that_is_silent_ends_what_it_told(store: Store) -> None:
    at = store.clock.now()
    manager = AlertSource.ALERTMANAGER
    await told(
        store, msgspec.structs.replace(alert("A", fired=at - 9, expires_at=at - 3), source=manager), source=manager
    )
    await told(store, source=manager)
    assert await spells(store) == [("A", at - 9, at - 3)]


async def test_those_about_a_user_are_found_by_name_and_read_in_pages(store: Store) -> None:
    at = store.clock.now()
    many = [alert(f"A{number:02}", fired=at + number // 3) for number in range(20)]
    other = msgspec.structs.replace(alert("B", fired=at), labels={"alertname": "B", "job_name": "ann~x"})
    await told(store, *many, other)
    assert [each.alert.rule for each in await past(store, about="ann")] == ["B"]
    assert len(await past(store, about="\u00fc\0")) == 20 and await past(store, about="bob") == []
    found, cursor = list[str](), ""
    for _ in range(4):
        page = await store.past_alerts(
            lambda each: each.alert.rule != "A07", begin=0.0, end=1e12, limit=6, after_cursor=cursor
        )
        found += [each.alert.rule for each in page.items]
        cursor = page.next or ""
    assert sorted(found) == sorted({each.rule for each in many} - {"A07"} | {"B"}) and cursor == ""


async def test_old_ends_and_too_many_alerts_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = store.clock.now()
    old = now - KEPT_SECONDS - 1000
    await told(store, alert("old", fired=old), alert("fires", fired=old))
    await told(store, alert("old", "resolved", fired=old, resolved_at=old + 5), alert("fires", fired=old))
    await told(store, alert("fires", fired=old), alert("new", fired=now))
    assert [each[0] for each in await spells(store)] == ["new", "fires"]
    monkeypatch.setattr(alert_history, "MOST_KEPT", 5)
    await told(store, *(alert(f"A{number}", fired=now + number) for number in range(1, 9)))
    assert [each[0] for each in await spells(store)] == ["A8", "A7", "A6", "A5", "A4"]
