"""A Framework's tasks get FrameworkController's variables and the barrier's files in their usual places."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from corral.compat.frameworkcontroller.framework import FrameworkController
from corral.frameworks.base import TaskCommand
from corral.frameworks.runnable_job import load_runnable_job
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from tests.frameworks.gangs import gang
from tests.spec.test_framework_documents import CONTAINER, EXAMPLES, framework, role


def rendered(data: Any, index: int = 0, *, attempt: int = 0, role_name: str = "worker") -> TaskCommand:
    job = load_job(data)
    keys = [f"{each.name}-{at}" for each in job.spec.roles for at in range(job.replicas_of(each.name))]
    members = gang(job, *reversed(keys))
    task = next(each for each in members.placement.tasks if (each.role, each.index) == (role_name, index))
    return FrameworkController().render(members, task, attempt)


def container(**fields: Any) -> dict[str, Any]:
    return framework(role(containers=[{**CONTAINER, **fields}]))


def test_every_variable_of_frameworkcontroller_is_there() -> None:
    env = rendered(container(), 1, attempt=4).env
    told = {name: value for name, value in env.items() if name.startswith("FC_")}
    assert told.keys() == {
        "FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_CONFIGMAP_NAME",
        "FC_POD_NAME", "FC_FRAMEWORK_UID", "FC_FRAMEWORK_ATTEMPT_ID", "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID",
        "FC_CONFIGMAP_UID", "FC_TASKROLE_UID", "FC_TASK_UID", "FC_TASK_ATTEMPT_ID", "FC_TASK_ATTEMPT_INSTANCE_UID",
        "FC_POD_UID",
    }  # fmt: skip
    assert (told["FC_FRAMEWORK_NAME"], told["FC_TASKROLE_NAME"], told["FC_TASK_INDEX"]) == ("sample", "worker", "1")
    assert (told["FC_POD_NAME"], told["FC_CONFIGMAP_NAME"]) == ("sample-worker-1", "sample-attempt")
    assert (told["FC_FRAMEWORK_NAMESPACE"], told["FC_TASK_ATTEMPT_ID"]) == ("default", "4")


def test_the_namespace_is_the_objects() -> None:
    data = container()
    data["metadata"]["namespace"] = "research"
    assert rendered(data).env["FC_FRAMEWORK_NAMESPACE"] == "research"


def test_pods_are_labelled_as_services_select_them() -> None:
    found = rendered(container(), 1)
    assert found.labels == {"FC_FRAMEWORK_NAME": "sample", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "1"}
    assert found.annotations["FC_POD_NAME"] == "sample-worker-1"


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("$(FC_TASK_INDEX)", "0"),
        ("$(LR) $(LATER) $(date)", "0.1 $(LATER) $(date)"),
        ("$$(FC_TASK_INDEX) costs $5", "$(FC_TASK_INDEX) costs $5"),
        ("{{FC_FRAMEWORK_NAME}}-{{FC_NOTHING}}", "sample-{{FC_NOTHING}}"),
    ],
)
def test_texts_are_filled_in_as_kubernetes_does(written: str, filled: str) -> None:
    env = [{"name": "LR", "value": "0.1"}, {"name": "TEXT", "value": written}, {"name": "LATER", "value": "x"}]
    found = rendered(container(env=env))
    assert found.env["TEXT"] == filled
    assert rendered(container(command=["echo", written], env=env[:1])).command[1] == filled


def test_placeholders_are_filled_in_anywhere_in_the_pod() -> None:
    volume = {"name": "data", "hostPath": {"path": "/data/{{FC_TASKROLE_NAME}}-{{FC_TASK_INDEX}}"}}
    data = framework(role(volumes=[volume], containers=[{**CONTAINER, "image": "images/{{FC_TASKROLE_NAME}}"}]))
    assert rendered(data, 1).pod_template["spec"]["volumes"][0]["hostPath"]["path"] == "/data/worker-1"
    assert load_job(data).spec.roles[0].image == "images/worker"
    with pytest.raises(SpecError, match="image is the same for all tasks of a role"):
        load_job(container(image="images/{{FC_TASK_INDEX}}"))


def test_containers_beside_the_task_are_told_as_well() -> None:
    beside = {"name": "logs", "image": "images/logs", "env": [{"name": "OWN", "value": "$(FC_TASK_INDEX)"}]}
    before = {"name": "first", "image": "images/first"}
    data = framework(role(containers=[{**CONTAINER, "imagePullPolicy": "Always"}, beside], initContainers=[before]))
    spec = rendered(data, 1).pod_template["spec"]
    task, logs = spec["containers"]
    assert "env" not in task
    assert {"name": "FC_TASK_INDEX", "value": "1"} in logs["env"]
    assert logs["env"][-1] == {"name": "OWN", "value": "$(FC_TASK_INDEX)"}
    assert {"name": "FC_FRAMEWORK_NAME", "value": "sample"} in spec["initContainers"][0]["env"]


@pytest.mark.parametrize(
    "template",
    [
        {"spec": [1]},
        {"spec": {"containers": ["x"]}},
        {"spec": {"containers": [{"name": "s", "env": 5}]}},
    ],
)
def test_what_has_no_pods_shape_is_left_for_the_engine_to_refuse(template: dict[str, Any]) -> None:
    data = load_job(container()).to_document()
    data["spec"]["roles"][0]["kubernetes"] = {"podTemplate": template}
    assert rendered(data).pod_template == template


def test_a_null_of_a_pods_shape_is_unset() -> None:
    data = load_job(container()).to_document()
    data["spec"]["roles"][0]["kubernetes"] = {"podTemplate": {"spec": None}}
    assert rendered(data).pod_template == {}


def test_containers_beside_without_variables_are_told_too() -> None:
    data = framework(role(containers=[CONTAINER, {"name": "logs", "image": "images/logs", "env": None}]))
    assert {"name": "FC_TASK_INDEX", "value": "0"} in rendered(data).pod_template["spec"]["containers"][0]["env"]


def test_a_role_without_a_command_runs_its_image() -> None:
    assert rendered(container(command=None)).command == ()
    text = json.dumps(load_job(container(command=None)).to_document())
    assert load_runnable_job(text).spec.roles[0].image
    with pytest.raises(SpecError, match="say what the role runs, or an image"):
        load_runnable_job(text.replace("images/demo:1", ""))


def test_the_barriers_script_exports_all_addresses_in_the_order_of_the_indexes(tmp_path: Path) -> None:
    found = rendered((EXAMPLES / "barrier.yaml").read_text())
    env = dict(found.env)
    for name, value in env.items():
        for index in range(3):
            value = value.replace(f"$(peer:worker-{index}:host)", f"10.0.0.{index}")
        env[name] = value
    env |= {"FRAMEWORKBARRIER_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    script = f"FB_WORKER_PORT=4001; . {tmp_path}/injector.sh; printf '%s|%s' $FB_WORKER_IPS $FB_WORKER_ADDRESSES"
    command = [*found.command[:4], "sh", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=250)
    assert done.stdout == "10.0.0.0,10.0.0.1,10.0.0.2|10.0.0.0:4001,10.0.0.1:4001,10.0.0.2:4001"
    written = json.loads((tmp_path / "framework.json").read_text())
    (roles,) = written["status"]["attemptStatus"]["taskRoleStatuses"]
    assert [task["attemptStatus"]["podIP"] for task in roles["taskStatuses"]] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]
    assert set(found.resolve) == {"worker-0", "worker-1", "worker-2"}
