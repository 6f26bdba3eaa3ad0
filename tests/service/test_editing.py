"""Owners, queue managers and administrators edit waiting jobs under the rules of a submission."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.kernel.ids import JobId
from corral.model.accounts import Group, QueueRecord
from corral.model.inventory import Node
from corral.model.kubernetes_objects import Birth, ObjectRef
from corral.model.store_writes import IntentKind
from corral.service.actor import Actor
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT, FakeControl, job_text
from tests.service.test_jobs import FAILED, _run


@pytest.fixture
async def teams(service: Service, store: Store) -> Service:
    """Ann is a member of `vision` and may use crit there; bob manages it; nobody may use `secret`."""
    queues = {
        "default": {},
        "vision": {"maxPriority": 200},
        "night": {"maxPriority": 5},
        "secret": {"membersOnly": True},
    }
    await store.put_queues([QueueRecord(name, said) for name, said in queues.items()])
    await store.put_group(Group("members", queues=("vision", "night"), max_priority=120))
    await store.put_group(Group("leads", manages=("vision",)))
    await service.groups.change(ROOT, "members", add=("ann",))
    await service.groups.change(ROOT, "leads", add=("bob",))
    return service


async def ann(service: Service) -> Actor:
    return await service.authentication.account("ann")


async def bob(service: Service) -> Actor:
    return await service.authentication.account("bob")


async def submitted(service: Service, name: str = "digits", queue: str = "default", more: str = "") -> str:
    made = await service.submission.submit(await ann(service), job_text(name, more=f"queue: {queue}\n{more}"))
    assert made.detail is not None
    return made.detail.id


async def asked(store: Store) -> list[dict[str, Any]]:
    asked = [intent.data for intent in await store.intents(0) if intent.kind == IntentKind.EDIT]
    return [{field: value for field, value in each.items() if field != "judged"} for each in asked]


async def test_an_edit_is_handed_to_control_and_audited_with_old_and_new(teams: Service, store: Store) -> None:
    job = await submitted(teams)
    terms = {"priority": "prod", "max_duration": "1h30m", "queue": "vision"}
    view = await teams.job_editor.edit(await ann(teams), job, **terms)  # type: ignore[arg-type]
    assert [msgspec.structs.astuple(change) for change in view.changes] == [
        ("priority", "10", "100"),
        ("maxDuration", "no limit", "1h30m"),
        ("queue", "default", "vision"),
    ]
    assert await asked(store) == [{"priority": "prod", "maxDurationSeconds": 5400, "queue": "vision"}]
    line = (await store.audit()).items[0]
    assert (line.actor, line.action, line.resource, line.rule) == ("ann", "job.edit", f"job:{job}", "job-owner")
    assert line.detail == {
        "priority": {"from": "10", "to": "100"},
        "maxDuration": {"from": "no limit", "to": "1h30m"},
        "queue": {"from": "default", "to": "vision"},
    }


async def test_a_dry_run_and_what_is_so_already_store_nothing(teams: Service, store: Store) -> None:
    job, caller = await submitted(teams), await ann(teams)
    before = len((await store.audit()).items)
    view = await teams.job_editor.edit(caller, job, priority="prod", dry_run=True)
    assert view.dry_run and len(view.changes) == 1
    assert (await teams.job_editor.edit(caller, job, priority=10, max_duration=0, queue="default")).changes == ()
    with pytest.raises(Forbidden, match="Priority 121 is too high"):
        await teams.job_editor.edit(caller, job, priority=121, dry_run=True)
    assert await asked(store) == [] and len((await store.audit()).items) == before


async def test_strangers_may_not_and_managers_and_administrators_may(teams: Service, store: Store) -> None:
    job = await submitted(teams, queue="vision")
    await teams.job_editor.edit(await bob(teams), job, priority="oppo")
    line = next(each for each in (await store.audit()).items if each.action == "job.edit")
    assert (line.actor, line.rule) == ("bob", "queue-manager")
    await teams.job_editor.edit(ROOT, job, priority=150)
    other = await submitted(teams, "elsewhere")
    with pytest.raises(Forbidden, match="bob may not edit the job elsewhere of ann"):
        await teams.job_editor.edit(await bob(teams), other, priority="oppo")
    assert "edit" in (await teams.jobs.get(await bob(teams), job)).allowed
    assert "edit" not in (await teams.jobs.get(await bob(teams), other)).allowed


async def test_a_manager_gives_no_more_than_the_owner_may_have_and_moves_to_queues_of_their_own_alone(
    teams: Service,
) -> None:
    job = await submitted(teams, queue="vision")
    with pytest.raises(Forbidden, match="too high for ann in queue vision: the maxPriority of group members is 120"):
        await teams.job_editor.edit(await bob(teams), job, priority=121)
    with pytest.raises(Forbidden, match="bob does not manage the queue default"):
        await teams.job_editor.edit(await bob(teams), job, queue="default")


async def test_the_limits_of_a_submit_hold(teams: Service, store: Store) -> None:
    caller = await ann(teams)
    job = await submitted(teams, queue="vision", more="priority: prod\n")
    with pytest.raises(Forbidden, match="the maxPriority of group members is 120"):
        await teams.job_editor.edit(caller, job, priority=121)
    with pytest.raises(
        Forbidden, match="Priority 100 is too high for ann in queue night: the maxPriority of queue night"
    ):
        await teams.job_editor.edit(caller, job, queue="night")
    assert (await teams.job_editor.edit(caller, job, queue="night", priority=5)).changes
    with pytest.raises(Forbidden, match="queue-not-granted"):
        await teams.job_editor.edit(caller, job, queue="secret")
    with pytest.raises(InvalidInput, match="no queue"):
        await teams.job_editor.edit(caller, job, queue="visoin")
    await store.put_queues([QueueRecord("vision"), QueueRecord("default", {"closed": True})])
    with pytest.raises(Conflict, match="takes no new jobs"):
        await teams.job_editor.edit(caller, job, queue="default")


async def test_a_priority_above_the_ceiling_may_stay_and_go_down(teams: Service, store: Store) -> None:
    made = await teams.submission.submit(ANN, job_text("import", more="priority: 500\n"), own_priority=True)
    assert made.detail is not None
    await teams.job_editor.edit(ANN, made.detail.id, max_duration="2h")
    await teams.job_editor.edit(ANN, made.detail.id, priority=400)
    with pytest.raises(Forbidden, match="100 is the most without a grant"):
        await teams.job_editor.edit(ANN, made.detail.id, priority=501)
    assert await asked(store) == [{"maxDurationSeconds": 7200}, {"priority": "400"}]


async def test_a_queue_that_makes_the_job_impossible_is_refused_by_its_limit(
    teams: Service, store: Store, fake_control: FakeControl, machines: list[Node]
) -> None:
    await store.put_queues([QueueRecord("default"), QueueRecord("narrow", {"limit": {"devices": "1"}})])
    caller = await ann(teams)
    made = await teams.submission.submit(caller, job_text("wide", devices=2))
    assert made.detail is not None
    said = "The limit of queue narrow is 1 device, and the job needs 2."
    fake_control.answers["/fit"] = {"binding": {"code": "limit", "message": said, "counts": {}}}
    with pytest.raises(Conflict, match=r"limit of queue narrow is 1 device.*--wait-for-capacity") as refused:
        await teams.job_editor.edit(caller, made.detail.id, queue="narrow")
    assert refused.value.code == "impossible-request"
    assert (await teams.job_editor.edit(caller, made.detail.id, priority="oppo")).changes, (
        "what stays is not judged again"
    )
    assert (await teams.job_editor.edit(caller, made.detail.id, queue="narrow", wait_for_capacity=True)).changes


@pytest.mark.parametrize("end", [None, FAILED])
async def test_a_job_that_runs_or_is_over_is_refused(service: Service, store: Store, epoch: int, end: Any) -> None:
    made = await service.submission.submit(ANN, job_text())
    assert made.detail is not None
    await _run(store, epoch, JobId(made.detail.id), end=end)
    with pytest.raises(Conflict, match=r"does not wait .*only waiting jobs take other terms") as refused:
        await service.job_editor.edit(ANN, made.detail.id, priority="prod")
    assert refused.value.code == "job-not-waiting"


async def test_a_job_that_follows_an_object_is_changed_there(service: Service) -> None:
    birth = Birth(ObjectRef("UnifiedJob", "ml", "digits", "uid-1"), "print")
    made = await service.submission.submit(ANN, job_text(), birth=birth)
    assert made.detail is not None
    with pytest.raises(Conflict, match="follows the object UnifiedJob ml/digits"):
        await service.job_editor.edit(ANN, made.detail.id, priority="prod")
    assert "edit" not in (await service.jobs.get(ANN, made.detail.id)).allowed


@pytest.mark.parametrize(
    ("terms", "error", "says"),
    [
        ({}, InvalidInput, "Name at least one change"),
        ({"max_duration": "soon"}, InvalidInput, "90s, 30m, 2h"),
        ({"max_duration": "-1"}, InvalidInput, "90s, 30m, 2h"),
        ({"max_duration": "9999d"}, SpecError, "maxDurationSeconds"),
        ({"priority": "prodd"}, SpecError, "prod"),
        ({"priority": 10**12}, SpecError, "priority"),
        ({"queue": "no such queue"}, SpecError, "spec.queue"),
    ],
)
async def test_bad_terms_are_refused_in_one_sentence(
    service: Service, store: Store, terms: dict[str, Any], error: type[Exception], says: str
) -> None:
    made = await service.submission.submit(ANN, job_text())
    assert made.detail is not None
    with pytest.raises(error, match=says):
        await service.job_editor.edit(ANN, made.detail.id, **terms)
    with pytest.raises(Forbidden):
        await service.job_editor.edit(BOB, made.detail.id, **terms)
    assert await asked(store) == []


async def test_a_refused_queue_is_noted_as_the_managers_who_asked_for_it(teams: Service, store: Store) -> None:
    await store.put_group(Group("keepers", manages=("secret",)))
    await teams.groups.change(ROOT, "keepers", add=("bob",))
    job = await submitted(teams, queue="vision")
    with pytest.raises(Forbidden):
        await teams.job_editor.edit(await bob(teams), job, queue="secret")
    line = (await store.audit()).items[0]
    assert (line.actor, line.resource, line.allowed, line.detail["of"]) == ("bob", "queue:secret", False, "ann")


async def test_a_guest_that_wants_its_queues_own_cells_is_held_against_them(
    teams: Service, store: Store, fake_control: FakeControl, machines: list[Node]
) -> None:
    caller = await ann(teams)
    made = await teams.submission.submit(caller, job_text("wide", devices=2, more="priority: oppo\n"))
    assert made.detail is not None
    said = "Queue default owns room for 1 of 2 devices."
    fake_control.answers["/fit"] = {"binding": {"code": "own-cells", "message": said, "counts": {}}}
    with pytest.raises(Conflict, match="owns room for 1") as refused:
        await teams.job_editor.edit(caller, made.detail.id, priority="test")
    assert refused.value.code == "impossible-request"
