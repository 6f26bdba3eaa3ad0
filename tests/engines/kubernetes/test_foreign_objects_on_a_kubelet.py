"""Foreign objects on a real kubelet: containers get the variables and files of Alnair and FrameworkController."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines.kubernetes.test_foreign_objects_on_a_cluster import (
    FRAMEWORKS,
    UJOBS,
    Objects,
    WithForeignObjects,
    attempts,
    named,
)
from tests.engines.kubernetes.test_testbed import until
from tests.reserved import free_port
from tests.spec import test_alnair_documents as alnair
from tests.spec.test_framework_documents import framework, role
from tests.testbeds.kubernetes import relay
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.daemons import Daemon
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import PYTHON, python_tree

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.timeout(300)]
PODS, TEAM = "real-pods", "real-team"
SHARED = {"name": "frameworkbarrier-volume", "mountPath": "/mnt/frameworkbarrier"}
MEET = """
. /mnt/frameworkbarrier/injector.sh
python3 -c '
import json, os
found = json.load(open("/mnt/frameworkbarrier/framework.json"))
roles = found["status"]["attemptStatus"]["taskRoleStatuses"]
ips = [task["attemptStatus"]["podIP"] for task in roles[1]["taskStatuses"]]
assert os.environ["FB_WORKER_IPS"] == ",".join(ips), (os.environ["FB_WORKER_IPS"], ips)
assert os.environ["FB_WORKER_ADDRESSES"] == ",".join(f"{ip}:4001" for ip in ips)
assert os.environ["CORRAL_HOST"] in ips + os.environ["FB_CHIEF_IPS"].split(",")
print(os.environ["FC_TASKROLE_NAME"], os.environ["FC_TASK_INDEX"], "met", len(ips), "at", os.environ["WHERE"])
'
"""


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WithForeignObjects]:
    """A server that pods reach through their node's gateway."""
    folder = tmp_path_factory.mktemp("server")
    kubelet_node.provide(PYTHON, python_tree)
    for namespace in (PODS, TEAM):
        control_plane.add_namespace(namespace)
    made = WithForeignObjects(folder, namespace=PODS, image=PYTHON, gateway=kubelet_node.gateway)
    made.team, made.plane, made.port = TEAM, control_plane, str(free_port())
    made.env["CORRAL_OBJECT_ACCOUNTS"] = made.env["CORRAL_OBJECT_ACCOUNTS"].replace(WithForeignObjects.team, TEAM)
    words = [sys.executable, relay.__file__, kubelet_node.gateway, made.port, made.port]
    passing = Daemon("relay-of-server", words, folder)
    passing.start(lambda: True)
    made.up()
    made.define()
    yield made
    made.clear()
    made.down()
    passing.stop()
    for namespace in (PODS, TEAM):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


def test_the_tasks_of_a_framework_meet_at_its_barrier(server: WithForeignObjects, kubelet_node: KubeletNode) -> None:
    frameworks = Objects(server, FRAMEWORKS)
    pod: dict[str, Any] = {
        "containers": [
            {
                "name": "main",
                "image": PYTHON,
                "command": ["sh", "-c", f"FB_CHIEF_PORT=4000 FB_WORKER_PORT=4001\n{MEET}"],
                "env": [{"name": "WHERE", "value": "$(FC_FRAMEWORK_NAME)/{{FC_POD_NAME}}"}],
                "volumeMounts": [SHARED],
            }
        ],
        "initContainers": [
            {"name": "frameworkbarrier", "image": "frameworkcontroller/frameworkbarrier", "volumeMounts": [SHARED]}
        ],
        "volumes": [{"name": "frameworkbarrier-volume", "emptyDir": {}}],
        "serviceAccountName": "frameworkbarrier",
        "nodeSelector": {"kubernetes.io/hostname": kubelet_node.name},
    }
    server.apply(named(framework(role("chief", 1, **pod), role("worker", 2, **pod)), "meeting"))
    ended = frameworks.stands("meeting", "Completed")
    job = server.client.job(ended["status"]["jobId"])
    said = {task: server.log(job, task) for task in ("chief-0", "worker-0", "worker-1")}
    assert job["state"] == "succeeded", said
    for task, text in said.items():
        assert text.strip() == f"{task.replace('-', ' ')} met 2 at meeting/meeting-{task}"
    assert [each["completionStatus"]["phrase"] for each in attempts(ended, 1)] == ["Succeeded", "Succeeded"]
    frameworks.remove("meeting")


def test_a_failure_keeps_its_code_and_has_frameworkcontrollers_phrase(
    server: WithForeignObjects, kubelet_node: KubeletNode
) -> None:
    frameworks = Objects(server, FRAMEWORKS)
    pod = {
        "containers": [{"name": "main", "image": PYTHON, "command": ["sh", "-c", "exit $CODE"]}],
        "nodeSelector": {"kubernetes.io/hostname": kubelet_node.name},
    }
    pod["containers"][0]["env"] = [{"name": "CODE", "value": "210"}]  # type: ignore[index]
    server.apply(named(framework(role("worker", 1, **pod)), "failing"))
    ended = frameworks.stands("failing", "Completed")
    completion = ended["status"]["attemptStatus"]["completionStatus"]
    assert (completion["code"], completion["phrase"]) == (210, "ContainerPermanentFailed")
    frameworks.remove("failing")


def test_a_base_job_of_alnairs_runs_its_arguments_in_a_shell(server: WithForeignObjects) -> None:
    ujobs = Objects(server, UJOBS)
    work = {"image": PYTHON, "unifiedArgs": ["echo", "trained;", "for x in 1 2; do echo $x; done"]}
    server.apply(named(alnair.document("BaseJob", 0, 0, jobSpec=work), "base"))
    ended = ujobs.stands("base", "Complete")
    job = server.client.job(ended["status"]["jobId"])
    said = until(lambda: found if (found := server.log(job)).count("\n") >= 3 else None, "its log")
    assert said == "trained\n1\n2\n"
    ujobs.remove("base")
