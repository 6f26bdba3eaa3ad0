"""A row in the table of amounts is enough for a job to ask for a new amount, to wait for it, and to get it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What becomes of `bandwidth` in a process whose table has a row for it."""
    command = [sys.executable, "-m", "tests.house.bandwidth"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_jobs_and_nodes_have_a_field_for_it(found: dict[str, Any]) -> None:
    assert found["job"] == {"bandwidth": 20}
    assert found["free"] == {"local/n1": {"bandwidth": 40}, "local/n2": {"bandwidth": 25}, "local/n3": {}}


def test_a_wrong_amount_is_refused_where_it_is_written(found: dict[str, Any]) -> None:
    assert found["refusals"] == [
        "job.yaml:1:110: roles.worker.resources.bandwidth: expected at least 0, got -1",
        'job.yaml:1:110: roles.worker.resources.bandwidth: expected a whole number, got "many"',
        "job.yaml:1:120: roles.worker.resources.other.bandwidth: bandwidth has a field of its own",
        "cluster.yaml:2:25: nodes.n1.bandwidth: expected at least 0, got -2",
    ]


def test_tasks_are_placed_only_where_enough_of_it_is_free(found: dict[str, Any]) -> None:
    assert sorted(found["places"]["a"] + found["places"]["b"]) == ["local/n1", "local/n2"]
    assert found["places"]["c"] == found["places"]["never"] == [""]


def test_a_job_that_waits_for_it_is_told_so(found: dict[str, Any]) -> None:
    message = "Needs network bandwidth for 1 task; there is enough for 0."
    assert found["c"] == ["not-enough-bandwidth", message, True]
    assert found["never"] == ["not-enough-bandwidth", message, False]


def test_a_smaller_amount_is_proposed(found: dict[str, Any]) -> None:
    words = "It would start now with 20 Gbit/s of network bandwidth a task instead of 30."
    assert ["roles.worker.resources.bandwidth", 30, 20, words] in found["changes"]


def test_engines_are_given_it_and_request_it_by_their_own_name(found: dict[str, Any]) -> None:
    assert found["launch"] == {"bandwidth": 20}
    asked = {"cpu": "1000m", "example.com/gbits": "20"}
    assert found["engines"]["pod"] == {"requests": asked, "limits": asked}
    assert found["engines"]["container"] == {"net-gbits": {"value": 20, "unit": ""}}


def test_what_engines_report_counts_under_its_name(found: dict[str, Any]) -> None:
    assert found["engines"]["node"] == {"bandwidth": 25}, "15 of 40 are in use by other pods"
    assert found["engines"]["yarn node"] == {"bandwidth": 40, "ports": 10_000}


def test_a_pod_that_becomes_a_job_asks_for_it(found: dict[str, Any]) -> None:
    assert found["of a pod"] == {"bandwidth": 10}
