"""OpenPAI's REST API on jobs that run: callers see each attempt as control stored it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.endtoend.platform import Platform
from tests.waiting import pause

PATIENCE = 300.0
JOB = """\
protocolVersion: 2
name: {name}
type: job
jobRetryCount: {retries}
prerequisites: [{{type: dockerimage, name: image, uri: "ubuntu:22.04"}}]
taskRoles:
  Main_Role:
    instances: {instances}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ['{command}']
"""


class Caller:
    """A caller of OpenPAI's API as the administrator."""

    def __init__(self, platform: Platform) -> None:
        headers = {"Authorization": f"Bearer {platform.client.token}"}
        self.http = httpx2.Client(base_url=platform.url, headers=headers, trust_env=False, timeout=120)
        self.user = str(platform.client.me()["user"])

    def submit(self, name: str, command: str, *, retries: int = 0, instances: int = 1) -> httpx2.Response:
        text = JOB.format(name=name, command=command, retries=retries, instances=instances)
        return self.http.post("/api/v2/jobs", content=text, headers={"Content-Type": "text/yaml"})

    def where(self, name: str) -> str:
        return f"/api/v2/jobs/{self.user}~{name}"

    def get(self, path: str, **query: str) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, name: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the job's status fits; returns it."""
        begun = time.monotonic()
        while True:
            found: dict[str, Any] = self.get(self.where(name))["jobStatus"]
            if fits(found):
                return found
            assert time.monotonic() - begun < PATIENCE, found
            time.sleep(pause(begun))

    def over(self, name: str) -> dict[str, Any]:
        """The job's status once the job has ended."""
        return self.until(name, lambda status: status["subState"] == "Completed")


@pytest.fixture
def caller(platform: Platform) -> Iterator[Caller]:
    made = Caller(platform)
    yield made
    made.http.close()


def test_a_job_that_is_tried_again_shows_every_attempt_with_its_own_end(caller: Caller) -> None:
    assert caller.submit("Tried_twice", "echo once; exit 7", retries=1).status_code == 202
    status = caller.over("Tried_twice")
    assert (status["state"], status["attemptId"], status["retries"]) == ("FAILED", 1, 1)
    assert status["retryDetails"] == {"user": 1, "platform": 0, "resource": 0}
    where = caller.where("Tried_twice")
    attempts = caller.get(f"{where}/job-attempts")
    assert [(each["attemptIndex"], each["state"], each["exitCode"]) for each in attempts] == [
        (1, "FAILED", 255),
        (0, "FAILED", 255),
    ]
    first = caller.get(f"{where}/attempts/0")["jobStatus"]
    times = [first[name] for name in ("appCreatedTime", "appLaunchedTime", "appCompletedTime")]
    assert None not in times and times == sorted(times)
    assert times[-1] <= status["appCreatedTime"] <= status["appLaunchedTime"] <= status["appCompletedTime"]
    assert (first["appExitTriggerTaskRoleName"], first["appExitTriggerTaskIndex"]) == ("Main_Role", 0)
    assert first["appExitSpec"]["code"] == 255
    line = caller.get(f"{where}/attempts/0")["taskRoles"]["Main_Role"]["taskStatuses"][0]
    assert (line["taskState"], line["containerExitCode"]) == ("FAILED", 255)
    for number in (0, 1):
        logs = f"{where}/attempts/{number}/taskRoles/Main_Role/taskIndex/0/attempts/0/logs"
        found = {each["name"]: each["uri"] for each in caller.get(logs)["locations"]}
        assert "once" in httpx2.get(found["stdout"], trust_env=False).text


def test_every_view_of_openpais_tells_its_codes_and_corrals_own_api_the_commands(caller: Caller) -> None:
    for name, command, told, kind, own in (
        ("Ended_3", "exit 3", 255, "UNKNOWN_FAILURE", 3),
        ("No_command", "no-such-command", 220, "USER_FAILURE", 127),
    ):
        assert caller.submit(name, command, retries=0 if own == 3 else 2).status_code == 202
        status = caller.over(name)
        where = caller.where(name)
        assert (status["appExitCode"], status["appExitSpec"]["code"], status["appExitSpec"]["type"]) == (
            told,
            told,
            kind,
        )
        assert status["retries"] == 0, "a command that does not exist is not tried again"
        runtime = status["appExitMessages"]["runtime"]
        assert (runtime["exitCode"], runtime["originUserExitCode"]) == (told, own)
        task = caller.get(where)["taskRoles"]["Main_Role"]["taskStatuses"][0]
        assert (task["containerExitCode"], task["containerExitSpec"]["code"]) == (told, told)
        runs = caller.get(f"{where}/attempts/0/taskRoles/Main_Role/taskIndex/0/attempts")["attempts"]
        assert [run["containerExitCode"] for run in runs] == [told]
        (attempt,) = caller.get(f"{where}/job-attempts")
        assert (attempt["exitCode"], attempt["exitPhrase"]) == (told, status["appExitSpec"]["phrase"])
        (line,) = caller.get("/api/v2/jobs", keyword=name)
        assert line["appExitCode"] == told
        assert caller.get(f"/api/v1/jobs/{where.rpartition('/')[2]}")["jobStatus"]["appExitCode"] == told
        job = caller.get(f"/api/v3/jobs/{where.rpartition('/')[2]}")
        assert job["exit"]["code"] == own, job


def test_a_job_is_stopped_and_started_anew(caller: Caller) -> None:
    assert caller.submit("Stopped_once", "sleep 1000").status_code == 202
    caller.until("Stopped_once", lambda status: bool(status["state"] == "RUNNING"))
    where = f"{caller.where('Stopped_once')}/executionType"
    assert caller.http.put(where, json={"value": "STOP"}).status_code == 202
    status = caller.over("Stopped_once")
    assert (status["state"], status["executionType"], status["appExitCode"]) == ("STOPPED", "STOP", -210)
    assert status["appExitSpec"]["phrase"] == "StopFrameworkRequested"
    assert caller.http.put(where, json={"value": "START"}).status_code == 202
    status = caller.until("Stopped_once", lambda status: bool(status["state"] == "RUNNING"))
    assert (status["attemptId"], status["executionType"]) == (1, "START")
    assert caller.http.put(where, json={"value": "STOP"}).status_code == 202
    caller.over("Stopped_once")


def test_tags_given_while_a_job_runs_stay_when_control_writes_of_it(platform: Platform, caller: Caller) -> None:
    assert caller.submit("Tagged_alive", "sleep 1000").status_code == 202
    caller.until("Tagged_alive", lambda status: bool(status["state"] == "RUNNING"))
    where = caller.where("Tagged_alive")
    assert caller.http.put(f"{where}/tag", json={"value": "kept"}).status_code == 200
    assert caller.http.put(f"{where}/tag", json={"value": "lost"}).status_code == 200
    assert caller.http.request("DELETE", f"{where}/tag", json={"value": "lost"}).status_code == 200
    caller.http.put(f"{where}/executionType", json={"value": "STOP"})
    caller.over("Tagged_alive")
    line = next(each for each in caller.get("/api/v2/jobs", tagsContain="kept") if each["name"] == "Tagged_alive")
    assert line["tags"] == ["kept"]
    ours = platform.client.jobs(tag="kept")["items"]
    assert [job["tags"] for job in ours] == [["kept"]]


def test_of_concurrent_submissions_of_one_name_exactly_one_runs(caller: Caller) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: caller.submit("Only_one", "true"), range(32)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 31
    assert caller.over("Only_one")["state"] == "SUCCEEDED"
    assert caller.submit("Only_one", "true").status_code == 409


def test_a_job_that_fits_nowhere_waits_and_says_why(caller: Caller) -> None:
    assert caller.submit("Too_large", "true", instances=5000).status_code == 202
    begun = time.monotonic()
    while True:
        events = caller.get(f"{caller.where('Too_large')}/events", type="Warning")["data"]
        if any(event["reason"] == "FailedScheduling" for event in events):
            break
        assert time.monotonic() - begun < PATIENCE, events
        time.sleep(pause(begun))
    assert caller.get(caller.where("Too_large"))["jobStatus"]["state"] == "WAITING"
    assert len(caller.get(caller.where("Too_large"))["taskRoles"]["Main_Role"]["taskStatuses"]) == 5000
    caller.http.put(f"{caller.where('Too_large')}/executionType", json={"value": "STOP"})
    assert caller.over("Too_large")["state"] == "STOPPED"
