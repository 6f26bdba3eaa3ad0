"""Reasons, receipts and the dry run name jobs and users by their names, in sentences with one full stop."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from corral.control.control_api import ControlApi
from corral.kernel.ids import JobId
from corral.model.cordons import Cordon, Drain
from corral.model.store_writes import IntentKind
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service
from tests.control.asked import Asked
from tests.control.harness import House, PaperEngine, short

ADA = Actor("Ada", token_id="t-ada")
RAW_ID = re.compile(r"\b[0-9][0-9a-z]{12}\b")


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine())
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def service(house: House, tmp_path: Path) -> Service:
    await house.begin()
    control_client = Asked(ControlApi(house.control, tmp_path / "unused.sock"))
    return Service(Context(house.store, key=b"k" * 32, clock=house.clock, control=control_client))


def well_said(*messages: str) -> None:
    """Check that every message is a sentence without a raw id."""
    for message in messages:
        assert message and not RAW_ID.search(message), message
        assert message[0].isupper() and message.endswith(".") and ".." not in message, message


async def receipt_of(house: House, job: JobId) -> str:
    while not (found := (await house.store.receipts(job=job)).items):
        await house.store.wakeup.wait(0.05)
    return found[-1].message


async def test_who_yields_is_told_by_name_to_whom(house: House, service: Service) -> None:
    low = await house.submit(short("low", replicas=2, devices=4, priority="test"), user="Ben")
    await house.until(low, "running")
    high = await house.submit(short("high", replicas=2, devices=4, priority="prod"), user="Ada")
    await house.until(high, "running")
    told = await receipt_of(house, low)
    assert told.startswith("Job high of Ada has priority ")
    record = await house.when(low, lambda found: found.summary.waiting is not None and found.phase == "waiting")
    assert record.summary.waiting is not None
    well_said(told, record.summary.waiting.message)


async def test_who_waits_behind_another_reads_its_name_everywhere(house: House, service: Service) -> None:
    house.engine.started_at = house.clock.now()
    runs = await house.submit(short("runs", replicas=1, devices=3, maxDuration="1h"), user="Ada")
    await house.until(runs, "running")
    first = await house.submit(short("first", replicas=2, devices=4), user="Ada")
    await house.explained(first)
    behind = await house.submit(short("behind", devices=4), user="Ada")
    record = await house.when(
        behind, lambda found: "first" in str(found.summary.waiting and found.summary.waiting.message)
    )
    assert record.summary.waiting is not None
    explained = await service.explanations.explain(ADA, behind)
    line = await service.queues.waiting_line(ADA)
    trial = await service.submission.submit(ADA, short("tried", devices=4).encode(), dry_run=True)
    assert trial.trial is not None and trial.trial.reasons is not None
    shown = [entry.reason.message for entry in line.items if entry.reason is not None]
    assert any("Behind job first" in message for message in shown)
    assert "job first" in explained.message and "job first" in trial.trial.reasons.binding.message
    well_said(record.summary.waiting.message, explained.message, trial.trial.reasons.binding.message, *shown)
    assert explained.estimate is not None
    well_said(explained.estimate.message, *(change.message for change in explained.changes))


async def test_a_suspended_job_is_told_by_whom_as_they_are_called(house: House, service: Service) -> None:
    job = await house.submit(short("pauses", devices=1), user="ada")
    await house.until(job, "running")
    await house.store.add_intent(job, IntentKind.SUSPEND, {}, actor="ada", at=house.clock.now())
    assert await receipt_of(house, job) == "The job was suspended by ada."
    kinds = {event.kind: event.message for event in await house.store.events(0, 500, job)}
    assert kinds["job.suspended"] == "the job was suspended by ada"


async def test_a_drain_with_a_reason_that_is_a_sentence_has_one_full_stop(house: House, service: Service) -> None:
    job = await house.submit(short("moves", replicas=2, devices=4), user="ada")
    await house.until(job, "running")
    why = "The cables are new."
    cordon = Cordon("local/node0", "root", why, house.clock.now(), Drain.NOW)
    await house.store.put_cordon(cordon)
    assert await receipt_of(house, job) == f"The node local/node0 is being drained by root: {why}"
    record = await house.when(job, lambda found: found.phase == "waiting" and found.summary.waiting is not None)
    assert record.summary.waiting is not None
    well_said(record.summary.waiting.message)


async def test_a_job_that_depends_on_others_names_them(house: House, service: Service) -> None:
    prepare = await house.submit(short("prepare", devices=1), user="ada")
    await house.until(prepare, "running")
    made = await service.submission.submit(Actor("ada"), short("train", after=["prepare"]).encode())
    assert made.detail is not None
    record = await house.when(
        JobId(made.detail.id), lambda found: "prepare" in str(found.summary.waiting and found.summary.waiting.message)
    )
    assert record.summary.waiting is not None
    assert record.summary.waiting.message == "Waits for prepare to succeed."


async def test_a_member_of_an_array_says_that_maxparallel_holds_it(house: House, service: Service) -> None:
    array = {"size": 4, "maxParallel": 2}
    made = await service.submission.submit(Actor("ada"), short("seeds", devices=1, array=array).encode())
    assert made.detail is not None
    said = "Waits for seeds-0 to end: of its array 2 may run at once (maxParallel)."
    found = await house.store.find_job("seeds-2", "ada")
    assert found is not None and found.summary.waiting is not None and found.summary.waiting.message == said
    first = await house.store.find_job("seeds-0", "ada")
    assert first is not None
    await house.until(first.id, "running")
    found = await house.when(found.id, lambda record: record.revision > 0)
    assert found.summary.waiting is not None and found.summary.waiting.message == said
    assert (await service.explanations.explain(Actor("ada"), "seeds-2")).message == said
