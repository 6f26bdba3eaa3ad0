"""A pod's runtime finds the program's reports in a folder that both of its containers have."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.pods.runtime import Runtimes, needs_runtime
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId, attempt_id
from corral.model.launch import ReportSource, RuntimePlan, TaskLaunch


def launch(report: ReportSource | None, working_dir: str = "") -> TaskLaunch:
    plan = RuntimePlan(report=report)
    attempt = attempt_id(JobId("trainer"), 0, "worker", 0, 0)
    return TaskLaunch(attempt, "ada", "kubernetes/a", ("true",), {}, working_dir=working_dir, runtime=plan)


async def plan_of(runtimes: Runtimes, task: TaskLaunch) -> Mapping[str, Any]:
    secret = await runtimes.secret(task, {}, {})
    plan: dict[str, Any] = msgspec.json.decode(base64.b64decode(secret["data"]["plan"]))
    return plan


@pytest.mark.parametrize(("image", "folder"), [("", "/run/corral/work"), ("corral:1", "/run/corral/shared")])
async def test_the_folder_of_reports_is_one_that_the_command_has_whatever_its_working_directory(
    image: str, folder: str
) -> None:
    task, runtimes = launch(ReportSource("now.json", steps=5), "/workspace"), Runtimes(None, image=image)
    assert needs_runtime(task) and not needs_runtime(launch(None))
    runtimes.check(task)
    assert (await plan_of(runtimes, task))["report"] == {
        "file": "now.json",
        "pattern": "",
        "steps": 5,
        "tensorboard": [],
        "folder": folder,
        "own_events": False,
    }
    assert (await plan_of(runtimes, launch(None)))["report"] is None


@pytest.mark.parametrize(("working_dir", "own"), [("", True), ("below", True), ("/data/shared", False)])
@pytest.mark.parametrize("image", ["", "corral:1"])
async def test_the_runtime_reads_event_files_of_the_tasks_own_folder_and_those_that_the_job_names(
    image: str, working_dir: str, own: bool
) -> None:
    task = launch(ReportSource(tensorboard=("runs", "/data/runs")), working_dir)
    found = (await plan_of(Runtimes(None, image=image), task))["report"]
    assert (found["own_events"], found["tensorboard"]) == (own, ["runs", "/data/runs"])


def test_a_pattern_is_refused_because_the_log_is_not_in_the_pod() -> None:
    with pytest.raises(InvalidInput, match=r"On Kubernetes no log is searched .* call corral\.report"):
        Runtimes(None).check(launch(ReportSource(pattern="(?P<step>.)")))
