"""The timeline of devices joins stored attempts with the forecast, within a bounded window."""

from __future__ import annotations

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.records import rfc3339
from corral.model.store_writes import AttemptWrite
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, START, FakeControl, job_text
from tests.service.test_jobs import _submit
from tests.store.makers import attempted, batch

HOUR = 3600.0
STAYS = "/overview/stays?node=local%2Fn1&node=local%2Fn2"


async def held(store: Store, epoch: int, job: JobId, *attempts: tuple[str, float, float | None]) -> None:
    """Attempts of a job on device 1 of nodes, from one hour after the start to another."""
    written: list[AttemptWrite] = [
        attempted(
            job, at, node=f"local/{node}", devices=(1,), device_millis=1000, started_at=START + begin * HOUR,
            ended_at=None if end is None else START + end * HOUR,
        )
        for at, (node, begin, end) in enumerate(attempts)
    ]  # fmt: skip
    await store.commit(batch(epoch, attempts=tuple(written)))


async def test_the_past_is_what_attempts_held_and_the_rest_is_what_the_forecast_has(
    service: Service, store: Store, epoch: int, machines: list[Node], clock: VirtualClock, fake_control: FakeControl
) -> None:
    job = await _submit(service, job_text("digits", devices=1))
    await held(store, epoch, job, ("n1", 0.0, 1.0), ("n2", 2.0, 3.0), ("n2", 29.0, None))
    clock.advance(30 * HOUR)
    now = START + 30 * HOUR
    stay = {"job": job, "name": "digits", "user": "ann", "queue": "default", "node": "local/n2", "devices": [1]}
    fake_control.answers[STAYS] = {
        "at": now - 2.0,
        "seconds": 24 * HOUR,
        "stays": [
            {**stay, "begin": 0.0, "end": HOUR},
            {**stay, "begin": 2 * HOUR, "end": None},
            {**stay, "begin": 0.0, "end": 1.0},
        ],
        "left_out": 3,
    }
    found = await service.device_timelines.show(ANN)
    assert (found.begin, found.at, found.end) == tuple(map(rfc3339, (now - 24 * HOUR, now, now + 24 * HOUR)))
    assert [(node.name, node.devices) for node in found.nodes] == [("local/n1", 2), ("local/n2", 2)]
    (past,) = found.past
    assert (past.job, past.name, past.user, past.queue) == (job, "digits", "ann", "default")
    assert (past.node, past.devices, past.begin, past.end) == ("local/n2", (1,), rfc3339(START + 29 * HOUR), None)
    first, second = found.expected
    assert (first.begin, first.end) == (rfc3339(now - 2.0), rfc3339(now - 2.0 + HOUR)), "one that ended is left out"
    assert (second.begin, second.end) == (rfc3339(now - 2.0 + 2 * HOUR), None)
    assert found.forecast_until == rfc3339(now - 2.0 + 24 * HOUR)
    assert (found.past_left_out, found.expected_left_out, found.trouble, found.next) == (0, 3, "", None)
    earlier = await service.device_timelines.show(ANN, begin=rfc3339(START), end=rfc3339(now - HOUR / 2))
    assert [(each.node, each.end) for each in earlier.past] == [
        ("local/n2", None),
        ("local/n2", rfc3339(START + 3 * HOUR)),
        ("local/n1", rfc3339(START + HOUR)),
    ]
    assert earlier.expected == () and earlier.forecast_until is None and earlier.trouble == ""


async def test_it_comes_by_node_and_in_pages_of_nodes(service: Service, machines: list[Node]) -> None:
    first = await service.device_timelines.show(ANN, limit=1)
    rest = await service.device_timelines.show(ANN, limit=1, after=first.next or "")
    assert [node.name for node in (*first.nodes, *rest.nodes)] == ["local/n1", "local/n2"] and rest.next is None
    (one,) = (await service.device_timelines.show(ANN, node="local/n2")).nodes
    assert one.name == "local/n2"
    with pytest.raises(NotFound, match="corral nodes"):
        await service.device_timelines.show(ANN, node="local/n9")


async def test_without_control_the_past_is_told_and_why_nothing_is_expected(
    service: Service, store: Store, epoch: int, machines: list[Node], clock: VirtualClock
) -> None:
    job = await _submit(service, job_text("digits", devices=1))
    await held(store, epoch, job, ("n1", 0.0, None))
    clock.advance(HOUR)
    found = await service.device_timelines.show(ANN)
    assert len(found.past) == 1 and found.expected == () and found.forecast_until is None
    assert found.trouble == "The scheduler does not answer, so nothing is expected."


async def test_more_than_it_may_tell_is_left_out_and_counted(
    service: Service, store: Store, epoch: int, machines: list[Node], clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("corral.service.machines.device_timeline.MOST_BARS", 2)
    job = await _submit(service, job_text("digits", devices=1))
    await held(store, epoch, job, *(("n1", at / 10, (at + 1) / 10) for at in range(5)))
    clock.advance(HOUR)
    found = await service.device_timelines.show(ANN)
    assert [each.begin for each in found.past] == [rfc3339(START + at * HOUR / 10) for at in (4, 3)]
    assert found.past_left_out == 3


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2023-11-14", "2023-11-14"),
        ("2023-11-14", "2023-11-17"),
        ("", "2024-11-14"),
        ("9999-12-31", ""),
        ("yesterday", ""),
        ("", "x" * 60),
    ],
)
async def test_a_window_that_is_none_or_too_long_is_refused(service: Service, begin: str, end: str) -> None:
    with pytest.raises(InvalidInput, match=r"at most 48 hours long|is a time such as"):
        await service.device_timelines.show(ANN, begin=begin, end=end)
