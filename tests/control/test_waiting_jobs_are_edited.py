"""A waiting job changes its priority, duration or queue at once and keeps its submission time, also after a restart.

A job that has started keeps its values.
"""

from __future__ import annotations

import json
from typing import Any

from corral.control.initial_configuration import seed
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.job_edits import Edit, edited
from corral.model.store_writes import IntentKind, JobRecord
from corral.spec.configuration_file import load_document
from corral.spec.job_reader import load_job
from tests.control.harness import House, short


async def edit(house: House, job: JobId, **terms: Any) -> None:
    await house.store.add_intent(job, IntentKind.EDIT, terms, actor="ada", at=house.clock.now())


async def full(house: House, *names: str, **more: Any) -> tuple[JobId, list[JobId]]:
    """A job that holds everything, and others that wait behind it."""
    holder = await house.submit(short("holder", devices=4, preemptible=False))
    await house.until(holder, "running")
    waiting = [await house.submit(short(name, devices=4, preemptible=False, **more)) for name in names]
    for job in waiting:
        await house.explained(job)
    return holder, waiting


async def end(house: House, job: JobId) -> None:
    for attempt in [each for each in house.engine.running if parse_attempt_id(each).job == job]:
        house.engine.end(attempt, 0)
    await house.until(job, "succeeded")


async def starts(house: House, holder: JobId, waiting: list[JobId]) -> list[str]:
    """The names of the waiting jobs in the order of their starts."""
    started: list[str] = []
    left, now = list(waiting), holder
    while left:
        await end(house, now)
        async with house.patience():
            while not (running := [each for each in left if (await _record(house, each)).phase == "running"]):
                await house.store.wakeup.wait(0.05)
        (now,) = running
        left.remove(now)
        started.append((await _record(house, now)).name)
    return started


async def _record(house: House, job: JobId) -> JobRecord:
    record = await house.store.find_job(job)
    assert record is not None
    return record


async def told(house: House, job: JobId) -> list[tuple[str, str]]:
    return [(each.kind, each.message) for each in await house.store.events(0, 1000, job)]


async def test_a_higher_priority_starts_sooner_and_equal_ones_go_by_their_time_of_submission(house: House) -> None:
    await house.begin()
    holder, waiting = await full(house, "one", "two", "three")
    await edit(house, waiting[2], priority="prod")
    await edit(house, waiting[0], priority="100")  # edited last, submitted first
    record = await house.when(waiting[0], lambda record: record.priority == 100)
    assert record.summary.priority == 100 and json.loads(record.doc)["spec"]["priority"] == "100"
    assert await starts(house, holder, waiting) == ["one", "three", "two"]
    assert ("job.edited", "ada changed the job's priority from 10 to 100.") in await told(house, waiting[2])


async def test_what_was_edited_outlives_control(house: House) -> None:
    house.engine.started_at = house.clock.now()
    await house.begin()
    holder, waiting = await full(house, "one", "two")
    created = (await _record(house, waiting[1])).created_at
    await edit(house, waiting[1], priority="prod", maxDurationSeconds=600)
    await house.when(waiting[1], lambda record: record.priority == 100)
    before = house.control.world.queue.waiting(waiting[1])
    await house.abandon()
    control = await house.begin()
    assert control.world.queue.waiting(waiting[1]) == before
    assert (before[0].priority, before[0].max_duration_seconds, before[0].submitted_at) == (100, 600, created)
    assert control.world.jobs[waiting[1]].view.max_duration_seconds == 600
    assert await starts(house, holder, waiting) == ["two", "one"]


async def test_an_edit_that_came_while_no_control_was_there_is_carried_out(house: House) -> None:
    await house.begin()
    holder, waiting = await full(house, "one", "two")
    await house.abandon()
    await edit(house, waiting[1], priority="prod")
    await house.begin()
    await house.when(waiting[1], lambda record: record.priority == 100)
    assert await starts(house, holder, waiting) == ["two", "one"]


async def test_another_queue_has_room_at_once_and_the_turn_of_the_old_one_is_forgotten(house: House) -> None:
    site = "kind: Queue\nname: narrow\nlimit: {devices: 1}\n---\nkind: Queue\nname: wide\n"
    await seed(house.store, load_document(site), file="site.yaml", clock=house.clock)
    await house.begin()
    job = await house.submit(short("one", devices=4, queue="narrow"))
    await house.explained(job)
    await house.store.add_intent(job, IntentKind.ORDER, {"place": "first"}, actor="lead", at=house.clock.now())
    await house.when(job, lambda record: record.run.turn != 0)
    await edit(house, job, queue="wide")
    record = await house.until(job, "running")
    assert (record.queue, record.summary.queue, record.run.turn) == ("wide", "wide", 0.0)


async def test_a_job_that_has_begun_keeps_its_terms_and_says_so(house: House) -> None:
    await house.begin()
    job = await house.submit(short("one", devices=1))
    await house.until(job, "running")
    await edit(house, job, priority="prod", maxDurationSeconds=1)
    async with house.patience():
        while not [kind for kind, _ in await told(house, job) if kind == "job.edit-refused"]:
            await house.store.wakeup.wait(0.05)
    record = await _record(house, job)
    assert (record.phase, record.priority) == ("running", 10)
    assert load_job(record.doc).spec.max_duration_seconds == 0


async def test_a_suspended_job_is_edited_and_goes_on_with_its_new_terms(house: House) -> None:
    await house.begin()
    holder, waiting = await full(house, "one", "two")
    await house.store.add_intent(waiting[1], IntentKind.SUSPEND, actor="ada", at=house.clock.now())
    await house.when(waiting[1], lambda record: record.run.suspended)
    await edit(house, waiting[1], priority="prod")
    record = await house.when(waiting[1], lambda record: record.priority == 100)
    assert record.run.suspended and not house.control.world.queue.waiting(waiting[1])
    await house.store.add_intent(waiting[1], IntentKind.RESUME, actor="ada", at=house.clock.now())
    await house.when(waiting[1], lambda record: not record.run.suspended)
    assert await starts(house, holder, waiting) == ["two", "one"]


def test_an_edited_document_is_canonical_and_otherwise_the_same() -> None:
    job = load_job(short("one", devices=1))
    text = edited(job.to_json(), Edit(priority="prod", max_duration_seconds=90, queue="vision"))
    changed = load_job(text)
    assert changed.to_json() == text
    assert (changed.priority, changed.spec.max_duration_seconds, changed.spec.queue) == (100, 90, "vision")
    assert edited(text, Edit(priority=job.spec.priority, max_duration_seconds=0, queue="default")) == job.to_json()


async def test_terms_that_were_judged_in_another_queue_are_not_carried_out(house: House) -> None:
    """Each change may be allowed alone: a priority is capped at the ceiling of the queue that the job was in."""
    site = "kind: Queue\nname: vision\n---\nkind: Queue\nname: wide\n"
    await seed(house.store, load_document(site), file="site.yaml", clock=house.clock)
    await house.begin()
    _, (job,) = await full(house, "mine", queue="vision")
    judged = {"queue": "vision", "priority": 10}
    await edit(house, job, queue="wide", judged=judged)
    await edit(house, job, priority="100", judged=judged)
    order = {"place": "first", "queue": "vision"}
    await house.store.add_intent(job, IntentKind.ORDER, order, actor="ann", at=house.clock.now())
    async with house.patience():
        while "job.order-refused" not in (kinds := [kind for kind, _ in await told(house, job)]):
            await house.store.wakeup.wait(0.05)
    record = await _record(house, job)
    assert "job.edit-refused" in kinds
    assert (record.queue, record.priority, record.run.turn) == ("wide", 10, 0.0)
