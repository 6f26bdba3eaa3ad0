"""Drains, suspensions and preemptions of running jobs on a real server, and the messages to their owners."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.endtoend.platform import Job, Platform, on_devices

pytestmark = pytest.mark.timeout(300)

SAVES = "trap 'echo saved; exit 0' USR1; echo begun; while :; do sleep 0.05; done"


def running(job: Job) -> bool:
    return bool(job["state"] == "running" and job["tasks"]["running"] == job["tasks"]["total"])


def trainer(name: str, devices: int = 4, **fields: object) -> Job:
    """A job that writes a checkpoint when it is asked to."""
    return on_devices(name, devices, command=SAVES, checkpoint={"signal": "SIGUSR1", "grace": "30s"}, **fields)


def first_log(platform: Platform, job: Job) -> str:
    """The log of the first attempt of the only task."""
    attempt = platform.attempts(job, "main-0")[0]["id"]
    return b"".join(platform.client.log(job["id"], "main", 0, attempt=attempt)).decode()


def returned(platform: Platform, job: Job) -> Job:
    """The job's only receipt, once the job is back."""
    platform.until(job, lambda found: running(found) and found["attempt"] == 1)
    platform.until(job, lambda found: bool(found["receipts"]) and found["receipts"][0]["state"] == "returned")
    (receipt,) = json.loads(platform.corral("receipts", job["id"], "-o", "json"))
    return dict(receipt)


def test_a_drained_node_is_left_after_a_checkpoint_and_against_a_receipt(platform: Platform) -> None:
    job = platform.submit(trainer("moves"))
    platform.until(job, running)
    platform.printed(job, "main-0", "begun")
    (start,) = {task["node"] for task in platform.client.placement(job["id"])["items"]}
    try:
        platform.corral("drain", start, "--why", "new cables", "--wait")
        receipt = returned(platform, job)
        (end,) = {task["node"] for task in platform.client.placement(job["id"])["items"]}
        assert end != start
        assert "saved" in first_log(platform, job)
        assert receipt["rule"] == "drain" and "new cables" in receipt["message"] and receipt["devices"] == 4
        assert receipt["costDeviceSeconds"] > 0 and receipt["awaySeconds"] > 0
        assert platform.attempts(job, "main-0")[0]["exit"]["code"] == -1003
        assert "Had to yield" in platform.corral("get", "moves")
        assert "drained by" in platform.corral("nodes")
        full = platform.submit(on_devices("fills", 4, replicas=3))
        found = platform.until(full, lambda found: bool(found["reasons"]) and "submitted" not in str(found["reasons"]))
        assert found["state"] == "waiting", "three nodes are open, and one of them is taken"
        platform.corral("uncordon", start)
        platform.until(full, running)
        assert "is not cordoned" in platform.refused("uncordon", start)
    finally:
        platform.run("uncordon", start)


def test_a_suspended_job_comes_back_when_it_is_resumed(platform: Platform) -> None:
    job = platform.submit(trainer("asleep"))
    platform.until(job, running)
    platform.printed(job, "main-0", "begun")
    platform.corral("suspend", "asleep")
    platform.until(job, lambda found: found["state"] == "waiting" and found["suspended"])
    assert "suspended" in platform.corral("explain", "asleep").lower()
    assert "is suspended already" in platform.refused("suspend", "asleep")
    platform.corral("resume", "asleep")
    receipt = returned(platform, job)
    assert receipt["rule"] == "suspended" and receipt["byUser"]
    assert "saved" in first_log(platform, job)


def test_a_job_of_higher_priority_has_others_yield(platform: Platform, tmp_path: Path) -> None:
    low = platform.submit(trainer("low", replicas=4, priority="test", retryPolicy={"fancy": False, "maxRetries": 0}))
    platform.until(low, running)
    waits = f"until [ -e {tmp_path}/seen ]; do sleep 0.05; done"
    high = platform.submit(on_devices("high", 4, replicas=4, priority="prod", command=waits))
    platform.until(high, running)
    (tmp_path / "seen").touch()
    assert platform.ended(high)["state"] == "succeeded"
    receipt = returned(platform, low)
    assert (receipt["rule"], receipt["byJob"], receipt["devices"]) == ("priority", high["id"], 16)
    everything = platform.client.receipts(queue="default", limit=5)["items"]
    assert receipt["id"] in [each["id"] for each in everything]
    assert platform.client.ledger("default")["lent"] == []


def test_only_administrators_close_nodes(platform: Platform) -> None:
    platform.client.create_user("bea", password="correct horse battery")
    from corral.client import Client
    from corral.kernel.errors import Forbidden, NotFound

    with Client(platform.url, "") as bea:
        bea.login(user="bea", password="correct horse battery")
        for call in (bea.cordon, bea.uncordon, bea.drain):
            with pytest.raises(Forbidden, match="administrators"):
                call("local/node1")  # type: ignore[operator]
    with pytest.raises(NotFound, match="no node"):
        platform.client.cordon("local/nowhere")
