"""Ask a real server what would become of its jobs: the command line, the client, and what ordinary users see."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.client import Client
from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from tests.endtoend.platform import Platform, on_devices
from tests.waiting import pause

pytestmark = pytest.mark.timeout(180)

DOCUMENTS = """\
kind: Cluster
engine: local
nodes: {node1: {devices: 4, cpu: 8}, node2: {devices: 4, cpu: 8}}
queues: {research: {deserved: {devices: 4}}, vision: {deserved: {devices: 4}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A full cluster: two jobs of an hour on all eight devices, three that wait for them."""
    folder = tmp_path_factory.mktemp("what-if")
    (folder / "cluster.yaml").write_text(DOCUMENTS)
    made = Platform(folder, cluster=folder / "cluster.yaml")
    made.up()
    for number in range(2):
        made.submit(_hour(f"runs-{number}"))
    waiting = [made.submit(_hour(f"waits-{number}")) for number in range(3)]
    for job in waiting:  # a question is about the jobs that the scheduler has read
        made.until(job, lambda found: bool(found["reasons"]) and found["reasons"]["binding"]["code"] != "submitted")
    yield made
    made.down()


def _hour(name: str, queue: str = "research", **more: Any) -> dict[str, Any]:
    return on_devices(name, 4, queue=queue, maxDuration="1h", **more)


def test_more_nodes_let_waiting_jobs_start_at_once(server: Platform) -> None:
    as_is: dict[str, Any] = json.loads(server.corral("what-if", "-o", "json"))
    starts = {job["name"]: job["after"]["p50"] for job in as_is["jobs"]}
    assert sorted(starts) == ["waits-0", "waits-1", "waits-2"]
    assert starts["waits-0"] == pytest.approx(3600, abs=600) and starts["waits-2"] == pytest.approx(7200, abs=600)
    more: dict[str, Any] = json.loads(
        server.corral("what-if", "--add-nodes", "3", "--like", "local/node1", "-o", "json")
    )
    assert [job["after"]["p50"] for job in more["jobs"]] == pytest.approx([0, 0, 0], abs=1)
    assert len(more["gains"]) == 3 and more["losses"] == []
    assert (more["before"]["devices"], more["after"]["devices"]) == (8, 20)


def test_arrivals_need_an_hour_of_the_servers_journal(server: Platform) -> None:
    with pytest.raises(InvalidInput, match="has no whole hour from which arrivals could be drawn"):
        server.client.what_if(arrivals="last-week")


def test_a_quota_and_a_submission_move_others(server: Platform, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(json.dumps(_hour("more", queue="vision")))
    text = server.corral("what-if", "--queue", "research=limit.devices:4", "--submit", str(tmp_path / "job.yaml"))
    assert "Changes: limit.devices 4 in queue research; more submitted." in text
    assert "Lose most: waits-2" in text and "more" in text
    assert [job["name"] for job in server.client.jobs()["items"] if job["name"] == "more"] == []
    standing = server.client.queue("research")["standing"]
    assert standing is not None and standing["limit"] == {}


def test_the_least_that_reaches_a_goal_is_found(server: Platform) -> None:
    goal = "wait.max(queue=research) <= 30m"
    text = server.corral("what-if", "--goal", goal, "--vary", "nodes-like=local/node1")
    assert "The least that reaches it: 3 nodes like local/node1 added (" in text
    assert "Changes: 3 nodes like local/node1 added." in text
    found = server.client.what_if(goal="wait.max(queue=research) <= 2h30m", vary="nodes-like=local/node1")["goal"]
    assert found is not None and (found["reached"], found["least"], found["complete"]) == (True, 0, True)
    quota = server.client.what_if(goal=goal, vary="queue=research:deserved.devices")["goal"]
    assert quota is not None and not quota["reached"] and "It cannot be reached; " in quota["says"]
    assert [each["value"] for each in quota["tries"]][:2] == [4, 5]
    with pytest.raises(InvalidInput, match="Column 10 of the assertion"):
        server.client.what_if(goal="wait.p95 =< 1h", vary="nodes-like=local/node1")


def test_the_server_goes_on_while_it_answers_and_refuses_what_is_not_there(server: Platform) -> None:
    with pytest.raises(NotFound, match=r"did you mean local/node1\?"):
        server.client.what_if(drain=["local/node11"])
    with pytest.raises(InvalidInput, match="There is no policy 'nope'"):
        server.client.what_if(policy="nope")
    assert server.refused("what-if", "--stop", "nobody", code=3)
    answer = server.client.what_if(seeds=4, horizon_seconds=30 * 86400.0)
    assert answer["seeds"] == 4 and len(answer["times"]) == len(answer["before"]["used"]) == 97


def test_a_long_question_tells_its_progress_and_is_cancelled(server: Platform) -> None:
    seen: list[Any] = []
    answer = server.client.follow_what_if(tell=seen.append, seeds=4, horizon_seconds=30 * 86400.0)
    assert answer["seeds"] == 4
    fractions = [each["fraction"] for each in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    goal = server.client.follow_what_if(
        tell=seen.append, goal="wait.max(queue=research) <= 30m", vary="nodes-like=local/node1"
    )["goal"]
    assert goal is not None and goal["least"] == 3
    # One that is told while another one is on its way takes its place.
    tries = re.compile(r"Tries \d nodes? like local/node1 added \(attempt \d of at most 16\), \w+ the changes")
    assert any(tries.match(each["says"]) for each in seen), seen
    for _ in range(10):  # each ends its processes, so the next one has its turn at once
        started = server.client.start_what_if(seeds=20, horizon_seconds=30 * 86400.0)
        server.client.cancel_what_if(started["id"])
        with pytest.raises(NotFound, match="There is no question"):
            server.client.what_if_state(started["id"])
    assert server.client.what_if()["seeds"] == 1


def test_ordinary_users_see_sizes(server: Platform) -> None:
    server.client.create_user("bob", password="correct horse battery")
    with Client(server.url, "") as bob:
        bob.login(user="bob", password="correct horse battery")
        answer = bob.what_if()
        assert {(job["name"], job["user"], job["devices"]) for job in answer["jobs"]} == {("job", "", 4)}
        with pytest.raises(Forbidden):
            bob.what_if(policy="fifo")


def test_the_estimates_that_it_gives_are_kept(server: Platform) -> None:
    server.corral("what-if", "--seeds", "2")
    with Client(server.url, server.client.token) as client:
        begun = time.monotonic()
        while (found := client.estimates())["total"]["given"] < 3 and time.monotonic() - begun < 150:
            time.sleep(pause(begun))
    assert [(each["queue"], each["given"], each["waiting"]) for each in found["queues"]] == [("research", 3, 3)]
    row = server.corral("estimates", "--queue", "research", "--days", "30").splitlines()[1]
    assert row.split()[:7] == ["research", "3", "0", "3", "0", "0", "0"]
