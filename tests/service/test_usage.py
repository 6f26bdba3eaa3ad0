"""Who is told whose use, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model import usage as model
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
