"""Objects and jobs agree in the end, despite failures and kills: one job per object, and none without."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from corral.control.bridge import AccountsOfNamespaces, reconciler
from corral.control.bridge.difference import differences
from corral.kernel.errors import InvalidInput, Unavailable
from corral.kernel.ids import JobId
from corral.model.store_writes import IntentKind
from corral.service.jobs.account_limits import Allowance
from corral.spec.job_objects import Document, ObjectState, UnifiedJobKind
from corral.spec.job_reader import load_job
from tests.control.bridged import Bridged, spec
from tests.examples import at_least


async def test_a_status_stands_still_once_nothing_happens(bridged: Bridged) -> None:
    uid = bridged.objects.create("calm", spec(2))
    await bridged.until(lambda: bridged.status(uid).get("phase") == "running" and bridged.targets(uid) == 2)
    before = bridged.objects.writes
    for _ in range(5):
        bridged.objects.again()
        await bridged.quiet()
    assert bridged.objects.writes == before


async def test_a_job_changed_through_rest_changes_its_object_first(bridged: Bridged) -> None:
    uid = bridged.objects.create("asked", spec(1))
    job = JobId(await bridged.until(lambda: bridged.status(uid).get("jobId")))
    assert await bridged.bridge.scale(job, 3)
    await bridged.until(lambda: bridged.targets(uid) == 3)
    assert not await bridged.bridge.scale(JobId("another"), 3)


async def test_an_object_that_would_have_too_many_tasks_is_told_and_grows_once_others_have_ended(
    bridged: Bridged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "_SCALING_SECONDS", 0.05)
    wide, other = (bridged.objects.create(name, spec()) for name in ("wide", "other"))
    for uid in (wide, other):
        await _running(bridged, uid)
    bridged.service.context.allowance = Allowance(tasks=3)
    bridged.objects.scale(wide, 3)
    await bridged.until(lambda: bridged.condition(wide, "Applied").get("reason") == "TooManyTasks")
    assert bridged.condition(wide, "Applied")["message"] == (
        "ada has 2 waiting and running tasks, and may have 3; this asks for 2 more. "
        "Wait until some have ended, or stop some."
    )
    assert bridged.targets(wide) == 1
    bridged.objects.delete(other)
    await bridged.until(lambda: bridged.targets(wide) == 3)


async def test_an_object_taken_away_by_force_ends_its_job(bridged: Bridged) -> None:
    here, away = (bridged.objects.create(name, spec()) for name in ("here", "away"))
    jobs = {uid: await bridged.until(lambda uid=uid: bridged.status(uid).get("jobId")) for uid in (here, away)}
    bridged.objects.rip_out(here)
    await bridged.until(lambda: len(bridged.house.engine.running) == 1)
    await bridged.abandon()
    bridged.objects.rip_out(away)
    await bridged.begin()
    await bridged.until(lambda: not bridged.house.engine.running)
    for job in jobs.values():
        record = await bridged.house.store.find_job(job)
        assert record is not None
    await bridged.until(lambda: not bridged.bridge._links)
    assert await bridged.house.store.object_links() == []


async def _running(bridged: Bridged, uid: str) -> JobId:
    """The job of an object, once it runs."""
    found = await bridged.until(lambda: bridged.status(uid).get("phase") == "running" and bridged.status(uid)["jobId"])
    return JobId(found)


async def test_an_object_that_is_listed_and_not_told_of_yet_is_not_gone(bridged: Bridged) -> None:
    uid = bridged.objects.create("many", spec())
    job = await _running(bridged, uid)
    await bridged.abandon()
    bridged.objects.mute = True
    await bridged.begin()
    await bridged.until(lambda: bridged.bridge._links)
    bridged.house.control.changed((job,))
    await bridged.quiet()
    record = await bridged.house.store.find_job(job)
    assert record is not None
    assert not record.run.stop_requested
    with pytest.raises(Unavailable, match="not read yet"):
        await bridged.bridge.scale(job, 3)
    bridged.objects.mute = False
    bridged.objects.again()
    await bridged.quiet()
    assert await bridged.bridge.scale(job, 3)
    await bridged.until(lambda: bridged.targets(uid) == 3)


async def test_what_was_an_object_of_a_sort_that_is_no_longer_followed_runs_on(bridged: Bridged) -> None:
    uid = bridged.objects.create("unfollowed", spec())
    job = await _running(bridged, uid)
    await bridged.abandon()
    bridged.kinds, bridged.objects.mute = (), True
    await bridged.begin()
    await bridged.until(lambda: bridged.bridge._links)
    bridged.house.control.changed((job,))
    await bridged.quiet()
    record = await bridged.house.store.find_job(job)
    assert record is not None
    assert not record.run.stop_requested
    assert not bridged.bridge._pauses
    assert not await bridged.bridge.scale(job, 3)


async def test_an_object_that_is_going_still_shows_its_tasks(bridged: Bridged) -> None:
    class Counted(UnifiedJobKind):
        wants_tasks = True

        def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
            return super().status(state, document) | {"tasks": len(state.tasks)}

    def fault(call: str) -> None:
        if call == "stop":
            raise Unavailable("engine-silent", "The engine does not answer.")

    await bridged.abandon()
    bridged.kinds, bridged.house.engine.fault = (Counted(),), fault
    await bridged.begin()
    uid = bridged.objects.create("going", spec(2))
    await bridged.until(lambda: bridged.status(uid).get("phase") == "running" and bridged.status(uid)["tasks"] == 2)
    bridged.objects.delete(uid)
    await bridged.until(lambda: bridged.status(uid).get("phase") == "stopping")
    assert bridged.status(uid)["tasks"] == 2
    bridged.house.engine.fault = lambda call: None
    await bridged.until(lambda: uid not in bridged.objects.objects)


async def test_a_removed_job_is_not_submitted_again(bridged: Bridged) -> None:
    uid = bridged.objects.create("removed", spec())
    job = JobId(await bridged.until(lambda: bridged.status(uid).get("jobId")))
    attempt = await bridged.until(lambda: next(iter(bridged.house.engine.running), None))
    bridged.house.engine.end(attempt, 0)
    await bridged.until(lambda: bridged.status(uid).get("phase") == "succeeded")
    await bridged.house.store.add_intent(job, IntentKind.DELETE, actor="ada", at=1.0)
    bridged.objects.scale(uid, 2)
    await bridged.quiet()
    assert bridged.status(uid)["jobId"] == job
    assert not bridged.house.engine.running


async def test_a_job_that_rests_and_is_restarted_is_followed(bridged: Bridged) -> None:
    uid = bridged.objects.create("restarted", spec())
    job = JobId(await bridged.until(lambda: bridged.status(uid).get("jobId")))
    bridged.house.engine.end(await bridged.until(lambda: next(iter(bridged.house.engine.running), None)), 3)
    await bridged.until(lambda: bridged.status(uid).get("phase") == "failed")
    assert bridged.status(uid)["exit"]["code"] == 3
    await bridged.house.store.add_intent(job, IntentKind.RESTART, actor="ada", at=1.0)
    await bridged.until(lambda: bridged.status(uid).get("phase") == "running")
    assert bridged.status(uid)["attempt"] == 1
    assert "exit" not in bridged.status(uid)


async def test_two_objects_of_one_name_are_two_jobs_one_after_the_other(bridged: Bridged) -> None:
    first = bridged.objects.create("same", spec())
    await bridged.until(lambda: bridged.status(first).get("phase") == "running")
    bridged.objects.delete(first)
    await bridged.until(lambda: first not in bridged.objects.objects)
    second = bridged.objects.create("same", spec())
    await bridged.until(lambda: bridged.status(second).get("phase") == "running")
    assert len(bridged.house.engine.running) == 1


async def test_an_object_deleted_before_its_job_could_be_shown_in_it_ends_its_job(bridged: Bridged) -> None:
    def fault(call: str) -> None:
        if bridged.objects.writes:  # the first write adds the finalizer
            raise Unavailable("kubernetes-unreachable", "The cluster could not be reached.")

    bridged.objects.fault = fault
    uid = bridged.objects.create("brief", spec())
    await bridged.until(lambda: bridged.house.engine.running)
    bridged.objects.delete(uid)
    await asyncio.sleep(0)
    bridged.objects.fault = lambda call: None
    await bridged.until(lambda: not bridged.objects.objects and not bridged.house.engine.running)


@pytest.mark.parametrize("by_force", [False, True])
async def test_a_job_whose_submit_was_never_answered_ends_with_its_object(
    bridged: Bridged, monkeypatch: pytest.MonkeyPatch, by_force: bool
) -> None:
    service = bridged.bridge._reconciler._service
    submit = service.submission.submit

    async def unanswered(*given: Any, **named: Any) -> None:
        await submit(*given, **named)
        raise Unavailable("store-unknown", "It is unknown whether the write took effect.")

    monkeypatch.setattr(service.submission, "submit", unanswered)
    uid = bridged.objects.create("unheard", spec())
    await bridged.until(lambda: bridged.house.engine.running)
    (bridged.objects.rip_out if by_force else bridged.objects.delete)(uid)
    await bridged.until(lambda: not bridged.objects.objects and not bridged.house.engine.running)
    await bridged.until(lambda: not bridged.bridge._links)
    assert await bridged.house.store.object_links() == []


@pytest.mark.parametrize("seed", range(at_least(1, 3)))
async def test_faults_and_kills_double_nothing_and_lose_nothing(bridged: Bridged, seed: int) -> None:
    """Objects are created, scaled and deleted while every third write fails and control is killed."""
    draw = random.Random(seed)
    engine, objects = bridged.house.engine, bridged.objects

    def fault(call: str) -> None:
        if draw.random() < 0.3:
            raise Unavailable("kubernetes-unreachable", "The cluster could not be reached.")

    objects.fault = fault
    for step in range(at_least(20, 40)):
        there = [uid for uid, each in objects.objects.items() if "deletionTimestamp" not in each["metadata"]]
        act = draw.random()
        if act < 0.45 or not there:
            objects.create(f"job-{step}", spec(draw.randint(1, 4)))
        elif act < 0.65:
            objects.scale(draw.choice(there), draw.randint(1, 4))
        elif act < 0.85:
            objects.delete(draw.choice(there))
        else:
            await bridged.abandon()
            await bridged.begin()
        await asyncio.sleep(draw.choice((0.0, 0.01, 0.05)))
    objects.fault = lambda call: None
    for uid in [uid for uid, each in objects.objects.items() if "deletionTimestamp" not in each["metadata"]][2:]:
        objects.delete(uid)
    await bridged.until(lambda: agree(bridged))
    records = [await bridged.house.store.find_job(link.job) for link in await bridged.house.store.object_links()]
    assert sorted(record.name for record in records if record and record.live) == sorted(
        each["metadata"]["name"] for each in objects.objects.values()
    )
    assert all(count == 1 for count in engine.most_instances.values())


def agree(bridged: Bridged) -> bool:
    """Whether every remaining object has its job, and no other job runs."""
    for uid, each in bridged.objects.objects.items():
        if "deletionTimestamp" in each["metadata"] or bridged.status(uid).get("phase") != "running":
            return False
        if bridged.targets(uid) != each["spec"]["replicaSpec"]["replicas"]:
            return False
    wanted = sum(each["spec"]["replicaSpec"]["replicas"] for each in bridged.objects.objects.values())
    return len(bridged.house.engine.running) == wanted


def test_the_first_pair_that_fits_maps_a_namespace() -> None:
    accounts = AccountsOfNamespaces("team-a=ada, team-*=ben,*=carol")
    assert [accounts.of(name) for name in ("team-a", "team-b", "x")] == ["ada", "ben", "carol"]
    assert AccountsOfNamespaces("a=b").of("c") == ""
    assert not AccountsOfNamespaces("")
    with pytest.raises(InvalidInput, match="NAMESPACE=ACCOUNT"):
        AccountsOfNamespaces("team")


def test_only_what_cannot_change_is_named() -> None:
    def job(**fields: Any) -> Any:
        document = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": "a"}}
        return load_job({**document, "spec": spec(**fields)})

    class Record:
        doc = job().to_json()

    assert differences(job(replicas=3), Record) == []  # type: ignore[arg-type]
    assert differences(job(queue="other", most=5), Record) == [  # type: ignore[arg-type]
        "spec.queue", "spec.replicaSpec.maxReplicas",
    ]  # fmt: skip


async def test_a_refusal_that_passes_is_noticed_and_the_job_runs(bridged: Bridged, monkeypatch: Any) -> None:
    monkeypatch.setattr("corral.control.bridge.reconciler._AGAIN_SECONDS", 0.02)
    first = bridged.objects.create("taken", spec())
    await bridged.until(lambda: bridged.status(first).get("phase") == "running")
    second = bridged.objects.create("taken", spec())
    await bridged.until(lambda: bridged.condition(second, "Accepted").get("reason") == "NameTaken")
    bridged.objects.delete(first)
    await bridged.until(lambda: bridged.status(second).get("phase") == "running")
    assert len(bridged.house.engine.running) == 1
