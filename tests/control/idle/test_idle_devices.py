"""Idle devices: warned, extended, then taken by the same intents as people's, with receipts, or only reported."""

from __future__ import annotations

import pytest

from corral.control.idle.keeper import IDLE, SETTLE_SECONDS, IdleKeeper
from corral.control.initial_configuration import seed
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId, attempt_id
from corral.model.accounts import AuditFilter
from corral.model.idle.machine import IdleState, Spell
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TaskMetric
from corral.model.receipts import Receipt
from corral.model.runs import WorkReport
from corral.model.store_writes import IntentKind
from corral.spec.configuration_file import load_document
from tests.control.harness import House, short

HOUR = 3600.0
RULE = (
    "kind: Queue\nname: lab\nidle: {for: 2h, grace: 1h, action: ACTION}\n---\nkind: Queue\nname: below\nparent: lab\n"
)


class Watched:
    """A running control with a keeper, whose clock and figures a test sets."""

    def __init__(self, house: House) -> None:
        self.house, self.store = house, house.store
        self.clock = VirtualClock(house.clock.now())
        self.use: dict[JobId, list[float]] = {}
        self.keeper = self.new_keeper()

    def new_keeper(self) -> IdleKeeper:
        return IdleKeeper(self.house.control, self.samples, self.clock)

    def samples(self) -> Samples:
        return Samples(
            tuple(
                Value(TaskMetric.DEVICE, ("ada", "ada~j", "worker", str(at), job, "lab", str(at)), use)
                for job, uses in self.use.items()
                for at, use in enumerate(uses)
            )
        )

    async def look(self, *hours: float) -> None:
        """Look after each of these hours."""
        for each in hours:
            self.clock.advance(each * HOUR)
            await self.keeper.look()

    async def running(self, text: str, *use: float) -> JobId:
        job = await self.house.submit(text)
        await self.house.until(job, "running")
        self.use[job] = list(use)
        return job

    async def told(self, job: JobId) -> dict[str, str]:
        return {each.kind: each.message for each in await self.store.events_of(job)}

    async def receipts(self, job: JobId) -> list[Receipt]:
        return list((await self.store.receipts(job=job)).items)

    async def spell(self, job: JobId) -> Spell | None:
        return (await self.store.open_spells()).get(job)


async def watched(house: House, rule: str = RULE, action: str = "stop") -> Watched:
    await seed(house.store, load_document(rule.replace("ACTION", action)), file="site.yaml", clock=house.clock)
    await house.begin()
    return Watched(house)


async def test_a_job_is_warned_then_stopped_with_a_receipt_and_busy_ones_are_left_alone(house: House) -> None:
    site = await watched(house)
    idle = await site.running(short("idle", devices=2, queue="below"), 0.0, 1.0)
    busy = await site.running(short("busy", devices=1, queue="lab"), 90.0)
    elsewhere = await site.running(short("elsewhere", devices=1), 0.0)
    await site.look(0, 1.9)
    assert await site.spell(idle) is None, "nobody was told of it yet"
    await site.look(0.1)
    assert "4.0 device-hours are wasted. The job is stopped in 1h" in (await site.told(idle))["job.idle-warned"]
    await site.look(1, 0.01)
    async with house.patience():
        await house.until(idle, "stopped")
    (receipt,) = await site.receipts(idle)
    assert (receipt.rule, receipt.devices) == ("idle", 2) and "2 of its 2 devices" in receipt.message
    (line,) = (await site.store.audit(AuditFilter(actor=IDLE))).items
    assert (line.action, line.resource, line.rule) == ("job.stop", f"job:{idle}", "idle-rule")
    await site.look(0.01)
    (row,) = await site.store.idle_rows()
    assert (row.job, row.open) == (idle, False) and row.spell.wasted_before == pytest.approx(6 * HOUR)
    for job in (busy, elsewhere):
        record = await site.store.find_job(job)
        assert record is not None and record.phase == "running"
        assert not [kind for kind in await site.told(job) if "idle" in kind]


async def test_a_suspended_job_is_resumed_and_begins_anew(house: House) -> None:
    site = await watched(house, action="suspend")
    job = await site.running(short("idle", devices=1, queue="lab"), 0.0)
    await site.look(0, 2, 1)
    async with house.patience():
        await house.when(job, lambda record: record.run.suspended and record.phase == "waiting")
    assert [each.rule for each in await site.receipts(job)] == ["idle"]
    await site.store.add_intent(job, IntentKind.RESUME, actor="ada", at=1.0)
    async with house.patience():
        await house.until(job, "running")
    await site.look(0, 1.9)
    spell = await site.spell(job)
    assert spell is not None and (spell.state, spell.attempt) == (IdleState.IDLE, 1)


async def test_an_elastic_job_shrinks_to_its_minimum_and_others_are_warned_only(house: House) -> None:
    site = await watched(house, action="shrink")
    elastic = await site.running(short("wide", replicas={"min": 1, "max": 3}, devices=1, queue="lab"))
    async with house.patience():
        await house.when(elastic, lambda record: record.summary.tasks.running == 3)
    fixed = await site.running(short("fixed", devices=1, queue="lab"), 0.0)
    site.use[elastic] = [0.0, 0.0, 0.0]
    await site.look(0, 2, 1)
    async with house.patience():
        await house.when(elastic, lambda record: record.summary.tasks.running == 1 and record.summary.tasks.total == 1)
    (receipt,) = await site.receipts(elastic)
    assert (receipt.rule, receipt.devices, len(receipt.tasks)) == ("idle", 2, 2)
    site.use[elastic] = [0.0]
    await site.look(5, 5)
    assert len(await site.receipts(elastic)) == 1, "it is done once"
    found = await site.store.find_job(fixed)
    assert found is not None and found.phase == "running"
    assert (await site.told(fixed))["job.idle-warned"].endswith("device-hours are wasted.")


async def test_the_owner_is_given_more_time_once(house: House) -> None:
    site = await watched(house)
    job = await site.running(short("idle", devices=1, queue="lab"), 0.0)
    extend = site.store.extend_idle
    with pytest.raises(Conflict, match="was not warned"):
        await extend(job, 2 * HOUR, "late", site.clock.now(), actor="ada", audit=None)
    await site.look(0, 2)
    await extend(job, 2 * HOUR, "the data is late", site.clock.now(), actor="ada", audit=None)
    await site.look(1.9, 0.05)
    assert (await site.told(job))["job.idle-extended"] == "ada asked for more time: the data is late"
    record = await site.store.find_job(job)
    assert record is not None and record.phase == "running"
    with pytest.raises(Conflict, match="done once"):
        await extend(job, 2 * HOUR, "again", site.clock.now(), actor="ada", audit=None)
    await site.look(0.1, 1)
    async with house.patience():
        await house.until(job, "stopped")


async def test_a_dry_run_reports_what_would_have_happened_and_does_nothing(house: House) -> None:
    policy = "kind: Policy\nname: default\nidle: {for: 2h, grace: 1h, action: stop, devices: any, dryRun: true}\n"
    site = await watched(house, policy)
    job = await site.running(short("idle", devices=2), 0.0, 99.0)
    await site.look(0, 2, 1, 5)
    found = [each.message for each in (await site.store.events_of_server()).items if each.kind == "server.idle-dry-run"]
    assert ["warned" in each or "stopped" in each for each in found] == [True, True]
    assert any("would have been stopped: 1 of its 2 devices" in each for each in found)
    record = await site.store.find_job(job)
    assert record is not None and record.phase == "running" and not [k for k in await site.told(job) if "idle" in k]
    spell = await site.spell(job)
    assert spell is not None and spell.dry_run


async def test_a_job_that_reports_that_somebody_works_in_it_is_busy(house: House) -> None:
    site = await watched(house)
    job = await site.running(short("notebook", devices=1, queue="lab"), 0.0)
    report = WorkReport(site.clock.now() + 2 * HOUR, active=1.0)
    assert await site.store.work_reported(attempt_id(job, 0, "worker", 0, 0), report)
    await house.when(job, lambda record: record.run.report is not None)
    await site.look(0, 2)
    assert "job.idle-warned" not in await site.told(job)
    await site.look(0.5, 2)
    assert "job.idle-warned" in await site.told(job), "the report is old"


async def test_spells_outlive_a_restart_and_wait_for_the_first_figures(house: House) -> None:
    site = await watched(house)
    job = await site.running(short("idle", devices=1, queue="lab"), 0.0)
    await site.look(0, 2)
    site.keeper, site.use = site.new_keeper(), {}
    await site.look(0.01)
    spell = await site.spell(job)
    assert spell is not None and spell.state == IdleState.WARNED
    await site.look(SETTLE_SECONDS / HOUR)
    assert (await site.told(job))["job.idle-over"].startswith("Its devices are in use again")


async def test_what_fails_is_logged_and_looked_at_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    site = await watched(house)
    job = await site.running(short("idle", devices=1, queue="lab"), 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(site.keeper, "_samples", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await site.keeper.look()
    await site.look(0, 2)
    assert "job.idle-warned" in await site.told(job)
