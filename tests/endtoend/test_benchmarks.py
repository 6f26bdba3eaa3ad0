"""`corral benchmark` on a real server: results by node, a fault that is told, and the slow node that is named."""

from __future__ import annotations

import json
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
    assert [each["benchmark"] for each in planned] == ["cpu-stream", "cpu-stream", "mem-bw", "mem-bw", "tcp-bw"]
    done = benchmark_run(platform, *asked, "--results", str(results))
    assert done.returncode == 1
    assert done.stderr.count("mem-bw on local/node1: rank 0: ") == 1, done.stderr
    measured = lines(results)
    assert list(measured) == ["local/node1", "local/node3"]
    for line in measured.values():
        assert line["corral/sku"] == "4x described-a100"
        assert line["cpu-stream/copy_bw:0"] > 0 and line["tcp-bw/pair_bw:0"] > 0
        assert (line["cpu-stream/return_code"], line["mem-bw/return_code"]) == (0, 1)
    jobs = [job for job in platform.client.jobs(limit=20)["items"] if job["name"].startswith("bench-")]
    assert len(jobs) == 5 and {job["priority"] for job in jobs} == {-1}
    diagnosed = platform.run("benchmark", "diagnose", str(results), "-o", "name")
    assert (diagnosed.returncode, diagnosed.stdout.split()) == (1, ["local/node1", "local/node3"])


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
        (("--suite", "nowhere.yaml"), "is neither a suite (full and quick are there) nor a file"),
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
