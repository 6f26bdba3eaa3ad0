"""The history of a queue has its waits, use, borrowing and lending by week, with the queues below it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import NotFound
from corral.model.accounts import QueueRecord
from corral.model.queue_history import WEEK, weeks_up_to
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.store_writes import JobWrite, NewJob
from corral.service.control_client import NoControl
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, START
from tests.store.makers import attempted, batch, ended, new_job

HOUR = 3600.0
(THIS, MONDAY), (LAST, BEFORE) = weeks_up_to(START, 2)
STEPS = WEEK // 600


class Series(NoControl):
    """Control, which kept series since the last week began; the queue lab borrowed 2 devices for an hour of it."""

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        assert path == "/series"
        question = msgspec.convert(body, SeriesQuestion)
        if question.families == ("corral_lease_epoch",):
            assert question.step == 86_400
            known = tuple(1.0 if question.begin + at * 86_400 >= BEFORE else None for at in range(question.steps))
            found = SeriesView("corral_lease_epoch", {}, known, known, known)
        else:
            assert question.labels == {"queue": "lab", "resource": "devices"} and question.steps <= STEPS
            values = (None, *[2.0] * 6) if question.begin == BEFORE else (None,)
            found = SeriesView("corral_queue_borrowed", question.labels, values, values, values)
        return msgspec.to_builtins([[found], 0])


def ran(job: NewJob, start: float, end: float) -> JobWrite:
    write = ended(job, at=end)
    return msgspec.structs.replace(write, run=msgspec.structs.replace(write.run, started_at=start))


async def lived(store: Store, epoch: int) -> None:
    """In the last week jobs of lab and below waited for 1, 2 and 9 hours; another queue's waited for a day."""
    await store.put_queues([QueueRecord("lab"), QueueRecord("night", {"parent": "lab"}), QueueRecord("other")])
    writes, attempts = [], []
    for queue, waited in (("lab", 1), ("lab", 2), ("night", 9), ("other", 24)):
        job = new_job(queue=queue, created_at=BEFORE)
        await store.submit(job)
        start = BEFORE + waited * HOUR
        writes.append(ran(job, start, start + HOUR))
        attempts.append(attempted(job.id, started_at=start, ended_at=start + HOUR, code=0, device_millis=2000))
    await store.commit(batch(epoch, jobs=tuple(writes), attempts=tuple(attempts)))


async def test_weeks_have_waits_use_and_what_was_borrowed(service: Service, store: Store, epoch: int) -> None:
    await lived(store, epoch)
    service.context.control = Series()
    found = await service.queue_histories.show(ANN, "lab", weeks=3)
    assert [each.week for each in found.weeks[:2]] == [THIS, LAST] == ["2023-W46", "2023-W45"]
    now, last, earlier = found.weeks
    assert (now.started, now.wait_p50, now.used, now.borrowed, now.lent) == (0, None, 0.0, 0.0, 0.0)
    assert (last.started, last.wait_p50, last.wait_p95) == (3, 2 * HOUR, 9 * HOUR), "with the queue below it"
    assert (last.used, last.borrowed, last.lent) == (6 * HOUR, 2 * HOUR, 0.0)
    assert (earlier.borrowed, earlier.lent) == (None, None), "of that week there are no series"
    assert len(found.unknown) == 2


async def test_without_control_what_is_stored_is_told(service: Service, store: Store, epoch: int) -> None:
    await lived(store, epoch)
    found = await service.queue_histories.show(ANN, "night")
    assert len(found.weeks) == 8 and found.weeks[1].started == 1 and found.weeks[1].borrowed is None
    assert found.unknown[1] == "The server has no series, so what was lent and borrowed is not known."
    with pytest.raises(NotFound, match="they are default, lab"):
        await service.queue_histories.show(ANN, "nowhere")


async def test_a_week_that_goes_on_counts_up_to_now(
    service: Service, store: Store, epoch: int, clock: VirtualClock
) -> None:
    job = new_job(queue="default", created_at=START)
    await store.submit(job)
    await store.commit(batch(epoch, attempts=(attempted(job.id, started_at=START, device_millis=3000),)))
    clock.advance(HOUR)
    (week,) = (await service.queue_histories.show(ANN, "default", weeks=1)).weeks
    assert week.used == 3 * HOUR
