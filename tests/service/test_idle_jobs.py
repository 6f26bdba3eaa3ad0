"""Who sees jobs with idle devices, who is given more time, and what an idle rule may say."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput
from corral.model.accounts import AuditFilter
from corral.model.idle.machine import IdleState, Spell
from corral.model.records import rfc3339
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store.idle_records import IdleChange
from tests.service.conftest import ANN, ROOT, START, FakeControl
from tests.store.makers import ME, batch, ended, new_job

HOUR = 3600.0
RULES = "kind: Queue\nname: lab\nidle: {for: 3h}\n---\nkind: Queue\nname: below\nparent: lab\n"


@pytest.fixture(autouse=True)
def checked(fake_control: FakeControl) -> None:
    """Control has no objection to any document."""
    fake_control.answers["/configuration/check"] = []


async def warned(service: Service, queue: str = "below", **more: object) -> str:
    """A job of Ann whose owner was warned; its id."""
    store = service.context.store
    job = new_job(user="ann", queue=queue)
    await store.submit(job)
    now = service.context.clock.now()
    spell = msgspec.structs.replace(Spell(IdleState.WARNED, 0, now - 3 * HOUR, 2, 2, warned_at=now), **more)
    await store.keep_idle([IdleChange(job.id, None, spell)], now, actor="idle-devices")
    return job.id


async def test_owners_managers_and_administrators_see_them_and_administrators_alone_dry_runs(service: Service) -> None:
    job = await warned(service)
    manager = msgspec.structs.replace(Actor("eve", token_id="t-eve"), manages=("below",))
    for actor in (ANN, ROOT, manager):
        (found,) = (await service.idle_jobs.list(actor)).items
        assert (found.job, found.state, found.idle, found.wasted_device_seconds) == (job, "warned", 2, 6 * HOUR)
    assert (await service.idle_jobs.list(Actor("bob", token_id="t-bob"))).items == ()
    await warned(service, dry_run=True)
    assert [len((await service.idle_jobs.list(actor)).items) for actor in (ROOT, ANN, manager)] == [2, 1, 1]


async def test_one_job_is_told_with_what_is_done_and_when(service: Service) -> None:
    await service.configuration.apply(ROOT, RULES)
    now = service.context.clock.now()
    job = await warned(service, action="suspend", acts_at=now + HOUR)
    await warned(service)
    assert len((await service.idle_jobs.list(ANN)).items) == 2
    (found,) = (await service.idle_jobs.list(ANN, job=job)).items
    assert (found.job, found.action, found.acts_at) == (job, "suspend", rfc3339(now + HOUR))
    assert (await service.idle_jobs.list(Actor("bob", token_id="t-bob"), job=job)).items == ()
    later = await service.idle_jobs.extend(ANN, job, "the data is late")
    assert later.acts_at == rfc3339(now + 4 * HOUR), "three hours more, and the grace"


async def test_the_owner_is_given_as_much_time_as_the_rule_that_holds_allows(service: Service) -> None:
    await service.configuration.apply(ROOT, RULES)
    job = await warned(service)
    now = service.context.clock.now()
    found = await service.idle_jobs.extend(ANN, job, "the data\n is late")
    assert (found.state, found.reason, found.extended_until) == (
        "extended",
        "the data is late",
        rfc3339(now + 3 * HOUR),
    )
    (line,) = (await service.context.store.audit(AuditFilter(actor="ann"))).items
    assert (line.action, line.resource, line.allowed) == ("job.extend-idle", f"job:{job}", True)
    with pytest.raises(Conflict, match="that is done once"):
        await service.idle_jobs.extend(ROOT, job, "again")


async def test_the_policys_rule_holds_where_no_queue_says_anything(service: Service) -> None:
    await service.configuration.apply(ROOT, "kind: Policy\nname: default\nidle: {for: 5h}\n")
    job = await warned(service, queue="default")
    found = await service.idle_jobs.extend(ANN, job, "late")
    assert found.extended_until == rfc3339(service.context.clock.now() + 5 * HOUR)


@pytest.mark.parametrize("reason", ["", " \n\t", "x" * 501])
async def test_more_time_needs_a_reason(service: Service, reason: str) -> None:
    job = await warned(service)
    with pytest.raises(InvalidInput, match="at most 500 characters"):
        await service.idle_jobs.extend(ANN, job, reason)


async def test_others_jobs_and_jobs_that_are_over_or_not_warned_are_refused(service: Service) -> None:
    store = service.context.store
    job = await warned(service)
    for actor in (Actor("bob", token_id="t-bob"), msgspec.structs.replace(Actor("eve"), manages=("below",))):
        with pytest.raises(Forbidden):
            await service.idle_jobs.extend(actor, job, "why not")
    fresh = new_job(user="ann")
    await store.submit(fresh)
    with pytest.raises(Conflict, match="was not warned"):
        await service.idle_jobs.extend(ANN, fresh.id, "why not")
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, jobs=(ended(fresh, at=START),)))
    with pytest.raises(Conflict, match="is over already"):
        await service.idle_jobs.extend(ANN, fresh.id, "why not")
    await store.commit(batch(lease.epoch, removed_jobs=(fresh.id,)))


async def test_a_row_that_changed_since_it_was_read_is_left_as_it_is(service: Service) -> None:
    store, now = service.context.store, service.context.clock.now()
    job = await warned(service)
    (before,) = (await store.open_spells()).values()
    await service.idle_jobs.extend(ANN, job, "late")
    acted = IdleChange((await store.idle_rows())[0].job, before, msgspec.structs.replace(before, state="acted"))  # type: ignore[arg-type]
    assert await store.keep_idle([acted], now, actor="idle-devices") == []
    assert [each.state for each in (await store.open_spells()).values()] == ["extended"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{below: 101}", "idle.below"),
        ("{below: -1}", "idle.below"),
        ("{below: much}", "idle.below"),
        ("{for: 30s}", "for is at least 1m, got 30s"),
        ("{for: soon}", "idle.for"),
        ("{action: kill}", "idle.action"),
        ("{grace: -1h}", "idle.grace"),
        ("{devices: some}", "idle.devices"),
        ("{dryRun: maybe}", "idle.dryRun"),
        ("{belwo: 5}", "belwo"),
        ("yes", "idle"),
    ],
)
@pytest.mark.parametrize("document", ["kind: Queue\nname: lab\n", "kind: Policy\nname: default\n"])
async def test_a_broken_rule_is_refused_at_the_documents_door(
    service: Service, document: str, rule: str, said: str
) -> None:
    with pytest.raises(CorralError) as refused:
        await service.configuration.apply(ROOT, f"{document}idle: {rule}\n")
    assert said in refused.value.message or said in str(refused.value.details)


async def test_a_rule_is_shown_as_it_was_written(service: Service) -> None:
    text = (
        "kind: Queue\nname: lab\nidle: {below: 10, for: 1h, action: suspend, grace: 30m, devices: any, dryRun: true}\n"
    )
    await service.configuration.apply(ROOT, text)
    (queue,) = [each for each in await service.context.store.queues() if each.name == "lab"]
    assert queue.doc["idle"] == {
        "below": 10.0, "for": 3600, "action": "suspend", "grace": 1800, "devices": "any", "dryRun": True
    }  # fmt: skip
