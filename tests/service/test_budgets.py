"""Budgets: who sees and changes them, and where a job that would exceed one is refused."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.accounts import QueueRecord
from corral.model.budgets import HOUR, window_of
from corral.model.records import rfc3339
from corral.model.usage import Use
from corral.service.service import Service
from tests.service.conftest import ANN, BOB, ROOT, START
from tests.store.makers import ME, batch, ended


def asking(hours: int, name: str = "digits", devices: int = 2) -> str:
    """A job of some devices that may run for some hours."""
    return (
        f"name: {name}\nmaxDuration: {hours}h\nroles:\n  worker:\n    command: [x]\n"
        f"    resources: {{cpu: 1, devices: {devices}}}\n"
    )


async def test_administrators_change_budgets_and_each_change_is_in_the_audit_log(service: Service) -> None:
    made = await service.budgets.set(ROOT, "queue", "default", "week", 100.0)
    assert (made.allowed, made.left, made.state, made.warn_at) == (100.0, 100.0, "open", 0.8)
    assert (made.set_by, made.set_at) == ("root", rfc3339(service.context.clock.now()))
    more = await service.budgets.top_up(ROOT, "queue", "default", "week", 20.0, reason=" the paper's\ndeadline ")
    assert more.allowed == 120.0
    (added,) = more.top_ups
    assert (added.device_hours, added.actor, added.reason) == (20.0, "root", "the paper's deadline")
    await service.budgets.remove(ROOT, "queue", "default", "week")
    assert (await service.budgets.list(ROOT)).items == ()
    lines = (await service.audit_log.page(ROOT)).items
    changes = [(line.resource, line.detail["change"]) for line in lines if line.action == "budget.change"]
    assert changes == [("budget:queue/default/week", each) for each in ("remove", "top-up", "set")]
    why = next(line.detail["why"] for line in lines if line.detail.get("change") == "top-up")
    assert why == "the paper's deadline"
    for refused in (
        service.budgets.set(ANN, "user", "ann", "week", 1e6),
        service.budgets.top_up(ANN, "user", "ann", "week", 1.0, reason="please"),
        service.budgets.remove(ANN, "user", "ann", "week"),
    ):
        with pytest.raises(Forbidden, match="administrators"):
            await refused


async def test_others_see_the_budgets_of_queues_and_their_own(service: Service) -> None:
    for kind, name in (("queue", "default"), ("user", "ann"), ("user", "bob")):
        await service.budgets.set(ROOT, kind, name, "month", 10.0)
    assert [each.name for each in (await service.budgets.list(ROOT)).items] == ["default", "ann", "bob"]
    assert [each.name for each in (await service.budgets.list(BOB)).items] == ["default", "bob"]


async def test_what_is_no_budget_is_refused(service: Service) -> None:
    budgets = service.budgets
    with pytest.raises(InvalidInput, match="for a day, week, month; not group and year"):
        await budgets.set(ROOT, "group", "g", "year", 1.0)
    with pytest.raises(InvalidInput, match="above 0 and at most"):
        await budgets.set(ROOT, "queue", "default", "day", float("nan"))
    with pytest.raises(InvalidInput, match="share from which to warn"):
        await budgets.set(ROOT, "queue", "default", "day", 1.0, warn_at=2.0)
    with pytest.raises(NotFound, match="no queue nowhere"):
        await budgets.set(ROOT, "queue", "nowhere", "day", 1.0)
    with pytest.raises(NotFound, match="no user nobody"):
        await budgets.set(ROOT, "user", "nobody", "day", 1.0)
    with pytest.raises(NotFound, match="no budget queue/default/day"):
        await budgets.top_up(ROOT, "queue", "default", "day", 1.0, reason="why")
    with pytest.raises(InvalidInput, match="Say why"):
        await budgets.top_up(ROOT, "queue", "default", "day", 1.0, reason="  ")
    with pytest.raises(NotFound, match="no budget queue/default/day"):
        await budgets.remove(ROOT, "queue", "default", "day")


async def test_a_job_that_would_exceed_is_refused_as_its_trial_is_and_fits_with_less_time(service: Service) -> None:
    await service.budgets.set(ROOT, "queue", "default", "week", 10.0, warn_at=0.5)
    for dry_run in (True, False):
        with pytest.raises(Conflict) as refused:
            await service.submission.submit(ANN, asking(6), dry_run=dry_run, wait_for_capacity=True)
        assert refused.value.code == "budget-used-up"
        assert "has 10.0 of 10.0 device-hours left, and this may use 12.0" in refused.value.message
    trial = (await service.submission.submit(ANN, asking(4), dry_run=True, wait_for_capacity=True)).trial
    assert trial is not None and any("is 80 % used with this job" in note for note in trial.notes)
    made = await service.submission.submit(ANN, asking(4), wait_for_capacity=True)
    assert made.detail is not None
    assert "The budget of queue default for this week is 80 % used with this job: 8.0 of 10.0 device-hours." in (
        made.detail.notes
    )
    (stands,) = (await service.budgets.list(ANN)).items
    assert (stands.promised, stands.left, stands.state) == (8.0, 2.0, "warned")


async def test_what_was_used_is_summed_at_most_every_ten_seconds_and_anew_in_each_window(
    service: Service, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.budgets.set(ROOT, "queue", "default", "day", 100.0)
    summed: list[float] = []

    def used_in(*asked: Any) -> Use:
        summed.append(clock.now() - START)
        return Use(device_seconds=HOUR)

    monkeypatch.setattr("corral.store.budget_records.used_in", used_in)
    midnight = window_of("day", START)[1] - START
    for at in (0.0, 9.9, 10.0, midnight - 1.0, midnight + 1.0):
        clock.advance(START + at - clock.now())
        (stands,) = await service.budgets.of_job("default", "ann")
        assert stands.used == HOUR
    assert summed == pytest.approx([0.0, 10.0, midnight - 1.0, midnight + 1.0])
    await service.budgets.list(ANN)
    assert len(summed) == 5, "people see what is used now"


async def test_an_array_counts_all_its_jobs(service: Service) -> None:
    await service.budgets.set(ROOT, "user", "ann", "month", 10.0)
    array = asking(1) + "array: {size: 6}\n"
    for dry_run in (True, False):
        with pytest.raises(Conflict, match=re.escape("The budget of user ann for this month has 10.0")):
            await service.submission.submit(ANN, array, dry_run=dry_run, wait_for_capacity=True)
    assert await service.context.store.load_live() == []
    await service.submission.submit(BOB, array, wait_for_capacity=True)


async def test_a_waiting_job_cannot_be_edited_beyond_a_budget(service: Service) -> None:
    await service.context.store.put_queues([QueueRecord("default"), QueueRecord("free"), QueueRecord("small")])
    await service.budgets.set(ROOT, "queue", "default", "week", 10.0)
    await service.budgets.set(ROOT, "queue", "small", "week", 1.0)
    made = await service.submission.submit(ANN, asking(4), wait_for_capacity=True)
    assert made.detail is not None
    edit: dict[str, Any] = {"wait_for_capacity": True, "dry_run": True}
    with pytest.raises(Conflict, match=re.escape("has 2.0 of 10.0 device-hours left, and this may use 4.0")):
        await service.job_editor.edit(ANN, made.detail.id, max_duration="6h", **edit)
    with pytest.raises(Conflict, match=re.escape("The budget of queue small for this week has 1.0")):
        await service.job_editor.edit(ANN, made.detail.id, queue="small", **edit)
    assert (await service.job_editor.edit(ANN, made.detail.id, max_duration="5h", **edit)).changes
    assert (await service.job_editor.edit(ANN, made.detail.id, queue="free", **edit)).changes


async def test_an_ended_job_cannot_begin_anew_beyond_a_budget(service: Service, clock: VirtualClock) -> None:
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    made = await service.submission.submit(ANN, asking(4), wait_for_capacity=True)
    assert made.detail is not None
    live = await store.load_job(JobId(made.detail.id))
    assert live is not None
    await store.commit(batch(lease.epoch, jobs=(ended(live, at=START + 1),)))
    await service.budgets.set(ROOT, "queue", "default", "week", 7.0)
    with pytest.raises(Conflict, match=re.escape("has 7.0 of 7.0 device-hours left, and this may use 8.0")):
        await service.job_commands.restart(ANN, made.detail.id)
    await service.budgets.set(ROOT, "queue", "default", "week", 8.0)
    await service.job_commands.restart(ANN, made.detail.id)
    assert msgspec.json.encode(await service.budgets.list(ROOT))
