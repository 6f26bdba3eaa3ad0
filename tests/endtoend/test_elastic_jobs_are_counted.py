"""An elastic job with fewer tasks than requested is shown as one row with the resources that it holds."""

from __future__ import annotations

import json

import pytest

from tests.endtoend.platform import Job, Platform, on_devices

pytestmark = pytest.mark.timeout(300)


def small(platform: Platform) -> Job:
    """An elastic job of 2 of 12 tasks: 14 of 16 devices are another job's."""
    holder = platform.submit(on_devices("holds", 1, replicas=14))
    platform.until(holder, lambda now: now["tasks"]["running"] == 14)
    job = platform.submit(on_devices("grows", 1, replicas={"min": 2, "max": 12}))
    return platform.until(job, lambda now: now["tasks"]["running"] == 2)


def test_the_devices_are_those_that_it_holds(platform: Platform) -> None:
    job = small(platform)
    assert (job["devices"], job["devicesHeld"]) == (12, 2)
    assert "Devices:   2 of 12" in platform.corral("get", "grows")
    for listed in (platform.corral("ls", "--live"), platform.corral("top", "--once")):
        (row,) = [line for line in listed.splitlines() if line.startswith("grows")]
        assert row.split()[2:4] == ["2/12", "2/12"] or row.split()[3:5] == ["2/12", "2/12"]
    platform.client.stop("holds")
    grown = platform.until(job, lambda now: now["tasks"]["running"] == 12)
    assert (grown["devices"], grown["devicesHeld"]) == (12, 12)
    platform.corral("scale", "grows", "6")
    shrunk = platform.until(job, lambda now: now["tasks"]["total"] == 6)
    assert (shrunk["devices"], shrunk["devicesHeld"]) == (6, 6)
    platform.corral("stop", "grows")
    ended = platform.ended(job)
    assert (ended["devices"], ended["devicesHeld"]) == (6, 0)


def test_explain_says_what_it_could_still_get_and_why_it_does_not(platform: Platform) -> None:
    job = small(platform)
    found = platform.client.explain(job["id"])
    assert found["message"] == (
        "It runs: 2 of 12 tasks. 10 more wait for room. One more task needs 1 device; 0 of 16 are free."
    )
    assert "10 more wait for room" in platform.corral("explain", "grows")


def test_a_job_whose_tasks_left_one_by_one_stands_once_in_the_line(platform: Platform) -> None:
    job = platform.submit(on_devices("grows", 1, replicas={"min": 2, "max": 12}))
    platform.until(job, lambda now: now["tasks"]["running"] == 12)
    for number in range(5):  # each takes four devices: the last ones from the elastic job
        taken = platform.submit(on_devices(f"takes-{number}", 2, priority="prod"))
        platform.until(taken, lambda now: now["state"] == "running")
    now = platform.client.job(job["id"])
    rows = json.loads(platform.corral("line", "-o", "json"))
    held = now["tasks"]["running"]
    assert held < 12
    (row,) = rows
    assert (row["position"], row["job"], row["grows"]) == (1, job["id"], True)
    assert (row["tasks"], row["devices"]) == (12 - held, 12 - held)
    assert row["reason"]["message"].startswith("One more task needs 1 device; ")
    assert f"{12 - held} in {12 - held} tasks more" in platform.corral("line")
    behind = platform.submit(on_devices("behind", 4, priority="test"))
    platform.until(behind, lambda now: bool(now["waiting"]) and now["waiting"]["code"] != "submitted")
    line = platform.client.line()
    assert line["total"] == 2 and [each["position"] for each in line["items"]] == [1, 2]
    (queue,) = [each for each in platform.client.queues()["items"] if each["name"] == "default"]
    assert (queue["standing"]["waiting"], queue["waiting"]) == (1, 1)
    assert (queue["standing"]["running"], queue["running"]) == (6, 6)
