"""Groups grant the use and the management of queues; managers see, stop, reorder and limit only their own queues' jobs."""

from __future__ import annotations

import pytest

from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.model.accounts import ADMIN_GROUP, Group, User
from corral.service.actor import Actor
from corral.service.configuration.queue_managers import QueueLimits
from corral.service.people.groups import Grants
from corral.service.service import Service
from tests.service.conftest import BOB, ROOT, FakeControl, job_text

QUEUES = "kind: Queue\nname: vision\nlimit: {devices: 8}\n---\nkind: Queue\nname: vision-night\nparent: vision\n"


@pytest.fixture
async def teams(service: Service, fake_control: FakeControl) -> Service:
    fake_control.answers["/configuration/check"] = []
    await service.configuration.apply(ROOT, QUEUES)
    await service.groups.create(ROOT, "vision", Grants(queues=("vision",)))
    await service.groups.create(ROOT, "vision-leads", Grants(manages=("vision",)))
    await service.groups.change(ROOT, "vision", add=("ann",))
    await service.groups.change(ROOT, "vision-leads", add=("bob",))
    return service


async def signed_in(service: Service, name: str) -> Actor:
    return await service.authentication.account(name)


async def test_a_group_has_grants_members_and_lines_in_the_audit_log(teams: Service) -> None:
    group = await teams.groups.get(ROOT, "vision")
    assert (group.queues, group.members, group.member_count) == (("vision",), ("ann",), 1)
    assert (await teams.authentication.account("ann")).groups == ("default", "vision"), (
        "what was granted before is granted still"
    )
    lines = (await teams.audit_log.page(ROOT)).items
    told = [line.detail for line in lines if line.action == "group.change" and line.resource == "group:vision"]
    assert told == [{"added": ["ann"]}, {"made": True, "queues": ["vision"]}]
    await teams.groups.change(ROOT, "vision", remove=("ann",), revoke=Grants(queues=("vision",)))
    assert (await teams.groups.get(ROOT, "vision")).member_count == 0
    await teams.groups.delete(ROOT, "vision")
    with pytest.raises(NotFound, match="no group vision"):
        await teams.groups.get(ROOT, "vision")


async def test_a_change_of_a_group_is_whole_or_not_at_all(teams: Service) -> None:
    with pytest.raises(NotFound, match="no user nobody"):
        await teams.groups.change(ROOT, "vision", add=("bob", "nobody"), grant=Grants(queues=("vision-night",)))
    group = await teams.groups.get(ROOT, "vision")
    assert (group.members, group.queues) == (("ann",), ("vision",))


@pytest.mark.parametrize(
    ("grants", "code"),
    [
        (Grants(queues=("visoin",)), "unknown-queue"),
        (Grants(manages=("visoin",)), "unknown-queue"),
        (Grants(storages=("data",)), "unknown-storage"),
    ],
)
async def test_only_what_there_is_can_be_granted(teams: Service, grants: Grants, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await teams.groups.change(ROOT, "vision", grant=grants)
    assert refused.value.code == code


async def test_openpai_and_native_calls_tell_of_one_and_the_same_group(teams: Service, openpai: OpenPai) -> None:
    await openpai.accounts.join_group(ROOT, "bob", "vision")
    assert (await teams.groups.get(ROOT, "vision")).members == ("ann", "bob")
    shown = await openpai.accounts.group(ROOT, "vision")
    assert shown.extension["acls"]["virtualClusters"] == ["vision"]
    await openpai.accounts.set_in_group(ROOT, "vision-leads", ("acls", "virtualClusters"), ["vision-night"])
    assert (await teams.groups.get(ROOT, "vision-leads")).manages == ("vision",), "its words for OpenPAI hide no grant"


async def test_the_administrators_group_is_the_role_and_keeps_one(teams: Service) -> None:
    await teams.groups.change(ROOT, ADMIN_GROUP, add=("ann",))
    assert (await teams.authentication.account("ann")).is_admin
    await teams.groups.change(ROOT, ADMIN_GROUP, remove=("ann",))
    with pytest.raises(Conflict, match="last administrator"):
        await teams.groups.change(ROOT, ADMIN_GROUP, remove=("root",))


async def test_members_see_their_groups_and_change_none(teams: Service) -> None:
    ann = await signed_in(teams, "ann")
    assert [group.name for group in await teams.groups.views(ann)] == ["default", "vision"]
    with pytest.raises(Forbidden, match="administrators-only"):
        await teams.groups.change(ann, "vision", add=("ann",))
    with pytest.raises(NotFound):
        await teams.groups.get(ann, "vision-leads")


async def test_a_queue_for_members_only_is_closed_to_others_even_without_a_grant(
    teams: Service, fake_control: FakeControl
) -> None:
    await teams.configuration.apply(ROOT, "kind: Queue\nname: secret\nmembersOnly: true\n")
    with pytest.raises(Forbidden, match="queue-not-granted"):
        await teams.submission.submit(await signed_in(teams, "ann"), job_text(more="queue: secret\n"))
    await teams.groups.change(ROOT, "vision", grant=Grants(queues=("secret",)))
    assert (await teams.submission.submit(await signed_in(teams, "ann"), job_text(more="queue: secret\n"))).created


async def test_a_manager_sees_logs_and_stops_jobs_of_the_queue_and_those_below_only(teams: Service) -> None:
    ann, bob = await signed_in(teams, "ann"), await signed_in(teams, "bob")
    assert set(bob.manages) == {"vision", "vision-night"}
    for queue in ("vision", "vision-night"):
        made = await teams.submission.submit(ann, job_text(f"in-{queue}", more=f"queue: {queue}\n"))
        assert made.detail is not None
        await teams.task_logs.of_job(bob, made.detail.id)
        await teams.job_commands.stop(bob, made.detail.id)
        line = next(line for line in (await teams.audit_log.page(ROOT)).items if line.action == "job.stop")
        assert (line.actor, line.rule) == ("bob", "queue-manager")
        with pytest.raises(Forbidden, match="job-not-owned"):
            await teams.job_commands.restart(bob, made.detail.id)
    elsewhere = await teams.submission.submit(ann, job_text("elsewhere"))
    assert elsewhere.detail is not None
    for call in (teams.job_commands.stop, teams.task_logs.of_job):
        with pytest.raises(Forbidden, match="job-not-owned"):
            await call(bob, elsewhere.detail.id)


async def test_a_queue_says_who_manages_it_and_that_it_is_for_members_only(teams: Service) -> None:
    for name in ("vision", "vision-night"):
        assert (await teams.queues.get(BOB, name)).managers == ("bob",), (
            "whoever manages a queue manages those below it"
        )
    assert (await teams.queues.get(BOB, "vision")).members_only
    assert not (await teams.queues.get(BOB, "vision-night")).members_only
    await teams.accounts.change(ROOT, "bob", disabled=True)
    assert (await teams.queues.get(BOB, "vision")).managers == ()


async def test_the_list_of_queues_says_to_which_the_caller_may_submit(teams: Service) -> None:
    await teams.configuration.apply(ROOT, "kind: Queue\nname: full\nclosed: true\n")

    async def named(actor: Actor) -> set[str]:
        return {queue.name for queue in (await teams.queues.page(actor)).items if queue.may_submit}

    assert await named(await signed_in(teams, "ann")) == {"default", "vision", "vision-night"}
    assert await named(await signed_in(teams, "bob")) == {"default", "vision", "vision-night"}, "its manager may, too"
    assert await named(Actor("carol")) == {"default", "vision-night"}
    assert not (await teams.queues.get(ROOT, "full")).may_submit, "a closed queue takes no jobs of anybody"
    assert (await teams.queues.get(ROOT, "vision")).may_submit


async def test_a_job_says_that_managers_may_reorder_it(teams: Service) -> None:
    ann, bob = await signed_in(teams, "ann"), await signed_in(teams, "bob")
    made = await teams.submission.submit(ann, job_text("train", more="queue: vision\n"))
    assert made.detail is not None
    assert "order" not in (await teams.jobs.get(ann, made.detail.id)).allowed
    assert "order" in (await teams.jobs.get(bob, made.detail.id)).allowed


async def test_only_managers_put_waiting_jobs_in_another_order(teams: Service) -> None:
    ann, bob = await signed_in(teams, "ann"), await signed_in(teams, "bob")
    for name in ("one", "two"):
        await teams.submission.submit(ann, job_text(name, more="queue: vision\n"))
    await teams.submission.submit(ann, job_text("far"))
    with pytest.raises(Forbidden, match="managers-only"):
        await teams.queue_managers.order(ann, "two", "first")
    await teams.queue_managers.order(bob, "ann~two", "before", "ann~one")
    line = next(
        line for line in (await teams.audit_log.page(ROOT)).items if line.action == "job.order" and line.allowed
    )
    assert (line.actor, line.rule, line.detail["place"]) == ("bob", "queue-manager", "before")
    (*_, event) = (await teams.events.of_job(ann, "two")).items
    assert event.message == "bob asked to move the job before one in queue vision"
    with pytest.raises(Conflict, match="waits in queue default"):
        await teams.queue_managers.order(bob, "ann~two", "before", "ann~far")
    with pytest.raises(InvalidInput, match="before another job"):
        await teams.queue_managers.order(bob, "ann~two", "before")
    with pytest.raises(Forbidden):
        await teams.queue_managers.order(bob, "ann~far", "first")
    await teams.configuration.apply(ROOT, "kind: Policy\nname: default\npreset: priority\n")
    with pytest.raises(Conflict, match="all queues wait in one order"):
        await teams.queue_managers.order(bob, "ann~two", "first")
    await teams.queue_managers.order(ROOT, "ann~two", "first")
    await teams.queue_managers.order(ROOT, "ann~two", "own")
    asked = [event.message for event in (await teams.events.of_job(ann, "two")).items[-2:]]
    assert [each.partition(" asked to ")[2] for each in asked] == [
        "move the job to the first place in queue vision",
        "move the job to its own place in queue vision",
    ]


async def test_managers_limit_below_the_queues_own_and_no_apply_forgets_it(teams: Service) -> None:
    ann, bob = await signed_in(teams, "ann"), await signed_in(teams, "bob")
    limits = QueueLimits(limit={"devices": "6"}, user_limit={"devices": "2"})
    with pytest.raises(Forbidden, match="managers-only"):
        await teams.queue_managers.set_limits(ann, "vision", limits)
    with pytest.raises(InvalidInput, match="more than the 8"):
        await teams.queue_managers.set_limits(bob, "vision", QueueLimits(limit={"devices": "9"}))
    with pytest.raises(InvalidInput) as refused:
        await teams.queue_managers.set_limits(bob, "vision", QueueLimits(limit={"devices": "many"}))
    assert refused.value.code == "bad-limits"
    await teams.queue_managers.set_limits(bob, "vision", limits, dry_run=True)
    assert await teams.queue_managers.limits(ann, "vision") == QueueLimits()
    await teams.queue_managers.set_limits(bob, "vision", limits)
    assert await teams.queue_managers.limits(ann, "vision") == limits
    await teams.configuration.apply(ROOT, "kind: Queue\nname: vision\nlimit: {devices: 4}\n")
    assert await teams.queue_managers.limits(ann, "vision") == limits
    configured = await teams.configuration.get(ROOT, "Queue", "vision")
    assert configured.document["limit"] == {"devices": "4"}
    await teams.queue_managers.set_limits(bob, "vision", QueueLimits())
    assert await teams.queue_managers.limits(ann, "vision") == QueueLimits()
    lines = [line for line in (await teams.audit_log.page(ROOT)).items if line.action == "queue.limit" and line.allowed]
    assert {line.actor for line in lines} == {"bob"}


async def test_a_manager_writes_no_document_of_a_queue_that_a_cluster_document_defines(teams: Service) -> None:
    """Such a document would hide the administrators' later changes."""
    await teams.configuration.apply(
        ROOT, "kind: Cluster\napiVersion: corral.dev/v1alpha1\nqueues:\n  default: {limit: {devices: 8}}\n"
    )
    await teams.groups.change(ROOT, "vision-leads", grant=Grants(manages=("default",)))
    bob = await signed_in(teams, "bob")
    with pytest.raises(Conflict) as refused:
        await teams.queue_managers.set_limits(bob, "default", QueueLimits(limit={"devices": "4"}))
    assert refused.value.code == "queue-without-document"


async def test_a_manager_of_everything_manages_every_queue(service: Service) -> None:
    await service.context.store.put_group(Group("ops", manages=("*",)))
    await service.context.store.add_user(User("ops", groups=("ops",)))
    made = await service.submission.submit(BOB, job_text())
    assert made.detail is not None
    await service.job_commands.stop(await signed_in(service, "ops"), made.detail.id)
