"""`corral doctor` on a real cluster, in order and with common faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.engines.kubernetes.api.permissions import FOR_DEVICES, NEEDED, Permission
from tests.endtoend.platform import ROOT, Platform
from tests.reserved import free_port
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.kwok import Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


class Doctor:
    """Runs `corral doctor` on the session's cluster."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self._platform = Platform(folder)

    def says(self, *words: str, kubeconfig: Path | None = None) -> dict[str, list[tuple[str, str]]]:
        """Its findings by name: state and message; the exit code shows whether any is bad."""
        file = str(kubeconfig or self.plane.kubeconfig)
        done = self._platform.run(
            *("doctor", "-o", "json", "--data", str(self._platform.data), "--engine", "kubernetes"),
            *("--kubeconfig", file, *words),
        )
        assert done.stdout.startswith("["), done.stderr
        found: dict[str, list[tuple[str, str]]] = {}
        for each in json.loads(done.stdout):
            found.setdefault(each["name"], []).append((each["state"], each["message"]))
        bad = any(state == "bad" for told in found.values() for state, _ in told)
        assert done.returncode == (4 if bad else 0)
        return found


@pytest.fixture
def doctor(control_plane: ControlPlane, tmp_path: Path) -> Doctor:
    return Doctor(control_plane, tmp_path)


def test_a_cluster_is_told_part_by_part(doctor: Doctor, namespace: str, kwok: Kwok) -> None:
    names = kwok.add_nodes(2, prefix="checked")
    try:
        managed = {"metadata": {"labels": {"corral.dev/managed": "true"}}}
        merge = "application/merge-patch+json"
        doctor.plane.request("PATCH", f"/api/v1/nodes/{names[0]}", managed, content=merge)
        said = doctor.says("--namespace", namespace, "--no-probe")
        assert said["half managed"] == [
            ("bad", f"labelled, but without the taint corral.dev/managed:NoSchedule: {names[0]}")
        ]
        taint = {"spec": {"taints": [{"key": "corral.dev/managed", "effect": "NoSchedule"}]}}
        doctor.plane.request("PATCH", f"/api/v1/nodes/{names[0]}", taint, content=merge)
        said = doctor.says("--namespace", namespace, "--no-probe")
    finally:
        for name in names:
            doctor.plane.request("DELETE", f"/api/v1/nodes/{name}")
    assert said["version"][0][1].startswith("Kubernetes v1.34")
    assert said["DRA"][0][0] == said["permissions"][0][0] == said["namespace"][0][0] == said["clock"][0][0] == "good"
    assert names[0] in said["managed nodes"][0][1]
    assert "nvidia.com/gpu (" in said["device plugins"][0][1]
    assert said["storage class"] == [("note", "no default (there are: none); name one for claims")]


def test_every_missing_verb_is_named(doctor: Doctor, namespace: str) -> None:
    stranger = doctor.plane.kubeconfig_for("stranger")
    said = doctor.says("--namespace", namespace, "--no-probe", kubeconfig=stranger)
    missing = [message for _, message in said["permission"]]
    assert f"missing: create pods in namespace {namespace}, for tasks" in missing
    assert f"missing: get pods/log in namespace {namespace}, for logs" in missing
    assert len(missing) == sum(len(permission.verbs) for permission in NEEDED + FOR_DEVICES)


def test_a_missing_namespace_and_a_cluster_that_does_not_answer(doctor: Doctor, tmp_path: Path) -> None:
    assert "kubectl create namespace nowhere" in doctor.says("--namespace", "nowhere")["namespace"][0][1]
    config = yaml.safe_load(doctor.plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    (tmp_path / "gone").write_text(yaml.safe_dump(config))
    assert doctor.says(kubeconfig=tmp_path / "gone")["cluster"][0][0] == "bad"


@pytest.mark.kubelet
def test_a_pod_shows_whether_images_and_the_server_are_in_reach(
    doctor: Doctor, namespace: str, kubelet_node: KubeletNode
) -> None:
    where = ("--namespace", namespace, "--probe-node", kubelet_node.name, "--default-image", images.BUSYBOX)
    said = doctor.says(*where, "--advertise", f"http://{kubelet_node.gateway}:9")
    state, message = said["registry"][0]
    assert (state, images.BUSYBOX in message and kubelet_node.name in message) == ("bad", True)
    left = doctor.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert all("deletionTimestamp" in pod["metadata"] for pod in left)


@pytest.mark.parametrize("permission", NEEDED + FOR_DEVICES, ids=lambda permission: permission.title)
def test_the_chart_grants_what_the_engine_needs(permission: Permission) -> None:
    text = (ROOT / "deploy" / "chart" / "templates" / "permissions.yaml").read_text()
    granted = [
        yaml.safe_load(line[2:]) for line in text.splitlines() if line.startswith("- {apiGroups:") and "{{" not in line
    ]
    resource = "/".join(filter(None, (permission.resource.plural, permission.subresource)))
    for verb in permission.verbs:
        said = f"{verb} {resource}: {permission.purpose}"
        assert any(_grants(rule, permission.resource.group, resource, verb) for rule in granted), said


def _grants(rule: dict[str, Any], group: str, resource: str, verb: str) -> bool:
    return group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
