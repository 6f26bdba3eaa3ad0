"""A task's log stays readable after an eviction, while the task waits and after it has restarted."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.endtoend.platform import CORRAL, Job, Platform, one

pytestmark = pytest.mark.timeout(300)

PRINTS = "trap 'exit 0' TERM; echo $CORRAL_ATTEMPT begins; echo unhappy >&2; sleep 1000 2>/dev/null & wait"
MARK = r"\n\[corral: attempt 0\.0 ended: \S+ \(exit code -?\d+\); attempt 1\.0 follows\]\n"


def said(attempt: int) -> str:
    """The pattern of a log that has both lines of this attempt, in any order where the streams have logs of their own."""
    return rf"(?s)(?=.*\.{attempt}\.main\.0\.0 begins\n)(?=(.*unhappy\n){{{attempt + 1}}})"


@pytest.fixture
def twice(platform: Platform) -> Callable[..., Job]:
    """Makes jobs that were suspended while running; with `again` they run once more."""

    def make(name: str, *, again: bool = True, **role: Any) -> Job:
        job = platform.submit(one(name, PRINTS, role=role))
        platform.until(job, lambda now: now["state"] == "running")
        platform.printed(job, "main-0", said(0))
        platform.corral("suspend", name)
        found = platform.until(job, lambda now: now["suspended"] and now["state"] == "waiting")
        if not again:
            return found
        platform.corral("resume", name)
        found = platform.until(job, lambda now: now["attempt"] == 1 and now["state"] == "running")
        platform.printed(job, "main-0", said(1))
        return found

    return make


def test_what_a_preempted_job_printed_is_shown_while_it_waits(platform: Platform, twice: Callable[..., Job]) -> None:
    job = twice("yielded", again=False)
    printed = f"{job['id']}.0.main.0.0 begins\nunhappy\n"
    assert platform.corral("logs", "yielded") == printed
    assert platform.corral("logs", "yielded", "main-0") == printed
    assert platform.log(job) == printed


def test_the_log_goes_on_in_the_next_attempt_with_a_mark_between(platform: Platform, twice: Callable[..., Job]) -> None:
    job = twice("goes-on")
    first, second = (f"{job['id']}.{number}.main.0.0 begins\nunhappy\n" for number in (0, 1))
    whole = platform.log(job, "main-0")
    assert re.fullmatch(re.escape(first) + MARK + re.escape(second), whole)
    assert platform.corral("logs", "goes-on") == whole
    assert platform.corral("logs", "goes-on", "--attempt", "0.0") == first
    assert platform.corral("logs", "goes-on", "--attempt", "latest") == second
    assert platform.corral("logs", "goes-on", "main-0", "--attempt", f"{job['id']}.1.main.0.0") == second
    assert platform.corral("logs", "goes-on", "main-0", "--tail", "3") == whole[whole.index("[corral") :]
    table = platform.corral("attempts", "goes-on").splitlines()
    assert [line.split()[:3] for line in table] == [
        ["TASK", "ATTEMPT", "NODE"],
        *(
            ["main-0", number, attempt["node"]]
            for number, attempt in zip(("0.0", "1.0"), both(platform, job), strict=True)
        ),
    ]
    assert [each["id"] for each in json.loads(platform.corral("attempts", "goes-on", "main-0", "-o", "json"))] == [
        f"{job['id']}.{number}.main.0.0" for number in (0, 1)
    ]
    assert "corral attempts" in platform.corral("get", "goes-on")
    assert "is not an attempt" in platform.refused("logs", "goes-on", "main-0", "--attempt", "second", code=2)


def both(platform: Platform, job: Job) -> list[Job]:
    return platform.attempts(job, "main-0")


def test_offsets_and_ranges_count_all_attempts_and_their_marks(platform: Platform, twice: Callable[..., Job]) -> None:
    import httpx2

    job = twice("counted")
    whole = platform.log(job, "main-0").encode()
    token = {"authorization": f"Bearer {platform.client.token}"}
    with httpx2.Client(headers=token, trust_env=False) as http:
        url = f"{platform.url}/api/v3/jobs/{job['id']}/tasks/main/0/logs"
        half = http.get(f"{url}?offset=10&limit={len(whole) - 20}")
        assert half.content == whole[10:-10] and half.headers["x-corral-next"] == str(len(whole) - 10)
        part = http.get(url, headers={"range": "bytes=5-"})
        assert (part.status_code, part.content) == (206, whole[5:])
        assert part.headers["content-range"] == f"bytes 5-{len(whole) - 1}/{len(whole)}"
        own = http.get(f"{url}?attempt=1.0&offset=0&limit=5").content
        assert own == job["id"].encode()[:5], "an attempt's own offsets begin with it"
        followed = b""
        with http.stream("GET", f"{url}?follow=true&offset={len(whole) - 8}") as stream:
            assert stream.headers["x-corral-offset"] == str(len(whole) - 8)
            platform.client.stop(job["id"])
            for piece in stream.iter_bytes():
                followed += piece
        assert followed == whole[-8:]


def test_streams_that_are_kept_apart_go_on_too(platform: Platform, twice: Callable[..., Job]) -> None:
    job = twice("apart", env={"CORRAL_LOGS": "split"})
    out = "".join(platform.corral("logs", "apart", "main-0", "--stream", "stdout"))
    assert re.fullmatch(rf"{job['id']}\.0\S+ begins\n{MARK}{job['id']}\.1\S+ begins\n", out)
    assert re.fullmatch(rf"unhappy\n{MARK}unhappy\n", platform.corral("logs", "apart", "--stream", "stderr"))
    merged = platform.corral("logs", "apart", "main-0").splitlines()
    assert sorted(line for line in merged if "begins" in line) == sorted(re.findall(r".* begins", out))
    assert merged.count("unhappy") == 2


def test_a_follower_of_the_job_prints_every_attempt_once(platform: Platform, twice: Callable[..., Job]) -> None:
    job = twice("followed", again=False)
    follower = subprocess.Popen(
        [CORRAL, "logs", "-f", "followed"], env=platform.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    platform.corral("resume", "followed")
    platform.until(job, lambda now: now["attempt"] == 1 and now["state"] == "running")
    platform.printed(job, "main-0", r"1.main.0.0 begins\nunhappy\n")
    platform.corral("stop", "followed")
    printed, _ = follower.communicate(timeout=120)
    assert printed == platform.log(job, "main-0")


def test_what_is_of_one_task_needs_its_name_where_there_are_several(platform: Platform) -> None:
    job = platform.submit(one("several", "exec sleep 1000", role={"replicas": 2}))
    platform.until(job, lambda now: now["tasks"]["running"] == 2)
    assert "Name a task of several: main-0, main-1." in platform.refused("logs", "several", "--attempt", "0.0", code=2)
    assert platform.corral("attempts", "several").count("main-") == 2
