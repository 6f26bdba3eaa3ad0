"""A real API server takes what `corral deploy up` applies: the chart by values of a list, and local volumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.deploy.hosts.reader import Hosts, load_hosts
from corral.deploy.steps.bundle import Bundle
from corral.deploy.steps.installation import Installation
from corral.deploy.steps.volumes import objects_text
from tests.engines.kubernetes.charts import CHART, Helm
from tests.testbeds.kubernetes.controlplane import ControlPlane

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
LIST = """\
cluster: lab
hosts:
  head: {address: 10.0.0.1, roles: [control-plane]}
  gpu1: {address: 10.0.0.2, roles: [worker]}
volumes:
  scratch: {host: gpu1, folder: /data/scratch, size: 500Gi}
corral:
  host: gpu1
  image: registry.example/corral:1
  postgresql: docker.io/library/postgres:17
  nodeAgents: true
  devices: |
    apiVersion: corral.dev/v1alpha1
    kind: Devices
    devices: [{kind: npu, count: 2}]
"""


def listed() -> Hosts:
    return load_hosts(LIST)


def test_the_chart_by_a_list_s_values(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    chosen = listed()
    assert chosen.corral is not None
    values = Installation(chosen, chosen.corral, "10.0.0.1").values(Bundle("x86_64", (), ()))
    helm = Helm(tmp_path, control_plane)
    helm.done("install", "corral", str(CHART), "--namespace", namespace, "--dry-run=server", values=values)
    made = helm.render(values, namespace=namespace)
    assert {thing["metadata"]["name"] for thing in made.of("DaemonSet")} == {
        "corral-device-plugin",
        "corral-node-agent",
    }
    words = ["apply", "--namespace", namespace, "--dry-run=server", "--validate=strict", "-f", "-"]
    said = control_plane.kubectl(*words, given=made.text).stdout
    assert said.count("(server dry run)") == len(made.things)


def test_local_volumes(control_plane: ControlPlane) -> None:
    words = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"]
    said = control_plane.kubectl(*words, given=objects_text(listed())).stdout
    assert said.split() == [
        "storageclass.storage.k8s.io/corral-local", "created", "(server", "dry", "run)",
        "persistentvolume/scratch", "created", "(server", "dry", "run)",
    ]  # fmt: skip
