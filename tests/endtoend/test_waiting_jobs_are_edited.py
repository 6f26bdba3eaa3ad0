"""`corral edit` on a real server: submission times stay, an array changes as a whole, and every edit is in the audit
log.
"""

from __future__ import annotations

import json

import pytest

from tests.endtoend.platform import Platform, on_devices

pytestmark = pytest.mark.timeout(300)
NAMES = ("early", "middle", "late")


@pytest.fixture
def line(platform: Platform) -> Platform:
    """All devices are held, and three jobs wait that need all of them."""
    platform.submit(on_devices("holder", 4, replicas=4, preemptible=False))
    platform.until("holder", lambda job: job["state"] == "running")
    for name in NAMES:
        platform.submit(on_devices(name, 4, replicas=4, preemptible=False))
    return platform


def waiting(platform: Platform) -> list[str]:
    return [each["name"] for each in json.loads(platform.corral("line", "-o", "json"))]


def edited(platform: Platform, name: str, priority: int) -> None:
    platform.until(name, lambda job: job["priority"] == priority)


def test_a_job_is_edited_and_keeps_its_place_in_time(line: Platform) -> None:
    tried = json.loads(line.corral("edit", "late", "--priority", "prod", "--dry-run", "-o", "json"))
    assert tried["changes"] == [{"field": "priority", "before": "10", "after": "100"}] and tried["dryRun"]
    assert line.client.job("late")["priority"] == 10
    said = line.run("edit", "late", "--priority", "prod", "--duration", "2h").stderr
    assert "priority from 10 to 100, maxDuration from no limit to 2h" in said
    edited(line, "late", 100)
    line.corral("edit", "early", "--priority", "100", "-o", "json")
    edited(line, "early", 100)
    assert waiting(line) == ["early", "late", "middle"], "equal priorities go by their time of submission"
    told = [event["message"] for event in line.client.job_events("early")["items"]]
    assert "root changed the job's priority from 10 to 100." in told
    audit = [each for each in line.client.audit()["items"] if each["action"] == "job.edit" and each["allowed"]]
    assert audit[0]["detail"] == {"priority": {"from": "10", "to": "100"}}
    said = line.run("get", "early", "--file").stderr
    assert "The job was edited since" in said and "root changed the job's priority from 10 to 100." in said
    assert "edited" not in line.run("get", "middle", "--file").stderr
    line.client.stop("holder")
    line.until("early", lambda job: job["state"] == "running")
    assert "only waiting jobs take other terms" in line.refused("edit", "early", "--queue", "research")


def test_an_edit_outlives_a_restart_of_the_server(line: Platform) -> None:
    line.corral("edit", "late", "--priority", "20", "--queue", "research")
    edited(line, "late", 20)
    line.corral("down", "--data", str(line.data))
    line.up_again()
    late = line.client.job("late")
    assert (late["priority"], late["queue"], late["state"]) == (20, "research", "waiting")
    assert line.client.document("late")["spec"]["queue"] == "research"
    assert set(waiting(line)) == set(NAMES)


def test_the_name_of_an_array_edits_all_of_it_that_waits(line: Platform) -> None:
    line.submit(on_devices("sweep", 4, replicas=4, array=3))
    found = json.loads(line.corral("edit", "sweep", "--priority", "oppo", "-o", "json"))
    assert [each["name"] for each in found] == ["sweep-0", "sweep-1", "sweep-2"]
    for each in found:
        edited(line, each["id"], -1)


def test_what_cannot_be_is_refused_in_a_sentence(line: Platform) -> None:
    assert "Name at least one change" in line.refused("edit", "late", code=2)
    assert "no queue" in line.refused("edit", "late", "--queue", "reserch", code=2)
    assert "2h" in line.refused("edit", "late", "--duration", "soon", code=2)
