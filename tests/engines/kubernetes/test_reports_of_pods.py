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
    } | ({"mounts": "/run/corral/events"} if image else {})
    assert (await plan_of(runtimes, launch(None)))["report"] is None


@pytest.mark.parametrize(("working_dir", "own"), [("", True), ("below", True), ("/data/shared", False)])
@pytest.mark.parametrize("image", ["", "corral:1"])
async def test_the_runtime_reads_event_files_of_the_tasks_own_folder_and_those_that_the_job_names(
    image: str, working_dir: str, own: bool
) -> None:
    task = launch(ReportSource(tensorboard=("runs", "/data/runs")), working_dir)
    found = (await plan_of(Runtimes(None, image=image), task))["report"]
    assert (found["own_events"], found["tensorboard"]) == (own, ["runs", "/data/runs"])


def test_the_sidecar_has_the_mounts_with_the_folders_that_the_job_names_and_no_others() -> None:
    named = ("/data/runs", "/data/deep/runs", "/image/runs", "below", "s3://bucket/runs", "/each/runs")
    task = launch(ReportSource(tensorboard=named))
    mounts = [
        {"name": "disk", "mountPath": "/data/", "subPath": "ada"},
        {"name": "deep", "mountPath": "/data/deep"},
        {"name": "keys", "mountPath": "/keys"},
        {"name": "each", "mountPath": "/each", "subPathExpr": "$(POD)"},
    ]
    pod: dict[str, Any] = {
        "metadata": {"labels": {}},
        "spec": {"containers": [{"name": "task", "volumeMounts": list(mounts)}]},
    }
    Runtimes(None, image="corral:1").wrap(pod, task)
    (sidecar,) = pod["spec"]["initContainers"]
    found = [each for each in sidecar["volumeMounts"] if each["mountPath"].startswith("/run/corral/events")]
    assert found == [
        {"name": "disk", "mountPath": "/run/corral/events/0/data", "readOnly": True, "subPath": "ada"},
        {"name": "deep", "mountPath": "/run/corral/events/1/data/deep", "readOnly": True},
    ]
    assert not {"keys", "each"} & {each["name"] for each in sidecar["volumeMounts"]}


def test_a_pattern_is_refused_because_the_log_is_not_in_the_pod() -> None:
    with pytest.raises(InvalidInput, match=r"On Kubernetes no log is searched .* call corral\.report"):
        Runtimes(None).check(launch(ReportSource(pattern="(?P<step>.)")))


@pytest.mark.parametrize("profile", [True, False])
async def test_pytorch_is_answered_in_a_folder_below_tmp_that_both_containers_have(profile: bool) -> None:
    """PyTorch 2.15 writes a trace that is asked for nowhere else."""
    runtimes = Runtimes(None, image="corral:1")
    attempt = attempt_id(JobId("trainer"), 0, "worker", 0, 0)
    task = TaskLaunch(attempt, "ada", "kubernetes/a", ("true",), {}, runtime=RuntimePlan(profile=profile))
    pod: dict[str, Any] = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "task"}]}}
    runtimes.wrap(pod, task)
    folder = (await plan_of(runtimes, task))["profiler_folder"]
    assert folder == ("/tmp/corral-torch" if profile else "")
    spec = pod["spec"]
    for container in (spec["containers"][0], spec["initContainers"][0]):
        at = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        assert at.get("/tmp/corral-torch", "") == ("corral-torch" if profile else "")
    assert ({"name": "corral-torch", "emptyDir": {}} in spec["volumes"]) == profile
