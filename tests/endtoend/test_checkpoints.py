"""A job that does not know Corral saves checkpoints, and so is preempted before one that would lose more work."""

from __future__ import annotations

import pytest

from tests.endtoend.platform import Job, Platform, on_devices, one

pytestmark = pytest.mark.timeout(300)

SAVES = (
    'mkdir -p "$CORRAL_CHECKPOINT"; until [ -e GATE ]; do sleep 0.05; done; '
    "echo step 1 > saved/part.tmp; mv saved/part.tmp saved/step1; sleep 1000"
)


def running(job: Job) -> bool:
    return bool(job["state"] == "running" and job["tasks"]["running"] == job["tasks"]["total"])


def checkpoints(platform: Platform, job: Job) -> list[Job]:
    return [
        dict(event) for event in platform.client.job_events(job["id"])["items"] if event["kind"] == "job.checkpointed"
    ]


def test_who_saved_its_work_yields_first_also_after_a_restart_of_the_server(platform: Platform) -> None:
    gate = platform.folder / "both-run"
    command = SAVES.replace("GATE", str(gate))
    saver = platform.submit(on_devices("saver", 4, replicas=2, command=command, checkpoint={"path": "saved"}))
    platform.until(saver, running)
    gate.touch()
    other = platform.submit(on_devices("other", 4, replicas=2))
    platform.until(other, running)
    platform.until(saver, lambda _: bool(checkpoints(platform, saver)))
    platform.ran(one("after", "true"))  # control handles events in order
    found = platform.client.job(saver["id"])
    assert found["checkpointedAt"] >= found["startedAt"]
    assert "Checkpoint" in platform.corral("get", "saver") and "Checkpoint" not in platform.corral("get", "other")
    (told,) = checkpoints(platform, saver)
    assert told["actor"] == "runtime", "two tasks saved at the same moment: one word of it is kept"
    platform.corral("down", "--data", str(platform.data))
    platform.up_again()
    assert platform.client.job(saver["id"])["checkpointedAt"] == found["checkpointedAt"]
    urgent = platform.submit(on_devices("urgent", 4, replicas=2, priority="prod"))
    platform.until(urgent, running)
    (receipt,) = platform.client.receipts(saver["id"])["items"]
    assert (receipt["rule"], receipt["byJob"], receipt["devices"]) == ("priority", urgent["id"], 8)
    assert platform.client.receipts(other["id"])["items"] == []
    assert platform.client.job(other["id"])["attempt"] == 0 and running(platform.client.job(other["id"]))
