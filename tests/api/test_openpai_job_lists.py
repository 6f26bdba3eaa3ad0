"""Filters, orders and fields of OpenPAI's job list each return exactly the matching jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.compat.openpai.trace_format import read_openpai
from corral.model.exits import classify
from corral.model.runs import Retries
from corral.model.states import JobState
from corral.sim.trace import TraceJob, read_trace
from tests.api.harness import START, Server
from tests.api.openpai_jobs import Caller, Launcher, calling, protocol, refused

NAMES = ("alpha", "Beta", "gamma", "delta")


@pytest.fixture(scope="module")
def jobs(server: Server) -> Iterator[Caller]:
    """Four jobs of two users, submitted a second apart: the third succeeded, the fourth failed before it."""
    launcher = Launcher(server)
    with calling(server, "zoe") as zoe, calling(server, "yan") as yan:
        priorities = ("prod", "", "oppo", "test")
        for number, (name, priority) in enumerate(zip(NAMES, priorities, strict=True)):
            server.clock.advance(1)
            extras = f"{{hivedScheduler: {{jobPriorityClass: {priority}}}}}" if priority else ""
            caller = yan if name == "Beta" else zoe
            text = protocol(name, instances=number + 1, gpu=(2, 0, 4, 1)[number], extras=extras)
            assert caller.submit(text).status_code == 202
        ended = {"state": JobState.COMPLETED}
        launcher.write("zoe", "gamma", {}, completion=classify(0), ended_at=START + 99, retries=Retries(2, 2), **ended)
        launcher.write("zoe", "delta", {}, completion=classify(1), ended_at=START + 50, **ended)
        yield zoe


def names(caller: Caller, **query: str) -> list[str]:
    return [line["name"] for line in caller.get("/api/v2/jobs", **query)]


def test_the_latest_job_comes_first(jobs: Caller) -> None:
    assert names(jobs) == ["delta", "gamma", "Beta", "alpha"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"username": "yan"}, ["Beta"]),
        ({"username": "yan,zoe"}, ["delta", "gamma", "Beta", "alpha"]),
        ({"username": "nobody"}, []),
        ({"vc": "default"}, ["delta", "gamma", "Beta", "alpha"]),
        ({"vc": "other"}, []),
        ({"state": "SUCCEEDED"}, ["gamma"]),
        ({"state": "SUCCEEDED,FAILED"}, ["delta", "gamma"]),
        ({"state": "WAITING"}, ["Beta", "alpha"]),
        ({"state": "NONSENSE"}, []),
        ({"keyword": "eta"}, ["Beta"]),
        ({"keyword": "yan"}, ["Beta"]),
        ({"keyword": "defaul"}, ["delta", "gamma", "Beta", "alpha"]),
        ({"keyword": "%"}, []),
        ({"keyword": "b"}, []),
        ({"jobPriority": "prod"}, ["alpha"]),
        ({"jobPriority": "default"}, ["Beta"]),
        ({"jobPriority": "default,oppo"}, ["gamma", "Beta"]),
        ({"limit": "2"}, ["delta", "gamma"]),
        ({"offset": "1", "limit": "2"}, ["gamma", "Beta"]),
        ({"offset": "99"}, []),
        ({"order": "submissionTime,ASC"}, ["alpha", "Beta", "gamma", "delta"]),
        ({"order": "jobName,ASC"}, ["Beta", "alpha", "delta", "gamma"]),
        ({"order": "username,ASC"}, ["Beta", "alpha", "gamma", "delta"]),
        ({"order": "vc,DESC"}, ["delta", "gamma", "Beta", "alpha"]),
        ({"order": "retries,DESC"}, ["gamma", "delta", "Beta", "alpha"]),
        ({"order": "totalTaskNumber,ASC"}, ["alpha", "Beta", "gamma", "delta"]),
        ({"order": "totalGpuNumber,DESC"}, ["gamma", "delta", "alpha", "Beta"]),
        ({"order": "state,ASC"}, ["delta", "gamma", "alpha", "Beta"]),
        ({"order": "completionTime,ASC"}, ["delta", "gamma", "alpha", "Beta"]),
        ({"order": "completionTime,DESC"}, ["Beta", "alpha", "gamma", "delta"]),
        ({"order": "jobPriority,ASC"}, ["gamma", "alpha", "delta", "Beta"]),
        ({"order": "jobPriority,DESC"}, ["Beta", "delta", "alpha", "gamma"]),
        ({"order": "shoeSize,ASC"}, ["delta", "gamma", "Beta", "alpha"]),
        ({"order": "jobName,UP"}, ["delta", "gamma", "Beta", "alpha"]),
    ],
)
def test_the_list_is_filtered_ordered_and_cut(jobs: Caller, query: dict[str, str], expected: list[str]) -> None:
    assert names(jobs, **query) == expected


def test_the_count_is_of_all_that_pass_the_filter(jobs: Caller) -> None:
    found = jobs.get("/api/v2/jobs", withTotalCount="true", limit="1")
    assert set(found) == {"totalCount", "data"}
    assert (found["totalCount"], [line["name"] for line in found["data"]]) == (4, ["delta"])
    assert jobs.get("/api/v2/jobs", withTotalCount="true", username="yan")["totalCount"] == 1
    assert isinstance(jobs.get("/api/v2/jobs", withTotalCount="false"), list)


def test_bounds_that_cannot_be_are_refused(jobs: Caller) -> None:
    too_high = jobs.http.get("/api/v2/jobs", params={"limit": "50001"})
    refused(too_high, 400, "InvalidParametersError", "Limit exceeds max number 50000.")
    for query in ({"limit": "x"}, {"limit": "-1"}, {"offset": "-1"}, {"offset": "1e3"}):
        refused(jobs.http.get("/api/v2/jobs", params=query), 400, "InvalidParametersError")
    assert jobs.http.get("/api/v2/jobs", params={"limit": "50000"}).status_code == 200


def test_hostile_text_in_a_filter_finds_nothing(jobs: Caller) -> None:
    for value in ("' OR 1=1 --", "\\", "\0", "x" * 5000, "😀"):
        for name in ("username", "vc", "state", "keyword", "tagsContain", "jobPriority"):
            answer = jobs.http.get("/api/v2/jobs", params={name: value})
            assert answer.status_code == 200
            assert answer.json() == [] or value == "\0"


@pytest.mark.parametrize("query", [{}, {"withTotalCount": "true"}])
def test_the_list_is_a_trace_for_the_simulator(jobs: Caller, query: dict[str, str]) -> None:
    trace = read_trace(read_openpai, [jobs.http.get("/api/v2/jobs", params=query).text], skip_broken=True)
    assert trace.jobs == (
        TraceJob("zoe~gamma", 0.0, 0.0, 12, "zoe", priority=-1),
        TraceJob("zoe~delta", 1.0, 0.0, 4, "zoe", priority=10),
    )
    assert [each.problem for each in trace.skipped] == [
        "job 3 of the list: it never started", "job 4 of the list: it never started",
    ]  # fmt: skip
