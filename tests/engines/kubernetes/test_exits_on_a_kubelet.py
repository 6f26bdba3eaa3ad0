"""The exit table matches a real kubelet's and containerd's reports of pods that fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.pods.exit_codes import pod_exit, start_failure
from corral.engines.kubernetes.watch.pod_structs import Pod
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]


def task(*command: str, image: str = images.BUSYBOX, **fields: Any) -> dict[str, Any]:
    return {"name": "task", "image": image, "command": list(command), "imagePullPolicy": "IfNotPresent", **fields}


def spec(container: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **fields}


SMALL = {"limits": {"memory": "20Mi"}, "requests": {"memory": "20Mi"}}
HUGE = {"limits": {"cpu": "10000"}, "requests": {"cpu": "10000"}}
SIDECAR = {**task("sleep", "1000"), "name": "side", "restartPolicy": "Always"}

ENDS: dict[str, tuple[dict[str, Any], int]] = {
    "success": (spec(task("true")), 0),
    "its own code": (spec(task("sh", "-c", "exit 3")), 3),
    "a signal": (spec(task("sh", "-c", "sh -c 'kill -SEGV $$$$'; exit $?")), 139),
    "not found by its shell": (spec(task("sh", "-c", "nowhere")), 127),
    "no such program": (spec(task("nowhere")), -1203),
    "not executable": (spec(task("/etc/hostname")), -1202),
    "out of memory": (spec(task("tail", "/dev/zero", resources=SMALL)), -1200),
    "out of processors": (spec(task("true", resources=HUGE)), -1002),
    "past its deadline": (spec(task("sleep", "1000"), activeDeadlineSeconds=1), -1004),
    "init failed": (spec(task("true"), initContainers=[{**task("sh", "-c", "exit 5"), "name": "first"}]), 5),
    "a sidecar ended after it": (spec(task("sh", "-c", "exit 6"), initContainers=[SIDECAR]), 6),
}
HINDERED: dict[str, tuple[dict[str, Any], str]] = {
    "no image": (spec(task("true", image="nowhere.invalid/none:1", imagePullPolicy="Never")), "ErrImageNeverPull"),
    "no image's name": (spec(task("true", image="A B")), "InvalidImageName"),
    "no secret": (
        spec(task("true", env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "a"}}}])),
        "CreateContainerConfigError",
    ),
}


def make(plane: ControlPlane, namespace: str, node: str, name: str, body: dict[str, Any]) -> None:
    document = {"metadata": {"name": name}, "spec": {**body, "nodeName": node}}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", document)


def seen(plane: ControlPlane, namespace: str, name: str, enough: Callable[[Pod], bool]) -> Pod:
    deadline = time.monotonic() + 150
    while True:
        document = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        found = msgspec.json.decode(json.dumps(document), type=Pod)
        if enough(found):
            return found
        assert time.monotonic() < deadline, document["status"]
        time.sleep(0.1)


def test_each_way_to_end_is_the_code_that_the_table_says(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str
) -> None:
    names = {case: f"end-{at}" for at, case in enumerate(ENDS)}
    for case, (body, _) in ENDS.items():
        make(control_plane, namespace, kubelet_node.name, names[case], body)
    found = {}
    for case, name in names.items():
        end = pod_exit(seen(control_plane, namespace, name, lambda pod: pod_exit(pod) is not None))
        assert end is not None
        found[case] = end.code
    assert found == {case: code for case, (_, code) in ENDS.items()}


def test_each_way_not_to_start_is_told(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str) -> None:
    names = {case: f"wait-{at}" for at, case in enumerate(HINDERED)}
    for case, (body, _) in HINDERED.items():
        make(control_plane, namespace, kubelet_node.name, names[case], body)
    for case, (_, reason) in HINDERED.items():
        why = start_failure(seen(control_plane, namespace, names[case], lambda pod: start_failure(pod) is not None))
        assert why is not None and why.reason.startswith(reason), case
        assert why.certain is (reason != "CreateContainerConfigError")


def test_a_pod_that_is_deleted_while_it_runs_ends_with_what_killed_it(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str
) -> None:
    script = "trap 'exit 9' TERM; echo ready; while true; do sleep 0.1; done"
    body = spec(task("sh", "-c", script), terminationGracePeriodSeconds=60)
    make(control_plane, namespace, kubelet_node.name, "doomed", body)
    path = f"/api/v1/namespaces/{namespace}/pods/doomed"
    finalizer = {"metadata": {"finalizers": ["corral.dev/test"]}}
    control_plane.request("PATCH", path, finalizer, content="application/merge-patch+json")
    seen(control_plane, namespace, "doomed", lambda pod: pod.status.phase == "Running")
    said = ("logs", "--namespace", namespace, "doomed")
    until(lambda: "ready" in control_plane.kubectl(*said).stdout or None, "word that the signal is waited for")
    control_plane.request("DELETE", path)
    try:
        end = pod_exit(seen(control_plane, namespace, "doomed", lambda pod: pod_exit(pod) is not None), gone=True)
        assert end is not None and end.code == 9
    finally:
        control_plane.request("PATCH", path, {"metadata": {"finalizers": None}}, content="application/merge-patch+json")
