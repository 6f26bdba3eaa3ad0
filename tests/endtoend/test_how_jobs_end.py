"""Ends of tasks and jobs: retries, exit classes, policies, deadlines, stops, restarts, live scaling, and counted use."""

from __future__ import annotations

import csv
import json
from datetime import datetime

import pytest

from tests.endtoend.platform import Job, Platform, on_devices, one

pytestmark = pytest.mark.timeout(300)


def codes(attempts: list[Job]) -> list[int]:
    return [attempt["exit"]["code"] for attempt in attempts]


def test_a_task_that_fails_twice_is_tried_a_third_time(platform: Platform) -> None:
    tries = platform.folder / "tries"
    command = f"echo x >> {tries}; n=$(wc -l < {tries}); echo try $n; [ $n = 3 ] || exit $((40 + n))"
    job = platform.ran(one("third-time", command, role={"retryPolicy": {"maxRetries": 2}}))
    assert job["state"] == "succeeded"
    attempts = platform.attempts(job, "main-0")
    assert codes(attempts) == [41, 42, 0]
    for number, attempt in enumerate(attempts, 1):
        words = ["logs", "third-time", "main-0", "--attempt", attempt["id"]]
        assert platform.corral(*words) == f"try {number}\n"
    assert platform.tasks(job)["main-0"]["retries"] == 2


def test_a_whole_job_is_tried_again(platform: Platform) -> None:
    once = platform.folder / "once"
    job = platform.ran(one("again", f"[ -e {once} ] || {{ touch {once}; exit 9; }}", retry=1))
    assert job["state"] == "succeeded" and job["retries"] == 1
    attempts = platform.attempts(job, "main-0")
    assert codes(attempts) == [9, 0] and [each["jobAttempt"] for each in attempts] == [0, 1]


def test_a_spent_budget_ends_the_job_with_the_last_code(platform: Platform) -> None:
    job = platform.ran(one("hopeless", "exit 7", role={"retryPolicy": {"maxRetries": 1}}))
    assert job["state"] == "failed" and job["exit"]["code"] == 7
    assert codes(platform.attempts(job, "main-0")) == [7, 7]


def test_a_kill_is_transient_and_costs_no_retry(platform: Platform) -> None:
    mark = platform.folder / "killed"
    job = platform.ran(one("killed", f"[ -e {mark} ] || {{ touch {mark}; kill -9 $$; }}"))
    assert job["state"] == "succeeded"
    ends = [attempt["exit"] for attempt in platform.attempts(job, "main-0")]
    assert [(end["code"], end["class"]) for end in ends] == [(137, "transient"), (0, "succeeded")]


def test_a_permanent_failure_is_not_tried_again(platform: Platform) -> None:
    job = platform.ran(one("wrong", "exit 210", retry=5, role={"retryPolicy": {"maxRetries": 5}}))
    assert job["state"] == "failed" and job["exit"]["class"] == "permanent"
    assert codes(platform.attempts(job, "main-0")) == [210]


def test_the_first_success_ends_a_job_that_wants_one(platform: Platform) -> None:
    role = {"replicas": 3, "completion": {"minFailed": -1, "minSucceeded": 1}}
    job = platform.ran(one("race", "[ $CORRAL_TASK_INDEX = 1 ] || exec sleep 1000", role=role))
    assert job["state"] == "succeeded"
    ends = {name: task["exit"]["code"] for name, task in platform.tasks(job).items()}
    assert ends == {"main-0": -220, "main-1": 0, "main-2": -220}


def test_the_first_failure_ends_a_gang(platform: Platform) -> None:
    job = platform.ran(one("gang", "[ $CORRAL_TASK_INDEX = 0 ] || exec sleep 1000; exit 5", role={"replicas": 2}))
    assert job["state"] == "failed" and job["exit"]["code"] == 5
    assert {name: task["exit"]["code"] for name, task in platform.tasks(job).items()} == {"main-0": 5, "main-1": -220}
    said = platform.corral("get", "gang")
    assert "exit code 5" in said and "corral logs" in said


def test_a_job_that_runs_too_long_is_ended(platform: Platform) -> None:
    job = platform.ran(one("too-long", "exec sleep 1000", maxDuration=1))
    assert job["state"] == "failed"
    assert (job["exit"]["code"], job["exit"]["phrase"]) == (-1004, "PodDeadlineExceeded")


def test_a_stopped_task_gets_its_signal_and_time_for_a_checkpoint(platform: Platform) -> None:
    saved = platform.folder / "checkpoint"
    command = f"trap 'echo saved > {saved}; exit 0' USR1; echo ready; while :; do sleep 0.05; done"
    platform.submit(one("saves", command, checkpoint={"signal": "USR1", "grace": 30}))
    platform.printed("saves", "main-0", "ready")
    platform.corral("stop", "--wait", "saves")
    job = platform.client.job("saves")
    assert job["state"] == "stopped" and saved.read_text() == "saved\n"


def test_a_task_that_ignores_its_signal_is_killed_after_its_grace(platform: Platform) -> None:
    command = "trap '' TERM USR1; echo ready; while :; do sleep 0.05; done"
    job = platform.submit(one("deaf", command, checkpoint={"signal": "USR1", "grace": 1}))
    platform.printed(job, "main-0", "ready")
    platform.corral("stop", "--wait", "deaf")
    assert platform.client.job("deaf")["state"] == "stopped"
    assert platform.attempts(job, "main-0")[0]["exit"]["class"] == "permanent"


def test_a_restart_begins_anew_and_keeps_what_was(platform: Platform) -> None:
    job = platform.submit(one("anew", "echo $CORRAL_ATTEMPT; exec sleep 1000"))
    first = platform.printed(job, "main-0", r"(\S+)\n")[1]
    platform.corral("restart", "anew")
    platform.until(job, lambda now: now["attempt"] == 1 and now["state"] == "running")
    second = platform.printed(job, "main-0", r"(\S+)\n", attempt="latest")[1]
    assert [each["id"] for each in platform.attempts(job, "main-0")] == [first, second]
    platform.corral("stop", "--wait", "anew")
    platform.corral("restart", "anew")
    assert platform.until(job, lambda now: now["state"] == "running")["attempt"] == 2


def test_an_elastic_job_is_scaled_down_and_up_while_it_runs(platform: Platform) -> None:
    told = platform.folder / "told"
    told.mkdir()
    command = (
        f"trap 'touch {told}/$CORRAL_ATTEMPT; exit 0' USR1; echo ready $CORRAL_ATTEMPT; while :; do sleep 0.05; done"
    )
    document = on_devices("elastic", 1, replicas={"min": 1, "max": 4}, command=command, checkpoint={"signal": "USR1"})
    job = platform.submit(document)
    platform.until(job, lambda now: now["tasks"]["running"] == 4)
    attempts = {f"main-{i}": platform.printed(job, f"main-{i}", r"ready (\S+)")[1] for i in range(4)}
    platform.corral("scale", "elastic", "2")
    platform.until(job, lambda now: now["tasks"]["total"] == 2 and now["tasks"]["running"] == 2)
    left = platform.tasks(job)
    assert "main-0" in left and len(left) == 2
    removed = {attempt for name, attempt in attempts.items() if name not in left}
    assert {path.name for path in told.iterdir()} == removed
    platform.corral("scale", "elastic", "3")
    platform.until(job, lambda now: now["tasks"]["running"] == 3)
    grown = platform.tasks(job)
    (new,) = grown.keys() - left.keys()
    assert platform.printed(job, new, r"ready (\S+)", attempt="latest")[1] not in attempts.values()
    assert platform.printed(job, "main-0", r"ready (\S+)")[1] == attempts["main-0"]
    assert "expected 1 to 4 replicas" in platform.refused("scale", "elastic", "9", code=2)


def test_what_jobs_used_is_counted_from_their_attempts(platform: Platform) -> None:
    done = platform.ran(on_devices("counted", 2, command="sleep 0.3"))
    lost = platform.ran(on_devices("in-vain", 1, command="sleep 0.2; exit 3"))
    report = json.loads(platform.corral("usage", "--by", "job", "-o", "json"))
    rows = {row["key"]: row for row in report["items"]}
    for job, devices in ((done, 2), (lost, 1)):
        seconds = sum(_seconds(attempt) for attempt in platform.attempts(job, "main-0"))
        assert rows[job["id"]]["taskSeconds"] == pytest.approx(seconds, abs=0.003)
        assert rows[job["id"]]["deviceSeconds"] == pytest.approx(devices * seconds, abs=0.003)
    assert rows[done["id"]]["lostDeviceSeconds"] == 0
    assert rows[lost["id"]]["lostDeviceSeconds"] == rows[lost["id"]]["deviceSeconds"]
    shown = platform.corral("usage", "--by", "job")
    assert f"counted ({done['id']})" in shown and "100" in shown
    written = list(csv.DictReader(platform.corral("usage", "--by", "queue", "-o", "csv").splitlines()))
    assert [(row["queue"], float(row["device_seconds"]) > 0) for row in written] == [("default", True)]
    assert "is not a time; write it as" in platform.refused("usage", "--from", "yesterday", code=2)


def _seconds(attempt: Job) -> float:
    begin, end = (datetime.fromisoformat(attempt[each]) for each in ("startedAt", "endedAt"))
    return (end - begin).total_seconds()
