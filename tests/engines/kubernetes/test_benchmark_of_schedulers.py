"""`corral benchmark scheduler --engine kubernetes`: the cluster's own scheduler places gangs, and their times are told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import ENDS_AFTER, EXIT_CODE, Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

WORKLOAD = """
name: few
queues: 2
classes:
  one: {gangs: 2, every: 0.2, runs: 0.5}
  gang: {gangs: 1, tasks: 2, units: 2, runs: 0.5}
"""


@pytest.fixture(scope="module")
def scheduled(control_plane: ControlPlane, kwok: Kwok) -> Iterator[ControlPlane]:
    """A cluster whose kube-scheduler has two nodes of four processors; those of other tests are closed to it."""
    names = kwok.add_nodes(2, prefix="played", devices=0, cpu="4")
    with control_plane.scheduling(only=names):
        yield control_plane
    for name in names:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def played(
    plane: ControlPlane, namespace: str, folder: Path, *words: str, workload: str = WORKLOAD
) -> tuple[int, dict[str, Any], str]:
    """Play a workload; returns the exit code, what it told, and its messages."""
    file = folder / "workload.yaml"
    file.write_text(workload)
    asked = ("--engine", "kubernetes", "--kubeconfig", str(plane.kubeconfig), "--namespace", namespace)
    asked += ("--image", "busybox", "--workload", str(file), "--annotation", f"{ENDS_AFTER}={{seconds}}s")
    words = ("benchmark", "scheduler", *asked, *words, "--results", str(folder / "results.jsonl"), "-o", "json")
    done = warm.corral(words, env={**os.environ, "HOME": str(folder)}, cwd=folder, seconds=400)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def jobs_left(plane: ControlPlane, namespace: str) -> list[str]:
    listed = plane.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
    return [each["metadata"]["name"] for each in listed if "deletionTimestamp" not in each["metadata"]]


def test_gangs_run_and_end_and_nothing_of_them_is_left(scheduled: ControlPlane, namespace: str, tmp_path: Path) -> None:
    code, told, messages = played(scheduled, namespace, tmp_path, "--name", "kube-scheduler")
    assert code == 0, messages
    assert (told["gangs"], told["ended"], told["problems"]) == (6, 6, [])
    assert told["capacityUnits"] >= 8 and told["makespanSeconds"] > 0.4
    assert {each["class"]: each["started"] for each in told["classes"]} == {"one": 4, "gang": 2}
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["node"] == "kube-scheduler" and line["few/gang_wait_p99_time"] >= 0
    assert jobs_left(scheduled, namespace) == []


def test_gangs_that_fail_or_never_start_are_told_and_deleted(
    scheduled: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    one = "name: one\nclasses: {one: {gangs: 1, runs: 0.1}}"
    code, told, _ = played(scheduled, namespace, tmp_path, "--annotation", f"{EXIT_CODE}=3", workload=one)
    assert (code, told["gangs"], told["ended"], told["problems"]) == (1, 1, 0, [])
    code, told, messages = played(scheduled, namespace, tmp_path, "--unit", "cpu=64", "--wait", "2", workload=one)
    assert (code, told["ended"], told["classes"][0]["started"]) == (1, 0, 0)
    assert told["problems"] == ["1 gangs are deleted: nothing happened for 2 seconds."], messages
    assert jobs_left(scheduled, namespace) == []


def test_what_the_cluster_refuses_is_told_in_its_words(scheduled: ControlPlane, namespace: str, tmp_path: Path) -> None:
    code, told, messages = played(scheduled, namespace, tmp_path, "--label", "bad label=x")
    assert code != 0 and not told and "bad label" in messages
    assert jobs_left(scheduled, namespace) == []
