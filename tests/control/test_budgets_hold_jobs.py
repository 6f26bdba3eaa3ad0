"""Jobs whose budget is used up: held with a receipt, and free again in the next window or after a top-up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from corral.control.budget_keeper import BUDGETS, BudgetKeeper
from corral.kernel.clock import VirtualClock
from corral.kernel.ids import JobId
from corral.model.accounts import AuditFilter, AuditWrite
from corral.model.budgets import Budget, TopUp, window_of
from corral.model.launch import Exited
from corral.model.receipts import Receipt
from corral.model.store_writes import IntentKind, JobRecord
from corral.monitor.health.validation import TAG
from tests.control.harness import House, PaperEngine, short
from tests.control.test_taints_evict import Later

LINE = AuditWrite(0.0, "root", "budget.change", "budget:x", "administrator", True, {})


class Site:
    """A running control with a keeper, whose clock a test sets, and an engine whose tasks end at the present time."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        self.house, self.store = house, house.store
        house.engine.started_at = house.clock.now() - 3600.0
        over = house.engine._over

        def ended_now(event: Exited) -> None:
            over(msgspec.structs.replace(event, at=house.clock.now()))

        monkeypatch.setattr(house.engine, "_over", ended_now)
        self.clock = VirtualClock(house.clock.now())
        self.keeper = BudgetKeeper(house.control, "root", self.clock)

    async def budget(self, hours: float, then: str = "hold", name: str = "ada") -> None:
        """Set the budget of a user, in each month."""
        await self.store.put_budget(Budget("user", name, "month", hours, 0.8, 0.0, "root", then), LINE)

    async def look(self) -> None:
        """Look until control has carried out what the keeper asked for."""
        await self.keeper.look()

    async def running(self, name: str, **more: object) -> JobId:
        user = str(more.pop("user", "ada"))
        job = await self.house.submit(short(name, **{"devices": 1, **more}), user=user)  # type: ignore[arg-type]
        await self.house.until(job, "running")
        return job

    async def held(self, job: JobId) -> JobRecord:
        return await self.house.when(job, lambda record: record.run.hold == "budget" and record.phase == "waiting")

    async def receipts(self, job: JobId) -> list[Receipt]:
        return list((await self.store.receipts(job=job)).items)

    async def told(self, job: JobId, kind: str) -> list[str]:
        return [each.message for each in await self.store.events_of(job) if each.kind == kind]


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A control, not yet started, some hours after the month began, so that all use of its tasks is of this month."""
    made = House(tmp_path, PaperEngine(nodes=1))
    clock = Later(made)
    clock.advance(max(0.0, window_of("month", clock.now())[0] + 4 * 3600.0 - clock.now()))
    made.clock = clock  # type: ignore[assignment]
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def site(house: House, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    await house.begin()
    yield Site(house, monkeypatch)


async def test_what_runs_is_held_with_a_receipt_and_what_waits_with_a_reason_until_a_top_up(site: Site) -> None:
    job = await site.running("spender", devices=2)
    waiting = await site.house.submit(short("patient", devices=4))
    free = await site.running("no-devices", devices=0)
    await site.house.explained(waiting)
    await site.budget(1.0)
    await site.look()
    record = await site.held(job)
    assert record.summary.waiting is not None and record.summary.waiting.code == "budget-used-up"
    assert "The budget of user ada for this month is used up (1.0 device-hours" in record.summary.waiting.message
    assert record.summary.waiting.message.endswith("or when an administrator adds to the budget.")
    (receipt,) = await site.receipts(job)
    assert (receipt.rule, receipt.devices) == ("budget", 2) and "budget of user ada" in receipt.message
    assert ["budget of user ada" in said for said in await site.told(job, "job.held")] == [True]
    lines = (await site.store.audit(AuditFilter(actor=BUDGETS))).items
    assert {(each.action, each.resource, each.rule) for each in lines} == {
        ("job.suspend", f"job:{job}", "budget"), ("job.suspend", f"job:{waiting}", "budget"),
    }  # fmt: skip
    await site.held(waiting)
    assert await site.receipts(waiting) == []
    found = await site.store.find_job(free)
    assert found is not None and found.phase == "running"
    before = len(await site.store.events_of(job))
    await site.look()
    assert len(await site.store.events_of(job)) == before, "nothing is asked for twice"
    begin, _ = window_of("month", site.clock.now())
    await site.store.top_up("user", "ada", "month", begin, TopUp(1000.0, site.clock.now(), "root", "a paper"), LINE)
    await site.look()
    await site.house.until(job, "running")
    assert await site.told(job, "job.released")
    assert (await site.receipts(job))[0].returned_at is not None


async def test_a_held_job_goes_on_in_the_next_window_through_a_restart_of_control(site: Site) -> None:
    job = await site.running("spender")
    await site.budget(0.5)
    await site.look()
    await site.held(job)
    await site.house.abandon()
    await site.house.begin()
    site.keeper = BudgetKeeper(site.house.control, "root", site.clock)
    await site.look()
    await site.held(job)
    assert len(await site.told(job, "job.held")) == 1
    site.clock.advance(32 * 86_400.0)
    await site.look()
    await site.house.until(job, "running")


async def test_a_budget_that_warns_tells_each_owner_once_and_holds_nothing(site: Site) -> None:
    job, other = await site.running("spender"), await site.running("elsewhere", user="bob")
    await site.budget(0.5, "warn")
    await site.look()
    await site.look()
    (said,) = await site.told(job, "job.budget-used-up")
    assert "budget of user ada" in said and said.endswith("The job runs on, and new ones are refused.")
    record = await site.store.find_job(job)
    assert record is not None and record.phase == "running" and await site.receipts(job) == []
    assert await site.told(other, "job.budget-used-up") == []


async def test_a_removed_budget_frees_its_jobs_and_the_servers_own_jobs_are_never_held(site: Site) -> None:
    job = await site.running("spender")
    own = await site.running("validate", user="root")
    await site.store.add_intent(own, IntentKind.TAGS, {"tags": [TAG]}, actor="root", at=1.0)
    await site.house.when(own, lambda record: record.summary.tags == (TAG,))
    for name in ("ada", "root"):
        await site.budget(0.5, name=name)
    await site.look()
    await site.held(job)
    await site.store.add_intent(job, IntentKind.RESUME, actor="ada", at=1.0)
    await site.store.remove_budget("user", "ada", "month", LINE)
    record = await site.store.find_job(own)
    assert record is not None and record.phase == "running"
    await site.look()
    await site.house.until(job, "running")
