"""Who is told whose use, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model import usage as model
from corral.model.charges import Charge
from corral.model.records import rfc3339
from corral.service.service import Service
from corral.service.usage import usage as service_usage
from tests.service.conftest import ANN, ROOT, START
from tests.store.makers import ME, attempted, batch, new_job

HOUR = 3600.0


async def used(service: Service) -> None:
    """Ann holds two devices for an hour in queue research, Bob one for two hours that came to nothing, Eve a cpu."""
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    attempts = []
    for user, millis, hours, code in (("ann", 2000, 1, 0), ("bob", 1000, 2, -1003), ("eve", 0, 1, 0)):
        job = new_job(user=user, queue="research", tags=(f"of-{user}",))
        await store.submit(job)
        attempts.append(
            attempted(
                job.id, user=user, node="local/n1", device_millis=millis, code=code,
                started_at=START - 3 * HOUR, ended_at=START - 3 * HOUR + hours * HOUR,
            )
        )  # fmt: skip
    await store.commit(batch(lease.epoch, attempts=tuple(attempts)))


async def test_administrators_are_told_everybodys_use_others_their_own_and_managers_their_queues(
    service: Service,
) -> None:
    await used(service)
    every = await service.usage.report(ROOT)
    assert [(row.key, row.device_seconds, row.lost_device_seconds) for row in every.items] == [
        ("bob", 2 * HOUR, 2 * HOUR), ("ann", 2 * HOUR, 0.0), ("eve", 0.0, 0.0)
    ]  # fmt: skip
    assert every.total == model.UsageRow("", "", 4 * HOUR, 2 * HOUR, 4 * HOUR)
    assert (every.by, every.end) == ("user", rfc3339(service.context.clock.now()))
    for asked in ({}, {"user": "ann"}, {"queue": "research"}):
        own = await service.usage.report(ANN, **asked)
        assert [row.key for row in own.items] == ["ann"]
    with pytest.raises(Forbidden, match="managers of a queue"):
        await service.usage.report(ANN, user="bob")
    manager = msgspec.structs.replace(ANN, manages=("research",))
    assert {row.key for row in (await service.usage.report(manager, queue="research")).items} == {"ann", "bob", "eve"}
    assert {row.key for row in (await service.usage.report(manager, by="tag", queue="research")).items} > {"of-bob"}
    with pytest.raises(Forbidden):
        await service.usage.report(manager, user="bob", queue="other")


async def test_a_report_has_a_bounded_number_of_rows_and_its_total_counts_them_all(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_usage, "MOST_ROWS", 1)
    await used(service)
    found = await service.usage.report(ROOT, by="job")
    assert len(found.items) == 1 and found.items[0].name.startswith("job-")
    assert found.left_out == 2 and found.total.task_seconds == 4 * HOUR


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": "moon"}, "summed by user, queue, job, tag, node, model, not by moon"),
        ({"begin": "yesterday"}, "from is a time such as"),
        ({"end": "9" * 500}, "to is a time such as"),
        ({"begin": "0001-01-01T00:00:00+14:00"}, "from is a time such as"),
        ({"end": "0001-01-01"}, "to is a time such as"),
        ({"begin": "1969-12-31T23:59:59"}, "from is a time such as"),
        ({"end": "1970-01-01"}, "has no length"),
        ({"begin": "2026-11-27", "end": "2026-11-27"}, "has no length"),
        ({"begin": "2026-11-27", "end": "2026-11-26"}, "has no length"),
    ],
)
async def test_what_is_no_question_is_refused(service: Service, asked: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await service.usage.report(ROOT, **asked)


PRICES = """
kind: Prices
currency: EUR
rates:
  - {deviceHour: 2, cpuHour: 0.5, memoryGibHour: 0.25}
  - {model: h100, deviceHour: 4}
  - {model: h100, deviceHour: 6, from: 2023-11-14}
"""
MIDNIGHT = START // model.DAY * model.DAY
"""The beginning of 2023-11-14."""


async def priced(service: Service) -> None:
    """Ann has an h100 from two hours before midnight to one after; Bob four cpus and 8 GiB for one hour."""
    await service.configuration.apply(ROOT, PRICES)
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    ann, bob = new_job(user="ann", queue="research", tags=("a", "b")), new_job(user="bob", queue="research")
    for job in (ann, bob):
        await store.submit(job)
    device = attempted(
        ann.id, node="local/n1", device_millis=1000, model="h100", code=-1003,
        started_at=MIDNIGHT - 2 * HOUR, ended_at=MIDNIGHT + HOUR,
    )  # fmt: skip
    cpus = attempted(
        bob.id, node="local/n1", cpu_millis=4000, memory_bytes=8 * model.GIB, code=0,
        started_at=MIDNIGHT, ended_at=MIDNIGHT + HOUR,
    )  # fmt: skip
    await store.commit(batch(lease.epoch, attempts=(device, cpus)))


async def test_costs_follow_the_price_of_each_day(service: Service) -> None:
    await priced(service)
    begin = rfc3339(MIDNIGHT - 12 * HOUR)
    report = await service.usage.report(ROOT, begin=begin)
    assert report.currency == "EUR"
    assert [(row.key, row.cost) for row in report.items] == [("ann", 2 * 4 + 6.0), ("bob", 4 * 0.5 + 8 * 0.25)]
    assert report.total.cost == 18.0
    by_tag = await service.usage.report(ROOT, by="tag", begin=begin, user="ann")
    assert {(row.key, row.cost) for row in by_tag.items} == {("a", 14.0), ("b", 14.0)}
    own = await service.usage.report(ANN, by="model", begin=begin)
    assert [(row.key, row.cost) for row in own.items] == [("h100", 14.0)]


async def test_without_prices_nothing_has_a_cost(service: Service) -> None:
    await used(service)
    report = await service.usage.report(ROOT)
    assert report.currency == "" and {row.cost for row in (*report.items, report.total)} == {None}
    page = await service.usage.charges(ROOT, begin=rfc3339(START - 4 * HOUR))
    assert page.currency == "XXX" and page.items and {each.cost for each in page.items} == {0.0}


async def test_charges_come_by_day_and_add_up_to_the_report(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await priced(service)
    monkeypatch.setattr(service_usage, "CHARGES_AT_ONCE", 1)
    begin, found = rfc3339(MIDNIGHT - 12 * HOUR), list[Charge]()
    for _ in range(5):
        page = await service.usage.charges(ROOT, begin=begin)
        found += page.items
        if not (begin := page.next):
            break
    assert [(each.user, each.model, each.meter, each.quantity, each.lost, each.unit_price) for each in found] == [
        ("ann", "h100", "device-hours", 2.0, 2.0, 4.0),
        ("ann", "h100", "device-hours", 1.0, 1.0, 6.0),
        ("bob", "", "cpu-hours", 4.0, 0.0, 0.5),
        ("bob", "", "memory-gib-hours", 8.0, 0.0, 0.25),
    ]
    assert sum(each.cost for each in found) == 18.0
    assert [each.begin for each in found][:2] == [rfc3339(MIDNIGHT - 12 * HOUR), rfc3339(MIDNIGHT)]
    assert {each.user for each in (await service.usage.charges(ANN, begin="2023-11-13")).items} == {"ann"}
    with pytest.raises(Forbidden, match="managers of a queue"):
        await service.usage.charges(ANN, user="bob")
    monkeypatch.setattr(service_usage, "MOST_GROUPS", 1)
    with pytest.raises(InvalidInput, match="On 2023-11-14 more than 1 users, queues and models have charges"):
        await service.usage.charges(ROOT, begin="2023-11-14")
