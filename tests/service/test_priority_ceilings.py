"""A job's priority ceiling is that of its queue, account or groups; without a grant it is that of prod."""

from __future__ import annotations

import msgspec
import pytest

from corral.compat.openpai.records.accounts import GroupChanges
from corral.compat.openpai.records.cluster_import import ImportGroup, ImportUser, OpenPaiImport
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import Forbidden
from corral.model.accounts import Group, QueueRecord, User
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, ROOT, FakeControl, job_text


async def _submitted(service: Service, actor: Actor, priority: str, queue: str = "default", **terms: bool) -> None:
    text = job_text(f"p{priority.replace('-', 'm')}-{queue}", more=f"priority: {priority}\nqueue: {queue}\n")
    assert (await service.submission.submit(actor, text, **terms)).created  # type: ignore[arg-type]


async def test_without_a_grant_the_ceiling_is_prod(service: Service) -> None:
    await _submitted(service, ANN, "prod")
    for priority in ("crit", "101", "100000"):
        with pytest.raises(Forbidden, match="100 is the most without a grant") as refused:
            await _submitted(service, ANN, priority)
        assert refused.value.code == "priority-too-high"
    await _submitted(service, ROOT, "crit")


async def test_an_import_keeps_its_priority(service: Service) -> None:
    await _submitted(service, ANN, "crit", own_priority=True)


async def test_a_queue_grants_and_bounds_for_those_below_it(service: Service, store: Store) -> None:
    upper, lower = QueueRecord("upper", {"maxPriority": 120}), QueueRecord("lower", {"parent": "upper"})
    await store.put_queues([QueueRecord("default"), upper, lower, QueueRecord("low", {"maxPriority": 5})])
    await _submitted(service, ANN, "crit", "lower")
    with pytest.raises(Forbidden, match="the maxPriority of queue upper is 120"):
        await _submitted(service, ANN, "121", "lower")
    with pytest.raises(Forbidden, match="the maxPriority of queue low is 5"):
        await _submitted(service, ROOT, "6", "low")


async def test_an_account_has_its_own_ceiling_else_the_highest_of_its_groups(service: Service, store: Store) -> None:
    for name, most in (("oncall", 120), ("others", 20)):
        await store.put_group(Group(name, max_priority=most))
    await store.add_user(User("eva", groups=("oncall", "others")))
    await _submitted(service, await service.authentication.account("eva"), "crit")
    with pytest.raises(Forbidden, match="the maxPriority of group oncall is 120"):
        await _submitted(service, await service.authentication.account("eva"), "121")
    await store.change_user("eva", max_priority=50)
    with pytest.raises(Forbidden, match="the maxPriority of user eva is 50"):
        await _submitted(service, await service.authentication.account("eva"), "prod")
    await store.change_user("eva", max_priority="")
    assert (await service.authentication.account("eva")).max_priority == 120
    assert msgspec.structs.asdict(await service.authentication.account("eva"))["max_priority_of"] == "group oncall"


async def test_an_administrator_sets_the_ceiling_of_an_account(service: Service, store: Store) -> None:
    await service.accounts.create(ROOT, "eva", password="a-long-password")
    assert (await service.accounts.change(ROOT, "eva", max_priority=120)).max_priority == 120
    assert (await service.accounts.get(ROOT, "eva")).max_priority == 120
    with pytest.raises(Forbidden):
        await service.accounts.change(await service.authentication.account("eva"), "eva", max_priority=500)
    assert (await service.accounts.change(ROOT, "eva", max_priority="")).max_priority is None


async def test_explain_advises_no_priority_and_no_queue_that_its_owner_may_not_have(
    service: Service, store: Store, fake_control: FakeControl
) -> None:
    await store.put_queues([QueueRecord(name) for name in ("default", "open", "granted")] + [_closed()])
    await store.put_group(Group("others", queues=("granted",)))
    detail = (await service.submission.submit(ANN, job_text("waits"))).detail
    assert detail is not None
    advised = [("priority", 101), ("queue", "granted"), ("queue", "closed"), ("priority", 100), ("queue", "open")]
    changes = [{"path": path, "from": "", "to": value, "message": "It would start now."} for path, value in advised]
    estimate = {"basis": "unknown", "message": "Unknown.", "at": None, "after": []}
    binding = {"code": "not-enough-devices", "message": "0 are free.", "counts": {}}
    fake_control.answers[f"/explain/{detail.id}"] = {
        "binding": binding,
        "outlook": {"estimate": estimate, "changes": changes},
    }
    found = await service.explanations.explain(ANN, detail.id)
    assert [(change.path, change.after) for change in found.changes] == [("priority", 100), ("queue", "open")]


def _closed() -> QueueRecord:
    return QueueRecord("closed", {"closed": True})


async def test_a_groups_ceiling_is_set_shown_taken_away_and_audited(service: Service) -> None:
    made = await service.groups.create(ROOT, "oncall", max_priority=120)
    assert made.max_priority == 120
    await service.groups.change(ROOT, "oncall", add=("ann",))
    assert (await service.authentication.account("ann")).max_priority == 120
    assert (await service.groups.change(ROOT, "oncall", max_priority=50)).max_priority == 50
    assert (await service.groups.change(ROOT, "oncall", description="nights")).max_priority == 50, "None leaves it"
    assert (await service.groups.change(ROOT, "oncall", max_priority="")).max_priority is None
    lines = [line.detail for line in (await service.audit_log.page(ROOT)).items if line.action == "group.change"]
    told = [detail["max_priority"] for detail in lines if "max_priority" in detail]
    assert told == ["", 50, 120]
    with pytest.raises(Forbidden):
        await service.groups.change(ANN, "oncall", max_priority=500)


async def test_edits_by_openpais_calls_and_imports_keep_a_groups_ceiling(
    service: Service, openpai: OpenPai, store: Store
) -> None:
    await service.groups.create(ROOT, "oncall", max_priority=120)
    told = GroupChanges(description="nights", extension={"acls": {"admin": False, "virtualClusters": ["default"]}})
    await openpai.accounts.update_group(ROOT, "oncall", told, merge=False)
    await openpai.accounts.update_group(ROOT, "oncall", GroupChanges(external_name="on-call"), merge=True)
    await openpai.accounts.set_in_group(ROOT, "oncall", ("acls", "virtualClusters"), ["default"])
    await openpai.accounts.join_group(ROOT, "ann", "oncall")
    assert (await service.groups.get(ROOT, "oncall")).max_priority == 120
    brought = OpenPaiImport(groups=(ImportGroup("oncall", queues=("default",), description="brought"),))
    assert [each.result for each in (await openpai.cluster_import.run(ROOT, brought, replace=True)).items] == [
        "changed"
    ]
    again = (await openpai.cluster_import.run(ROOT, brought, replace=True)).items
    assert [each.result for each in again] == ["unchanged"], "the ceiling is no difference"
    assert (await service.groups.get(ROOT, "oncall")).max_priority == 120


async def test_edits_by_openpais_calls_imports_and_batches_keep_an_accounts_ceiling(
    service: Service, openpai: OpenPai, store: Store
) -> None:
    await service.accounts.change(ROOT, "ann", max_priority=120)
    await openpai.accounts.join_group(ROOT, "ann", "default")
    await openpai.cluster_import.run(ROOT, OpenPaiImport(users=(ImportUser("ann", email="a@b.c"),)), replace=True)
    await service.account_batches.apply(ROOT, b"name,email\nann,c@b.a\n")
    user = await store.user("ann")
    assert user is not None and (user.email, user.max_priority) == ("c@b.a", 120)
