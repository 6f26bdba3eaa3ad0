"""Configuration is applied as a whole, checked against all documents and running jobs, and rolled back by revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.model.document_revisions import Applied
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.store import Store
from tests.service.conftest import ANN, ROOT, FakeControl, job_text

RESEARCH = "kind: Queue\nname: research\ndeserved: {devices: 4}\n"
CLUSTER = "kind: Cluster\nnode: {devices: 4}\nnodes: [node1, node2]\n"
SHRINKS = {
    "message": "jobs of the queue research hold 4 devices, and what it deserves would be 2",
    "queue": "research",
    "level": "devices",
    "needed": 4,
    "available": 2,
    "preemptible": True,
}


@pytest.fixture(autouse=True)
def control(fake_control: FakeControl) -> FakeControl:
    """A control that finds no broken guarantee."""
    fake_control.answers["/configuration/check"] = []
    return fake_control


async def _apply(service: Service, text: str, **terms: Any) -> list[tuple[str, int]]:
    return _done(await service.configuration.apply(ROOT, text, **terms))


def _done(applied: Applied) -> list[tuple[str, int]]:
    return [(each.action, each.revision) for each in applied.documents]


async def _refused(work: Any) -> CorralError:
    with pytest.raises(CorralError) as refused:
        await work
    return refused.value


async def test_a_file_is_applied_and_its_queues_are_there_at_once(service: Service) -> None:
    assert await _apply(service, f"{CLUSTER}---\n{RESEARCH}") == [("created", 1), ("created", 1)]
    assert (await service.submission.submit(ANN, job_text(more="queue: research\n"))).created
    shown = await service.configuration.get(ANN, "queue", "research")
    assert (shown.revision, shown.actor, shown.document["deserved"]) == (1, "root", {"devices": "4"})


async def test_a_file_that_is_applied_again_changes_nothing(service: Service) -> None:
    await _apply(service, RESEARCH)
    assert await _apply(service, "name: research\nkind: Queue\ndeserved:\n  devices: 4\n") == [("unchanged", 1)]


async def test_what_is_shown_can_be_applied_as_it_is(service: Service) -> None:
    await _apply(service, f"{CLUSTER}---\n{RESEARCH}---\nkind: Policy\norder: fifo\n")
    for kind, name in (("Cluster", "local"), ("Queue", "research"), ("Policy", "default")):
        text = (await service.configuration.get(ANN, kind, name)).text
        assert await _apply(service, text) == [("unchanged", 1)], text


async def test_a_virtual_cluster_is_stored_as_a_queue(service: Service) -> None:
    text = "kind: VirtualCluster\nname: vision\ncells: [{level: node, count: 1}]\n"
    await _apply(service, f"{CLUSTER}---\n{text}")
    shown = await service.configuration.get(ANN, "VirtualCluster", "vision")
    assert (shown.kind, shown.document["kind"]) == ("Queue", "Queue")
    assert await _apply(service, text) == [("unchanged", 1)]


async def test_a_dry_run_shows_the_difference_and_stores_nothing(service: Service) -> None:
    await _apply(service, RESEARCH)
    changed = RESEARCH.replace("devices: 4", "devices: 6")
    applied = await service.configuration.apply(ROOT, changed, dry_run=True)
    assert applied.dry_run and _done(applied) == [("changed", 1)]
    assert "-  devices: 4\n+  devices: 6\n" in applied.documents[0].diff
    assert (await service.configuration.get(ANN, "queue", "research")).revision == 1


async def test_a_comparison_asks_nobody_whether_it_may_be(service: Service, fake_control: FakeControl) -> None:
    await _apply(service, RESEARCH)
    fake_control.answers.clear()
    compared = await service.configuration.compare(ANN, RESEARCH.replace("4", "5"))
    assert compared.documents[0].diff.startswith("--- Queue/research revision 1\n+++ Queue/research\n")


async def test_history_differences_and_rolling_back(service: Service) -> None:
    for devices in (4, 6, 8):
        await _apply(service, f"kind: Queue\nname: research\ndeserved: {{devices: {devices}}}\n", note=f"{devices}")
    history = await service.configuration.history(ANN, "queue", "research")
    assert [(each.revision, each.note) for each in history.items] == [(3, "8"), (2, "6"), (1, "4")]
    diff = await service.configuration.diff(ANN, "queue", "research", before=1, after=3)
    assert (diff.before, diff.after) == (1, 3) and "-  devices: 4\n+  devices: 8" in diff.diff
    last = await service.configuration.diff(ANN, "queue", "research")
    assert (last.before, last.after) == (2, 3)
    back = await service.configuration.roll_back(ROOT, "queue", "research", 1)
    assert _done(back) == [("changed", 4)]
    shown = await service.configuration.get(ANN, "queue", "research")
    assert shown.document["deserved"] == {"devices": "4"} and shown.note == "rolled back to revision 1"
    with pytest.raises(NotFound, match="no revision 9"):
        await service.configuration.roll_back(ROOT, "queue", "research", 9)


async def test_a_deleted_document_can_be_rolled_back_to(service: Service) -> None:
    await _apply(service, RESEARCH)
    gone = await service.configuration.delete(ROOT, "queue", "research")
    assert _done(gone) == [("deleted", 2)]
    with pytest.raises(NotFound, match="corral get queue"):
        await service.configuration.get(ANN, "queue", "research")
    assert (await _refused(service.submission.submit(ANN, job_text(more="queue: research\n")))).code == "unknown-queue"
    assert _done(await service.configuration.roll_back(ROOT, "queue", "research", 1)) == [("created", 3)]
    assert (await service.configuration.diff(ANN, "queue", "research", before=2, after=3)).diff.startswith("--- ")


async def test_a_queue_with_jobs_that_are_not_over_stays(service: Service) -> None:
    await _apply(service, RESEARCH)
    await service.submission.submit(ANN, job_text(more="queue: research\n"))
    error = await _refused(service.configuration.delete(ROOT, "queue", "research"))
    assert (error.code, error.status) == ("queue-in-use", 409) and "(1)" in error.message


async def test_an_unknown_queue_is_refused_with_the_one_that_was_meant(service: Service) -> None:
    await _apply(service, RESEARCH)
    error = await _refused(service.submission.submit(ANN, job_text(more="queue: reserach\n")))
    assert error.code == "unknown-queue" and error.message.endswith('did you mean "research"?')


async def test_only_administrators_change_the_configuration(service: Service, store: Store) -> None:
    await _apply(service, RESEARCH)
    for work in (
        service.configuration.apply(ANN, RESEARCH),
        service.configuration.roll_back(ANN, "queue", "research", 1),
        service.configuration.delete(ANN, "queue", "research"),
    ):
        assert isinstance(await _refused(work), Forbidden)
    lines = (await store.audit()).items
    assert [(each.actor, each.action, each.allowed) for each in reversed(lines)] == [
        ("root", "document.apply", True),
        ("ann", "document.apply", False),
        ("ann", "document.rollback", False),
        ("ann", "document.delete", False),
    ]


async def test_quotas_above_the_cluster_are_refused_with_the_path_and_the_numbers(service: Service) -> None:
    await _apply(service, CLUSTER)
    for preempt in (False, True):
        error = await _refused(service.configuration.apply(ROOT, RESEARCH.replace("4", "9"), preempt=preempt))
        assert isinstance(error, Conflict) and error.code == "guarantee-broken"
        assert "queues.research.deserved.devices" in error.message and "9" in error.message and "8" in error.message


async def test_a_smaller_cluster_must_still_hold_what_was_promised(service: Service) -> None:
    await _apply(service, f"{CLUSTER}---\n{RESEARCH.replace('4', '8')}")
    error = await _refused(service.configuration.apply(ROOT, CLUSTER.replace("[node1, node2]", "[node1]")))
    assert error.code == "guarantee-broken"
    assert (await service.configuration.get(ANN, "cluster", "local")).revision == 1


async def test_a_guarantee_of_running_jobs_is_broken_only_when_that_is_said(
    service: Service, fake_control: FakeControl
) -> None:
    await _apply(service, RESEARCH)
    fake_control.answers["/configuration/check"] = [SHRINKS]
    smaller = RESEARCH.replace("4", "2")
    error = await _refused(service.configuration.apply(ROOT, smaller))
    assert error.code == "guarantee-broken" and "hold 4 devices" in error.message and "--preempt" in error.message
    assert error.details["findings"][0]["needed"] == 4  # type: ignore[index]
    applied = await service.configuration.apply(ROOT, smaller, preempt=True)
    assert applied.findings[0].available == 2 and _done(applied) == [("changed", 2)]


async def test_without_control_nothing_is_changed(service: Service, fake_control: FakeControl) -> None:
    fake_control.answers.clear()
    assert isinstance(await _refused(service.configuration.apply(ROOT, RESEARCH)), Unavailable)
    assert (await service.configuration.page(ANN)).items == []


async def test_a_file_is_applied_whole_or_not_at_all(service: Service) -> None:
    text = f"{RESEARCH}---\nkind: Queue\nname: other\nparent: reserch\n"
    error = await _refused(service.configuration.apply(ROOT, text))
    assert "research" in error.message
    assert (await service.configuration.page(ANN)).items == []


async def test_a_guard_keeps_two_people_from_undoing_each_other(service: Service) -> None:
    await _apply(service, RESEARCH)
    await _apply(service, RESEARCH.replace("4", "5"), only=("queue", "research"), guard=1)
    error = await _refused(
        service.configuration.apply(ROOT, RESEARCH.replace("4", "6"), only=("queue", "research"), guard=1)
    )
    assert error.code == "revision-changed"


async def test_an_address_takes_its_own_document_only(service: Service) -> None:
    error = await _refused(service.configuration.apply(ROOT, RESEARCH, only=("queue", "gold")))
    assert isinstance(error, InvalidInput) and "Queue/research" in error.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Quue\nname: x\n", 'did you mean "Queue"'),
        ("kind: Queue\nname: x\nwieght: 2\n", 'did you mean "weight"'),
        (": :", "1:"),
    ],
)
async def test_a_bad_file_is_refused_with_the_place_and_what_was_meant(service: Service, text: str, said: str) -> None:
    error = await _refused(service.configuration.apply(ROOT, text))
    assert isinstance(error, SpecError) and said in error.message


async def test_an_unknown_kind_is_refused_with_the_one_that_was_meant(service: Service) -> None:
    error = await _refused(service.configuration.get(ANN, "quue", "x"))
    assert error.message == 'There is no kind "quue"; did you mean "Queue"?'
    assert "expected one of" in (await _refused(service.configuration.page(ANN, kind="zzz"))).message


async def test_lists_show_each_document_as_it_is_now(service: Service) -> None:
    await _apply(service, f"{CLUSTER}---\n{RESEARCH}")
    await _apply(service, RESEARCH.replace("4", "5"))
    page = await service.configuration.page(ANN)
    assert [(each.kind, each.name, each.revision) for each in page.items] == [
        ("Cluster", "local", 1),
        ("Queue", "research", 2),
    ]
    assert [each.name for each in (await service.configuration.page(ANN, kind="queues")).items] == ["research"]


async def test_numbers_are_shown_as_people_write_them(service: Service) -> None:
    await _apply(
        service, "kind: Queue\nname: research\nweight: 2.0\nlimit: {devices: '4', memory: 1024Mi, cpu: 500m}\n"
    )
    assert (await service.configuration.get(ANN, "queue", "research")).text == (
        "apiVersion: corral.dev/v1alpha1\nkind: Queue\nname: research\nweight: 2\n"
        "limit:\n  cpu: 500m\n  devices: 4\n  memory: 1Gi\n"
    )


async def test_changes_of_the_same_moment_are_all_made(service: Service) -> None:
    names = [f"team{number}" for number in range(5)]
    work = [service.configuration.apply(ROOT, f"kind: Queue\nname: {name}\n") for name in names[:2]]
    work += [service.configuration.apply(ROOT, f"kind: Queue\nname: {name}\nparent: team0\n") for name in names[2:3]]
    done = await asyncio.gather(*work, return_exceptions=True)
    made = {each.name for each in (await service.configuration.page(ANN)).items}
    for name, result in zip(names, done, strict=False):
        if isinstance(result, BaseException):
            assert isinstance(result, Conflict) and name not in made
        else:
            assert name in made
    assert {"team0", "team1"} <= made
    assert {queue.name for queue in (await service.queues.page(ANN)).items} == made | {"default"}
