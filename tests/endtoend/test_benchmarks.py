"""`corral benchmark` on a real server: results by node, a fault that is told, and the slow node that is named."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.endtoend.platform import Platform

pytestmark = pytest.mark.timeout(600)

SUITE = """
superbench:
  benchmarks:
    cpu-stream: {parameters: {size_mib: 1, repeat: 1}}
    mem-bw: {parameters: {size_mib: 1, repeat: 1}}
    tcp-bw: {parameters: {size_mib: 1}}
    rdma-bw: {}
"""


def benchmark_run(platform: Platform, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a suite, which may take minutes on a busy machine."""
    return warm.corral(("benchmark", "run", *words), env=platform.env, seconds=400)


def lines(file: Path) -> dict[str, dict[str, Any]]:
    return {line["node"]: line for line in map(json.loads, file.read_text().splitlines())}


def test_a_suite_runs_on_its_nodes_and_a_benchmark_that_fails_is_told(platform: Platform, tmp_path: Path) -> None:
    suite, results = tmp_path / "suite.yaml", tmp_path / "results.jsonl"
    suite.write_text(SUITE)
    asked = ("--suite", str(suite), "--nodes", "node1,local/node3")
    planned = json.loads(platform.corral("benchmark", "run", *asked, "--dry-run", "-o", "json"))
    assert [each["benchmark"] for each in planned] == [
        "cpu-stream",
        "cpu-stream",
        "mem-bw",
        "mem-bw",
        "tcp-bw",
        "rdma-bw",
    ]
    done = benchmark_run(platform, *asked, "--results", str(results))
    assert done.returncode == 1
    assert done.stderr.count("mem-bw on local/node1: rank 0: ") == 1, done.stderr
    measured = lines(results)
    assert list(measured) == ["local/node1", "local/node3"]
    for line in measured.values():
        assert line["corral/sku"] == "4x described-a100"
        assert line["cpu-stream/copy_bw:0"] > 0 and line["tcp-bw/pair_bw:0"] > 0
        assert [line[f"{name}/return_code"] for name in ("cpu-stream", "mem-bw", "tcp-bw")] == [0, 1, 0]
    ways = [
        measured["local/node1"]["tcp-bw/to_local+node3_bw:0"],
        measured["local/node3"]["tcp-bw/to_local+node1_bw:0"],
    ]
    assert ways[0] == ways[1] > 0
    assert "tcp-bw between nodes, GB/s\nFROM / TO" in done.stdout
    if not Path("/sys/class/infiniband").exists():
        assert "rdma-bw: RDMA is not measured: there is no RDMA device with an active port" in done.stderr
        assert {line["rdma-bw/return_code"] for line in measured.values()} == {0}
    jobs = [job for job in platform.client.jobs(limit=20)["items"] if job["name"].startswith("bench-")]
    assert len(jobs) == 6 and {job["priority"] for job in jobs} == {-1}
    diagnosed = platform.run("benchmark", "diagnose", str(results), "-o", "name")
    assert (diagnosed.returncode, diagnosed.stdout.split()) == (1, ["local/node1", "local/node3"])
    _is_kept(platform, results)


def _is_kept(platform: Platform, results: Path) -> None:
    """The results are on the server as well, and those of the file can be kept again."""
    overview = json.loads(platform.corral("benchmark", "history", "-o", "json"))
    run = overview["runs"][0]
    assert (run["suite"], run["nodes"], len(run["problems"])) == ("suite.yaml", 2, 2)
    failed = json.loads(platform.corral("benchmark", "history", "local/node1", "-o", "json"))
    assert [each["metric"] for each in failed if each["metric"].endswith("return_code") and each["findings"]] == [
        "mem-bw/return_code"
    ]
    platform.corral("benchmark", "keep", str(results), "--suite", "again")
    asked = ("benchmark", "history", "local/node3", "--measurement", "cpu-stream/copy_bw", "-o", "json")
    points = json.loads(platform.corral(*asked))["points"]
    assert len(points) == 2 and points[0]["run"] == run["id"] != points[1]["run"]
    measured = lines(results)["local/node3"]["cpu-stream/copy_bw:0"]
    assert {point["value"] for point in points} == {measured}
    compared = json.loads(platform.corral("benchmark", "compare", run["id"], points[1]["run"], "-o", "json"))
    assert {each["gain"] for each in compared if each["metric"].endswith("_bw")} == {0}
    text = platform.corral("benchmark", "compare", run["id"], points[1]["run"])
    assert "tcp-bw between nodes, GB/s" in text and "tcp-bw/to_" not in text
    apart = results.with_name("apart.jsonl")
    shown = platform.corral("benchmark", "show", run["id"], "--write", str(apart))
    assert "cpu-stream/copy_bw" in shown and "tcp-bw between nodes, GB/s" in shown
    assert lines(apart) == lines(results)
    assert platform.corral("benchmark", "show", str(apart)) == shown
    mixed = json.loads(platform.corral("benchmark", "compare", str(results), run["id"], "-o", "json"))
    assert {each["gain"] for each in mixed if each["metric"].endswith("_bw")} == {0}
    for words in ((), ("local/node1",), ("--measurement", "cpu-stream/copy_bw")):
        assert "local/node1" in platform.corral("benchmark", "history", *words) or words == ("local/node1",)


def test_a_node_that_does_not_become_free_is_told_and_the_others_go_on(platform: Platform, tmp_path: Path) -> None:
    holder = platform.client.submit(
        json.dumps(
            {
                "name": "holder",
                "nodes": {"include": ["local/node2"]},
                "roles": {"main": {"resources": {"cpu": "0.1", "devices": 4}, "command": "sleep 1000"}},
            }
        )
    )
    platform.until(holder["id"], lambda job: job["state"] == "running")
    suite, results = tmp_path / "suite.yaml", tmp_path / "results.jsonl"
    suite.write_text("superbench: {benchmarks: {process-launch: {timeout: 60, parameters: {repeat: 1}}}}")
    asked = ("--suite", str(suite), "--nodes", "node2,node4", "--results", str(results), "--wait", "1")
    done = benchmark_run(platform, *asked)
    assert done.returncode == 1
    assert "process-launch on local/node2: it had not ended after its time; its job was" in done.stderr
    measured = lines(results)
    assert measured["local/node2"]["process-launch/return_code"] == 1
    assert measured["local/node4"]["process-launch/return_code"] == 0
    baseline = tmp_path / "baseline.json"
    platform.corral("benchmark", "baseline", str(results), "--write", str(baseline))
    found = platform.run("benchmark", "diagnose", str(results), "--baseline", str(baseline))
    assert found.returncode == 1
    assert "local/node2\n  Failed: process-launch/return_code is 1 (x != 0)" in found.stdout


def test_what_cannot_be_run_is_refused_before_any_job(platform: Platform, tmp_path: Path) -> None:
    for asked, said in (
        (("--nodes", "node9"), "There is no node 'node9'"),
        (("--suite", "nowhere.yaml"), "is neither a suite (devices, full and quick are there) nor a file"),
        (("--suite", str(tmp_path)), "cannot be read: Is a directory"),
    ):
        done = platform.run("benchmark", "run", *asked)
        assert done.returncode in (2, 3) and said in done.stderr


def test_a_workload_is_played_as_jobs_and_its_figures_are_kept(platform: Platform, tmp_path: Path) -> None:
    workload, results = tmp_path / "workload.yaml", tmp_path / "corral.jsonl"
    workload.write_text(
        "name: few\nqueues: 2\nclasses: {one: {gangs: 2, every: 0.2, runs: 0.2}, gang: {gangs: 1, tasks: 2, runs: 0.3}}"
    )
    asked = ("--workload", str(workload), "--unit", "cpu=100m", "--results", str(results), "--keep", "-o", "json")
    done = warm.corral(("benchmark", "scheduler", *asked), env=platform.env, seconds=400)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["gangs"], told["ended"], told["problems"]) == (6, 6, [])
    assert [(each["class"], each["ended"]) for each in told["classes"]] == [("one", 4), ("gang", 2)]
    assert told["makespanSeconds"] > 0.29 and 0 < told["use"] < 1 and told["capacityUnits"] > 0
    (line,) = lines(results).values()
    assert line["node"] == "corral" and line["few/return_code"] == 0 and line["few/one_wait_p50_time"] >= 0
    assert len(platform.client.jobs(q="bench-", state="succeeded", limit=20)["items"]) >= 6, "--keep leaves them"
    compared = json.loads(platform.corral("benchmark", "compare", str(results), str(results), "-o", "json"))
    assert "few/makespan_time" in {each["metric"] for each in compared}


def test_gangs_that_cannot_start_are_stopped_and_told(platform: Platform, tmp_path: Path) -> None:
    holder = {"name": "holder", "roles": {"main": {"replicas": 16, "resources": {"cpu": "0.1", "devices": 1}}}}
    holder["roles"]["main"]["command"] = "sleep 1000"  # type: ignore[index]
    held = platform.client.submit(json.dumps(holder))
    platform.until(held["id"], lambda job: job["state"] == "running")
    workload = tmp_path / "workload.yaml"
    workload.write_text("name: none\nclasses: {one: {gangs: 2, runs: 0.1}}")
    asked = ("--workload", str(workload), "--unit", "devices=1", "--wait", "1", "--results", str(tmp_path / "results"))
    done = warm.corral(("benchmark", "scheduler", *asked), env=platform.env, seconds=400)
    assert done.returncode == 1
    assert "2 gangs are stopped: none ended for 1 seconds." in done.stderr
    assert "0 of 2 gangs ended" in done.stdout
    left = [job for job in platform.client.jobs(q="bench-", limit=20)["items"] if job["devices"] == 1]
    assert left == [], "they are removed"


def test_a_workload_that_the_server_refuses_is_told_in_its_words(platform: Platform) -> None:
    asked = ("--workload", "gangs", "--scale", "0.001", "--unit", "devices=1000")
    refused = platform.run("benchmark", "scheduler", *asked)
    assert refused.returncode == 4 and refused.stdout == "" and "devices" in refused.stderr
    for unit in ("cpu", "cpu=0", "cpu=-1", "=1", "nvidia.com/gpu=1"):
        wrong = platform.run("benchmark", "scheduler", "--unit", unit)
        assert wrong.returncode == 2 and "unit" in wrong.stderr


def test_the_network_between_nodes_is_measured_on_request_and_kept_with_its_job(platform: Platform) -> None:
    asked = ("network", "--nodes", "node1,node2,local/node3", "--limit", "400", "-o", "json")
    done = warm.corral(("benchmark", *asked), env=platform.env, seconds=500)
    found = json.loads(done.stdout)
    report = found["network"]
    nodes = {f"worker-{index}" for index in range(3)}
    assert (found["checks"], report["tasks"]) == (["network"], 3), done.stderr
    ways = {(way["source"], way["target"]) for way in report["ways"]}
    assert ways == {(one, other) for one in nodes for other in nodes if one != other}
    assert all(way["bytesPerSecond"] > 0 and way["latencySeconds"] > 0 for way in report["ways"])
    assert sum(level["ways"] for level in report["levels"]) == 6
    assert {way["level"] for way in report["ways"]} <= {"rack", "cluster"}, "each task is on a node of its own"
    assert {(way["source"], way["target"]) for way in report["ring"]} == {
        ("worker-0", "worker-1"),
        ("worker-1", "worker-2"),
        ("worker-2", "worker-0"),
    }
    assert done.returncode == (1 if report["findings"] else 0)
    job = next(job for job in platform.client.jobs(q="check-network-", limit=5)["items"])
    assert (job["state"], job["priority"]) == ("succeeded", -1)
    shown = platform.run("benchmark", "network", "--job", job["id"])
    assert "worker-2" in shown.stdout and "In a ring of all at once, " in shown.stdout
    assert shown.returncode == done.returncode


def test_a_job_measures_its_network_before_its_command_and_one_that_did_not_ask_has_no_report(
    platform: Platform,
) -> None:
    trainer = {
        "name": "trainer",
        "preflight": {"checks": ["network", "platform"], "timeoutSeconds": 400, "required": True},
        "roles": {
            "main": {"command": "echo begun", "resources": {"cpu": "0.1"}},
            "side": {"replicas": 2, "command": "echo begun", "resources": {"cpu": "0.1"}},
        },
    }
    job = platform.client.submit(json.dumps(trainer))
    platform.until(job["id"], lambda now: now["state"] == "succeeded")
    found = platform.client.job_preflight(job["id"])
    report, machines = found["network"], found["platform"]
    assert machines is not None
    facts = machines["machines"][0]["facts"]
    assert (facts["kernel"], facts["processors"] > 0, machines["differences"]) == (os.uname().release, True, [])
    shown = platform.run("benchmark", "platform", "--job", job["id"])
    assert os.uname().release in shown.stdout and shown.returncode in (0, 1), shown.stderr
    assert report is not None and report["tasks"] == 3 and len(report["ways"]) == 6
    assert {way["source"] for way in report["ring"]} == {"main-0", "side-0", "side-1"}
    asked = ("benchmark", "platform", "--nodes", "node2", "-o", "json")
    done = warm.corral(asked, env=platform.env, seconds=500)
    (machine,) = json.loads(done.stdout)["platform"]["machines"]
    assert (machine["node"], machine["facts"]["kernel"]) == ("local/node2", os.uname().release)
    assert done.returncode == (1 if machine["findings"] else 0)
    plain = platform.client.submit('{"name": "plain", "roles": {"main": {"command": "true"}}}')
    assert platform.client.job_preflight(plain["id"]) == {
        "attempt": 0, "checks": [], "network": None, "platform": None,
    }  # fmt: skip
    done = platform.run("benchmark", "network", "--job", "plain")
    assert done.returncode != 0 and "its file needs `preflight: network`" in done.stderr
    done = platform.run("benchmark", "network", "--nodes", "node1")
    assert done.returncode != 0 and "A network has two nodes at least" in done.stderr
