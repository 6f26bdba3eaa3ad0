"""Corral places external jobs; their own controllers report starts and ends."""

from __future__ import annotations

from typing import Any

from corral.control.external_jobs import ExternalTasks
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, Exited
from corral.model.states import TaskState
from tests.control.bridged import Bridged, spec


def phase(bridged: Bridged, uid: str) -> str:
    return str(bridged.status(uid).get("phase", ""))


def external(replicas: int = 2, **fields: Any) -> dict[str, Any]:
    return spec(replicas, jobType="external", **fields)


async def placed(bridged: Bridged, name: str, replicas: int = 2, **fields: Any) -> str:
    uid = bridged.objects.create(name, external(replicas, **fields))
    await bridged.until(lambda: bridged.targets(uid) == replicas and phase(bridged, uid) == "starting")
    return uid


async def held(bridged: Bridged) -> int:
    """The number of tasks that hold a place once every change was handled."""
    await bridged.quiet()
    return sum(task.holds for job in bridged.house.control.world.jobs.values() for task in job.tasks.values())


async def test_the_engine_hears_of_nothing_and_tasks_begin_as_the_controller_has_them(bridged: Bridged) -> None:
    uid = await placed(bridged, "outside")
    (node, *_) = bridged.objects.targets(uid)
    bridged.objects.says(uid, replicas={node: 1})
    await bridged.until(lambda: phase(bridged, uid) == "running")
    if bridged.objects.targets(uid)[node] == 2:
        assert bridged.status(uid)["roles"][0]["running"] == 1
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: bridged.status(uid)["roles"][0]["running"] == 2)
    assert bridged.house.engine.started == []


async def test_a_place_is_held_until_the_controller_gives_it_up(bridged: Bridged) -> None:
    uid = await placed(bridged, "slow", 3)
    before = bridged.objects.targets(uid)
    bridged.objects.says(uid, replicas=before)
    await bridged.until(lambda: phase(bridged, uid) == "running")
    bridged.objects.scale(uid, 1)
    await bridged.until(lambda: bridged.targets(uid) == 1)
    bridged.objects.says(uid, replicas=before)
    assert await held(bridged) == 3
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid), observedGeneration=1)
    assert await held(bridged) == 3
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: bridged.status(uid)["roles"][0]["total"] == 1)
    assert await held(bridged) == 1


async def test_a_killed_control_loses_no_external_task(bridged: Bridged) -> None:
    uid = await placed(bridged, "kept")
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: phase(bridged, uid) == "running")
    before = bridged.status(uid)
    await bridged.abandon()
    await bridged.begin()
    (job,) = bridged.house.control.world.jobs.values()
    assert job.run.external
    assert [task.state for task in job.tasks.values()] == [TaskState.RUNNING] * 2
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid), outcome="succeeded")
    await bridged.until(lambda: phase(bridged, uid) == "succeeded")
    assert bridged.status(uid)["attempt"] == before["attempt"] == 0


async def test_the_engine_is_told_whose_pods_are_tasks_of_jobs_from_their_beginning_to_their_end(
    bridged: Bridged,
) -> None:
    own = bridged.objects.create("own", spec(1))
    uid = await placed(bridged, "outside")
    await bridged.until(lambda: bridged.objects.elsewhere == {uid})
    await bridged.abandon()
    bridged.objects.elsewhere = frozenset({"uid-of-old"})
    bridged.objects.mute = True  # only the store knows it: objects may arrive late
    seen: list[frozenset[str]] = []
    real = bridged.house.engine.inventory

    async def inventory() -> Inventory:
        seen.append(bridged.objects.elsewhere)
        return await real()

    bridged.house.engine.inventory = inventory  # type: ignore[method-assign]
    await bridged.begin()
    await bridged.until(lambda: seen)
    assert set(seen) == {frozenset({uid})} and own != uid
    bridged.objects.mute = False
    bridged.objects.again()
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid), outcome="succeeded")
    await bridged.until(lambda: phase(bridged, uid) == "succeeded")
    await bridged.until(lambda: not bridged.objects.elsewhere)


async def test_a_failed_attempt_is_tried_again_and_an_old_word_does_not_count(bridged: Bridged) -> None:
    uid = await placed(bridged, "failing", retryPolicy={"fancy": False, "maxRetries": 1})
    bridged.objects.says(uid, replicas={}, outcome="failed", exitCode=7, message="no luck")
    await bridged.until(lambda: bridged.status(uid).get("attempt") == 1 and bridged.targets(uid) == 2)
    bridged.objects.says(uid, replicas={}, outcome="failed", attempt=0)
    await bridged.quiet()
    assert phase(bridged, uid) in ("starting", "waiting")
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: phase(bridged, uid) == "running")
    bridged.objects.says(uid, replicas={}, outcome="failed", exitCode=7)
    await bridged.until(lambda: phase(bridged, uid) == "failed")
    assert bridged.status(uid)["exit"]["code"] == 7


async def test_a_job_that_no_controller_ever_looked_at_ends_at_once(bridged: Bridged) -> None:
    uid = await placed(bridged, "alone")
    bridged.objects.delete(uid)
    await bridged.until(lambda: uid not in bridged.objects.objects)
    assert await held(bridged) == 0


async def test_a_deleted_object_stays_until_its_controller_has_let_go(bridged: Bridged) -> None:
    uid = await placed(bridged, "leaving")
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: phase(bridged, uid) == "running")
    bridged.objects.delete(uid)
    await bridged.until(lambda: bridged.targets(uid) == 0 and phase(bridged, uid) == "stopping")
    bridged.objects.says(uid, replicas={})
    await bridged.until(lambda: uid not in bridged.objects.objects)


async def test_an_object_that_is_torn_out_takes_the_places_with_it(bridged: Bridged) -> None:
    uid = await placed(bridged, "torn")
    bridged.objects.says(uid, replicas=bridged.objects.targets(uid))
    await bridged.until(lambda: phase(bridged, uid) == "running")
    bridged.objects.rip_out(uid)
    await bridged.until(lambda: not bridged.house.control.world.jobs)
    assert await held(bridged) == 0


async def test_what_is_to_end_while_nobody_watches_objects_has_ended_now() -> None:
    told: list[EngineEvent] = []
    attempt = AttemptId("0mabcdefgh123.0.worker.0.0")
    await ExternalTasks(told.append, lambda: 1_800_000_000.0).stop(attempt, grace_seconds=0.0)
    (event,) = told
    assert isinstance(event, Exited) and (event.attempt, event.at) == (attempt, 1_800_000_000.0)
