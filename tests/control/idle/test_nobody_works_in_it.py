"""A job with `idle` is suspended when its tasks say for long enough that nobody works in them, and no sooner."""

from __future__ import annotations

from corral.control.idle.rules import terms_for
from corral.kernel.ids import JobId, attempt_id
from corral.model.idle.machine import Action, IdleTerms
from corral.model.runs import WorkReport
from corral.model.store_writes import IntentKind
from tests.control.harness import House, short
from tests.control.idle.test_idle_devices import HOUR, Watched, watched

OTHER = "kind: Queue\nname: lab\n---\nkind: Queue\nname: other\n"


async def report(site: Watched, job: JobId, active: float, attempt: int = 0) -> None:
    """Let the job's task say whether somebody works in it, as it does again and again."""
    told = WorkReport(site.clock.now(), active=active)
    assert await site.store.work_reported(attempt_id(job, attempt, "worker", 0, 0), told)
    await site.house.when(job, lambda record: record.run.report is not None and record.run.report.at == told.at)


async def look(site: Watched, job: JobId, active: float, *hours: float) -> None:
    for each in hours:
        site.clock.advance(each * HOUR)
        await report(site, job, active)
        await site.keeper.look()


async def test_a_job_without_devices_is_warned_and_suspended_and_goes_on_in_another_queue(house: House) -> None:
    site = await watched(house, OTHER)
    job = await site.running(short("lab", queue="lab", idle="1h"))
    await look(site, job, 0.0, 0, 0.9)
    assert "job.idle-warned" not in await site.told(job)
    await look(site, job, 0.0, 0.02)
    said = (await site.told(job))["job.idle-warned"]
    assert said.startswith("It reported no work for 5") and "suspended in 5m unless it reports work" in said
    await look(site, job, 0.0, 0.1)
    async with house.patience():
        await house.when(job, lambda record: record.run.suspended and record.phase == "waiting")
    (receipt,) = await site.receipts(job)
    assert receipt.rule == "idle" and receipt.message.startswith("It reported no work for 1h")
    edit: dict[str, object] = {"queue": "other", "judged": {"queue": "lab", "priority": 10}}
    await site.store.add_intent(job, IntentKind.EDIT, edit, actor="ada", at=1.0)
    await site.store.add_intent(job, IntentKind.RESUME, actor="ada", at=1.0)
    async with house.patience():
        await house.until(job, "running")
    record = await site.store.find_job(job)
    assert record is not None and (record.queue, record.run.suspended) == ("other", False)


async def test_somebody_who_works_a_busy_device_and_silence_keep_it(house: House) -> None:
    site = await watched(house, OTHER)
    job = await site.running(short("lab", devices=1, queue="lab", idle="1h"), 0.0)
    await look(site, job, 0.0, 0, 0.9)
    await look(site, job, 1.0, 0.01)
    await look(site, job, 0.0, 0.01, 0.9)
    site.use[job] = [80.0]
    await look(site, job, 0.0, 0.01)
    site.use[job] = [0.0]
    await look(site, job, 0.0, 0.01, 0.9)
    await site.look(5)
    assert await site.receipts(job) == []
    record = await site.store.find_job(job)
    assert record is not None and record.phase == "running"


def test_a_queue_that_acts_sooner_comes_first() -> None:
    warns = IdleTerms(5.0, 600.0, Action.WARN, 0.0)
    stops = IdleTerms(5.0, 600.0, Action.STOP, 600.0)
    assert terms_for(0, stops) is stops and terms_for(0, None) is None
    assert terms_for(3600, stops) is stops
    for own in (terms_for(900, stops), terms_for(3600, warns), terms_for(3600, stops._replace(dry_run=True))):
        assert own is not None and own.unattended and own.action is Action.SUSPEND
    own = terms_for(600, None)
    assert own is not None and (own.seconds, own.grace_seconds) == (500.0, 100.0)
