"""Objects that are unreadable, another Corral's, or a deleted account's: no job is lost, and the reason is shown."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId
from tests.control.bridged import Bridged, spec


async def running(bridged: Bridged, uid: str) -> JobId:
    await bridged.until(lambda: bridged.status(uid).get("phase") == "running")
    return JobId(bridged.status(uid)["jobId"])


async def stopping(bridged: Bridged, job: JobId) -> bool:
    record = await bridged.house.store.find_job(job)
    assert record is not None
    return record.run.stop_requested


async def test_the_end_of_an_object_that_nothing_was_ever_told_of_is_noticed(bridged: Bridged) -> None:
    uid = bridged.objects.create("dark", spec())
    job = await running(bridged, uid)
    await bridged.abandon()
    bridged.objects.mute = True
    await bridged.begin()
    await bridged.until(lambda: bridged.bridge._hidden == {uid})
    assert not await stopping(bridged, job)
    del bridged.objects.objects[uid]
    await bridged.until(lambda: not bridged.house.engine.running)
    assert await stopping(bridged, job)


async def test_without_their_definition_it_is_said_why_a_job_cannot_be_scaled(bridged: Bridged) -> None:
    job = await running(bridged, bridged.objects.create("undefined", spec()))
    await bridged.abandon()
    bridged.objects.mute, bridged.objects.defined = True, False
    await bridged.begin()
    await bridged.until(lambda: bridged.bridge._linked.is_set())
    with pytest.raises(Conflict, match=r"no longer defines unifiedjobs\.corral\.dev"):
        await bridged.bridge.scale(job, 3)
    assert not await stopping(bridged, job)


async def test_objects_of_another_corral_are_left_alone_and_said_once(bridged: Bridged) -> None:
    with capture_logs() as logs:
        for name in ("first", "second"):
            uid = bridged.objects.create(name, spec())
            bridged.objects.objects[uid]["status"] = {"jobId": "elsewhere", "server": "another", "phase": "running"}
            bridged.objects.objects[uid]["metadata"]["finalizers"] = ["corral.dev/job"]
            bridged.objects.delete(uid)
        await bridged.quiet()
    assert len(bridged.objects.objects) == 2
    assert bridged.objects.writes == 0
    (said,) = [each for each in logs if each["event"] == "objects of another server"]
    assert said["server"] == "another"
    assert "finalizer" in said["message"]


async def test_a_refused_object_goes_also_when_its_namespace_is_nobodys_any_more(bridged: Bridged) -> None:
    uid = bridged.objects.create("refused", spec(queue="nowhere"))
    await bridged.until(lambda: bridged.condition(uid, "Accepted").get("status") == "False")
    assert bridged.objects.objects[uid]["metadata"]["finalizers"]
    job = await running(bridged, bridged.objects.create("kept", spec()))
    await bridged.abandon()
    bridged.accounts = "elsewhere=ada"
    await bridged.begin()
    bridged.objects.delete(uid)
    await bridged.until(lambda: uid not in bridged.objects.objects)
    assert not await stopping(bridged, job)


async def test_a_scale_that_came_to_nothing_is_said_and_told_again(bridged: Bridged, monkeypatch: Any) -> None:
    monkeypatch.setattr("corral.control.bridge.reconciler._SCALING_SECONDS", 0.2)
    uid = bridged.objects.create("dropped", spec(1))
    await running(bridged, uid)
    await bridged.quiet()
    intents = bridged.house.control.core.intents
    scale, dropped = intents._scale, []
    monkeypatch.setattr(intents, "_scale", lambda job, intent, now: dropped.append(intent))
    bridged.objects.scale(uid, 3)
    await bridged.until(lambda: bridged.condition(uid, "Applied").get("reason") == "NotScaled")
    assert "to have 3 replicas and still is to have 1" in bridged.condition(uid, "Applied")["message"]
    await bridged.until(lambda: len(dropped) > 1)
    monkeypatch.setattr(intents, "_scale", scale)
    await bridged.until(lambda: bridged.targets(uid) == 3)
    await bridged.until(lambda: bridged.condition(uid, "Applied")["status"] == "True")
