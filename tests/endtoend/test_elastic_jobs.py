"""Elastic jobs on a real server: tasks lost to drains, growth, and the cost of a move."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from tests.endtoend.platform import Job, Platform, on_devices

pytestmark = pytest.mark.timeout(300)

CLUSTER = """
kind: Cluster
node: {cpu: 8, memory: 16Gi, devices: {count: 4, kind: gpu, model: described-a100, memory: 40Gi}}
racks: {rack1: {nodes: [node1, node2, node3]}}
"""
MOVES_SOON = "{kind: Policy, elastic: {moveSeconds: 1s}}"
COUNTS = """
cd %s
n=$(cat count.$CORRAL_TASK_INDEX 2>/dev/null || echo 0)
save() {
  until [ -e may-save ]; do sleep 0.05; done
  echo $n >count.$CORRAL_TASK_INDEX
  echo saved $n
  exit 0
}
trap save USR1
echo from $n
while :; do n=$((n+1)); sleep 0.05; done
"""
"""A script that counts, saves its count on request once the test allows it, and starts from the saved count."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "cluster.yaml").write_text(CLUSTER)
    made = Platform(folder, cluster=folder / "cluster.yaml")
    made.up()
    yield made
    made.down()


@pytest.fixture
def platform(server: Platform) -> Iterator[Platform]:
    yield server
    server.clear()
    for node in server.client.nodes()["items"]:
        if node["cordon"]:
            server.corral("uncordon", node["name"])


def elastic(folder: Path, name: str, devices: int = 2, **fields: object) -> Job:
    """Two to four tasks that write checkpoints into `folder`."""
    checkpoint = {"signal": "SIGUSR1", "grace": "30s"}
    command = COUNTS % folder
    return on_devices(name, devices, replicas={"min": 2, "max": 4}, command=command, checkpoint=checkpoint, **fields)


def begun(platform: Platform, document: Job, tasks: int = 4) -> Job:
    """A job with all its tasks running, each with work to save."""
    job = platform.until(platform.submit(document), runs(tasks))
    for place in job["placement"]:
        platform.printed(job, f"main-{place['index']}", "from 0")
    return job


def runs(tasks: int, attempt: int = 0) -> Callable[[Job], bool]:
    """A check that exactly `tasks` tasks of a job run, in this attempt."""
    return lambda job: bool(
        job["state"] == "running" and job["tasks"]["running"] == tasks and job["attempt"] == attempt
    )


def nodes(job: Job) -> dict[int, str]:
    """The node of every running task."""
    return {place["index"]: place["node"] for place in job["placement"] if place["state"] == "running"}


def receipt(platform: Platform, job: Job) -> Job:
    """The job's only receipt, once the job is back."""
    platform.until(job, lambda found: bool(found["receipts"]) and found["receipts"][0]["state"] == "returned")
    (found,) = json.loads(platform.corral("receipts", job["id"], "-o", "json"))
    return dict(found)


def seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def test_draining_the_node_of_task_0_is_a_checkpoint_and_restart_of_the_whole_and_costed_as_such(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "may-save").touch()
    job = begun(platform, elastic(tmp_path, "whole"))
    before = nodes(job)
    platform.corral("drain", before[0], "--why", "new cables", "--wait")
    again = platform.until(job, runs(4, attempt=1))
    assert before[0] not in nodes(again).values()
    assert again["retries"] == 0
    found = receipt(platform, job)
    assert (found["rule"], found["devices"], found["tasks"]) == ("drain", 8, []), "it is the whole that yields"
    ran = [seconds(platform.attempts(job, f"main-{index}")[0]["startedAt"], found["at"]) for index in range(4)]
    assert found["costDeviceSeconds"] == pytest.approx(2 * sum(ran), abs=1.0), "and the work of the whole that is lost"
    for index in range(4):
        first = platform.attempts(job, f"main-{index}")[0]["id"]
        log = b"".join(platform.client.log(job["id"], "main", index, attempt=first, prefix=False)).decode()
        saved = log.rpartition("saved ")[2].strip()
        assert int(saved) > 0
        platform.printed(job, f"main-{index}", f"from {saved}")


def test_draining_a_node_of_other_tasks_only_shrinks_the_job_and_it_grows_elsewhere(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "may-save").touch()
    job = begun(platform, elastic(tmp_path, "part"))
    before = nodes(job)
    drained = next(node for node in before.values() if node != before[0])
    platform.corral("drain", drained, "--why", "new cables", "--wait")
    grown = platform.until(job, lambda found: runs(4)(found) and drained not in nodes(found).values())
    stayed = {index: node for index, node in before.items() if node != drained}
    assert stayed.items() <= nodes(grown).items(), "the others have not moved"
    found = receipt(platform, job)
    left = sorted(f"main-{index}" for index in before.keys() - stayed.keys())
    assert (found["rule"], found["devices"], sorted(found["tasks"])) == ("drain", 2 * len(left), left)
    targets = grown["document"]["spec"]["replicaSpec"]["targetReplicas"]
    assert drained not in targets and sum(targets.values()) == 4
    assert "4 of 4, at least 2" in platform.corral("get", "part")
    written = yaml.safe_load(platform.corral("get", "part", "-o", "yaml"))
    assert written["document"]["spec"]["replicaSpec"]["targetReplicas"] == targets
    assert written["status"]["placements"] == {"main": targets}


def test_a4_a_job_that_moves_to_grow_says_so_and_goes_on_from_its_checkpoint(
    platform: Platform, tmp_path: Path
) -> None:
    platform.corral("apply", "-", given=MOVES_SOON)
    two, three, four = (platform.submit(on_devices(f"holds-{devices}", devices)) for devices in (2, 3, 4))
    for holder in (two, three, four):
        platform.until(holder, runs(1))
    job = begun(platform, elastic(tmp_path, "moves", 1, topology="node"), 2)
    platform.client.stop(three["id"])
    moving = platform.until(job, lambda found: found["state"] == "stopping")
    assert moving["waiting"]["code"] == "grow"
    assert "Yields: Restarts from its checkpoint with more tasks" in platform.corral("get", "moves")
    (tmp_path / "may-save").touch()
    moved = platform.until(job, runs(4, attempt=1))
    assert len(set(nodes(moved).values())) == 1 and set(nodes(moved).values()).isdisjoint(nodes(job).values())
    found = receipt(platform, job)
    assert (found["rule"], found["devices"], found["byJob"]) == ("grow", 2, "")
    assert found["costDeviceSeconds"] > 0 and found["message"]
    assert int(platform.printed(job, "main-0", r"from (\d+)", attempt="latest")[1]) > 0
    assert "grow" in platform.corral("get", "moves")
