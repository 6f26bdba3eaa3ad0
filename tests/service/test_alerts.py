"""Who is shown which alerts, what silences and the webhook refuse, and when alerts are forgotten."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Forbidden, InvalidInput, NotFound, TooLarge
from corral.model.alerts.stored import AlertSource, StoredAlert
from corral.service.actor import Actor
from corral.service.alerts.webhook import KEPT_SECONDS, MOST_BYTES, MOST_TOLD, RESOLVED_SECONDS
from corral.service.service import Service
from tests.service.conftest import ANN, BOB, ROOT, START

FIRING: dict[str, Any] = {"status": "firing", "labels": {"alertname": "Hot", "node_name": "n1"}}
GROUP: dict[str, Any] = {
    "version": "4", "groupKey": '{}:{alertname="Hot"}', "status": "firing", "receiver": "corral", "truncatedAlerts": 0,
    "groupLabels": {"alertname": "Hot"}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://am:9093",
    "alerts": [
        {
            **FIRING, "annotations": {"summary": "n1 is hot"}, "startsAt": "2023-11-14T22:00:00.123456789Z",
            "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://p:9090/graph", "fingerprint": "ab",
        },
        {
            "status": "resolved", "labels": {"alertname": "Slow", "username": "ann"}, "annotations": {},
            "startsAt": "2023-11-14T22:00:00+01:00", "endsAt": "2023-11-14T22:10:00Z",
        },
    ],
}  # fmt: skip


def body(*alerts: dict[str, Any]) -> bytes:
    return json.dumps({"alerts": alerts}).encode()


async def names(service: Service, actor: Actor, *matchers: str) -> list[str]:
    return [each.name for each in (await service.alerts.list(actor, matchers)).items]


async def test_the_webhook_takes_what_alertmanager_sends(service: Service, clock: VirtualClock) -> None:
    taken = await service.alerts.take(ROOT, json.dumps(GROUP).encode())
    assert (taken.firing, taken.resolved) == (1, 1)
    hot, slow = (await service.alerts.list(ROOT)).items
    assert (hot.name, hot.state, hot.source, hot.value, hot.since) == (
        "Hot", "firing", "alertmanager", None, "2023-11-14T22:00:00.123Z"
    )  # fmt: skip
    assert (slow.name, slow.state, slow.resolved_at) == ("Slow", "resolved", "2023-11-14T22:10:00.000Z")
    clock.advance(RESOLVED_SECONDS)
    assert await names(service, ROOT) == ["Hot"]
    await service.alerts.take(ROOT, body({**FIRING, "status": "resolved"}))
    (hot,) = (await service.alerts.list(ROOT)).items
    assert hot.state == "resolved"
    clock.advance(KEPT_SECONDS)
    await service.alerts.take(ROOT, body())
    assert await service.context.store.alerts() == []


REFUSED = [
    (b"{", "This is not what Alertmanager's webhook sends"),
    (b"[]", "This is not what Alertmanager's webhook sends"),
    (b"\xff\xfe", "This is not what Alertmanager's webhook sends"),
    (b'{"alerts": ' + b"[" * 100_000, "This is not what Alertmanager's webhook sends"),
    (body({"status": "firing", "labels": {"a": "b"}}), "Alert 0 needs a label alertname"),
    (body(FIRING, {**FIRING, "status": "odd"}), "Alert 1 needs a label alertname, and the status firing or resolved."),
    (body({**FIRING, "startsAt": "soon"}), "Alert 0 has the time 'soon', which is none."),
    (body({**FIRING, "labels": {"alertname": "x" * 4001}}), "This is not what Alertmanager's webhook sends"),
]


@pytest.mark.parametrize(("sent", "message"), REFUSED)
async def test_broken_calls_of_the_webhook_are_refused_in_one_sentence(
    service: Service, sent: bytes, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await service.alerts.take(ROOT, sent)
    assert message in refused.value.message and "\n" not in refused.value.message


async def test_large_calls_and_those_of_users_are_refused(service: Service) -> None:
    with pytest.raises(TooLarge, match="at most 1048576 bytes"):
        await service.alerts.take(ROOT, b" " * (MOST_BYTES + 1))
    with pytest.raises(TooLarge, match="at most 1000 alerts"):
        await service.alerts.take(ROOT, body(*[FIRING] * (MOST_TOLD + 1)))
    with pytest.raises(Forbidden):
        await service.alerts.take(ANN, body())
    with pytest.raises(Forbidden):
        await service.alerts.silence(ANN, ["a=b"], seconds=1, reason="x")


async def test_users_see_alerts_about_themselves_and_their_jobs(service: Service) -> None:
    def alert(name: str, **labels: str) -> StoredAlert:
        return StoredAlert(AlertSource.RULES, name, {"alertname": name, **labels}, {}, "firing", START, 1.0, START)

    told = [alert("A", job_name="ann~x"), alert("B", username="ann"), alert("C", node_name="n1")]
    told += [alert("D", job_name="ann~x", username="bob"), alert("E", job_name="annabel~x")]
    await service.context.store.replace_alerts(AlertSource.RULES, lambda before: told)
    assert sorted(await names(service, ROOT)) == ["A", "B", "C", "D", "E"]
    assert sorted(await names(service, ANN)) == ["A", "B"]
    assert await names(service, BOB) == ["D"]
    assert await names(service, ROOT, "alertname=~A|C", 'node_name!=""') == ["C"]
    with pytest.raises(InvalidInput, match="A matcher is written as"):
        await names(service, ROOT, "no matcher")


async def test_the_history_has_alerts_of_days_ago_for_those_whom_they_are_about(
    service: Service, clock: VirtualClock
) -> None:
    def alert(name: str, **labels: str) -> StoredAlert:
        now = clock.now()
        return StoredAlert(
            AlertSource.RULES, name, {"alertname": name, **labels}, {"summary": "x"}, "firing", now, 1, now
        )

    store = service.context.store
    labels = {"A": {"job_name": "ann~x"}, "B": {"severity": "fatal"}, "C": {"username": "bob"}}
    for name in labels:
        told = [alert(name, **labels[name])]
        await store.replace_alerts(AlertSource.RULES, partial(lambda told, before: told, told))
        clock.advance(86_400)
    await store.replace_alerts(AlertSource.RULES, lambda before: [])
    assert await names(service, ROOT) == []
    page = await service.alerts.history(ROOT)
    assert [(each.name, each.ended_at) for each in page.items] == [
        ("C", "2023-11-17T22:13:20.000Z"), ("B", "2023-11-16T22:13:20.000Z"), ("A", "2023-11-15T22:13:20.000Z")
    ]  # fmt: skip
    assert page.items[1].severity == "fatal" and page.items[1].fired_at == "2023-11-15T22:13:20.000Z"
    assert [each.name for each in (await service.alerts.history(ANN)).items] == ["A"]
    assert [each.name for each in (await service.alerts.history(BOB)).items] == ["C"]
    assert [each.name for each in (await service.alerts.history(ROOT, ["severity=fatal"])).items] == ["B"]
    within = await service.alerts.history(ROOT, begin="2023-11-15T00:00:00Z", end="2023-11-16T00:00:00Z")
    assert [each.name for each in within.items] == ["B"]
    first = await service.alerts.history(ROOT, limit=2)
    second = await service.alerts.history(ROOT, limit=2, after=first.next or "")
    assert [each.name for each in (*first.items, *second.items)] == ["C", "B", "A"] and second.next is None
    with pytest.raises(InvalidInput, match="has no length"):
        await service.alerts.history(ROOT, begin="2023-11-16T00:00:00Z", end="2023-11-15T00:00:00Z")
    with pytest.raises(InvalidInput, match="A matcher is written as"):
        await service.alerts.history(ROOT, ["no matcher"])
    with pytest.raises(InvalidInput):
        await service.alerts.history(ROOT, after="no cursor")


async def test_a_silence_names_itself_and_ends(service: Service, clock: VirtualClock) -> None:
    await service.alerts.take(ROOT, body(FIRING))
    made = await service.alerts.silence(ROOT, ['node_name=~"n[12]"'], seconds=60, reason="new\nfans\x1b[2J")
    assert made.reason == "new fans [2J" and made.by == "root"
    (hot,) = (await service.alerts.list(ROOT)).items
    assert hot.silenced_by == (made.id,) and (await service.alerts.silences(ROOT)).items == (made,)
    clock.advance(60)
    (hot,) = (await service.alerts.list(ROOT)).items
    assert hot.silenced_by == () and (await service.alerts.silences(ROOT)).items == ()
    again = await service.alerts.silence(ROOT, ["alertname=Hot"], seconds=60, reason="x")
    await service.alerts.unsilence(ROOT, again.id)
    with pytest.raises(NotFound, match="There is no silence"):
        await service.alerts.unsilence(ROOT, again.id)
    lines = [line.action for line in (await service.context.store.audit()).items]
    assert lines.count("alert.silence") == 3


@pytest.mark.parametrize(
    ("matchers", "seconds", "reason", "message"),
    [
        ([], 60, "x", "A silence needs 1 to 20 matchers"),
        (["a=b"] * 21, 60, "x", "A silence needs 1 to 20 matchers"),
        (["a!=b"], 60, "x", "These matchers would silence every alert"),
        (['a=~".*"'], 60, "x", "These matchers would silence every alert"),
        (["a=b"], 0, "x", "A silence is longer than nothing and at most 31d."),
        (["a=b"], 1e9, "x", "A silence is longer than nothing and at most 31d."),
        (["a=b"], float("nan"), "x", "A silence is longer than nothing and at most 31d."),
        (["a=b"], 60, " \n", "A silence needs a reason of at most 500 characters."),
        (["a=~(b+)+"], 60, "x", "The pattern '(b+)+' of a repeats a group, which is not supported."),
    ],
)
async def test_silences_are_bounded(
    service: Service, matchers: list[str], seconds: float, reason: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await service.alerts.silence(ROOT, matchers, seconds=seconds, reason=reason)
    assert message in refused.value.message
