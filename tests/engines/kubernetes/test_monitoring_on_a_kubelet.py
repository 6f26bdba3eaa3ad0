"""The chart's Prometheus and Alertmanager run under a real kubelet, confined, with their data in a folder of the node."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engines.kubernetes.charts import TRIAL, Helm, Rendered, merged
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds import prometheus
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import python_tree

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.kubelet,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing()),
]
IMAGE = "corral.test/monitoring:1"
NAMES = ("corral-monitoring", "corral-monitoring-configuration")
USER = 65534
SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}}
ASKED = """\
import base64, json, sys, urllib.request
password = open("/etc/corral-monitoring/secret/password").read() if sys.argv[2] == "with" else "guessed"
known = base64.b64encode(f"corral:{password}".encode()).decode()
asked = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Basic {known}"})
try:
    print(urllib.request.urlopen(asked, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(json.dumps({"code": error.code}))
"""


def _tree(root: Path) -> Path:
    """Fill `root` with Debian's programs under the names that they have in images."""
    python_tree(root)
    for name, program in (("prometheus", "prometheus"), ("alertmanager", "prometheus-alertmanager")):
        shutil.copy2(prometheus.program(program), root / "usr/bin" / name)
    shutil.copytree(prometheus.templates(), root / prometheus.TEMPLATES)
    return root


@pytest.fixture
def installed(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
) -> Iterator[Rendered]:
    """The objects of monitoring alone, applied; the folder of the data belongs to its user, as `up` makes it."""
    kubelet_node.provide(IMAGE, _tree)
    data = kubelet_node.home / "monitoring"
    data.mkdir(mode=0o700)
    shutil.chown(data, USER, USER)
    monitoring: dict[str, Any] = {
        "enabled": True,
        "volume": {"hostPath": {"path": str(data), "type": "Directory"}},
        "nodeSelector": {"kubernetes.io/hostname": kubelet_node.name},
        "prometheus": {"image": IMAGE, "interval": "1s", "resources": SMALL},
        "alertmanager": {"image": IMAGE, "resources": SMALL},
    }
    values = merged(TRIAL, {"image": {"pullPolicy": "Never"}, "monitoring": monitoring})
    made = Helm(tmp_path).render(values, namespace=namespace)
    chosen = [thing for thing in made.things if thing["metadata"]["name"] in NAMES]
    with control_plane.scheduling([kubelet_node.name]):
        control_plane.kubectl("apply", "-n", namespace, "-f", "-", given=yaml.safe_dump_all(chosen))
        yield made
        control_plane.kubectl("delete", "-n", namespace, "--wait", "statefulset/corral-monitoring")
        until(lambda: not _pods(control_plane, namespace) or None, "end of the pod")


def _pods(plane: ControlPlane, namespace: str) -> list[Any]:
    found: list[Any] = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return found


def test_both_run_confined_and_ask_for_the_password(
    installed: Rendered, control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str
) -> None:
    said = control_plane.kubectl(
        "-n", namespace, "rollout", "status", "statefulset/corral-monitoring", "--timeout=240s", check=False
    )
    words = ["logs", "corral-monitoring-0", "--all-containers", "--tail=20", "--prefix"]
    story = control_plane.kubectl("-n", namespace, *words, check=False).stdout
    assert said.returncode == 0, said.stdout + said.stderr + story

    def asked(url: str, how: str) -> Any:
        program = ["exec", "corral-monitoring-0", "-c", "prometheus", "--", "python3", "-c", ASKED, url, how]
        return json.loads(control_plane.kubectl("-n", namespace, *program).stdout)

    for port, path in ((9090, "/api/v1/status/flags"), (9093, "/api/v2/status")):
        assert asked(f"http://127.0.0.1:{port}{path}", "guessed") == {"code": 401}
    flags = asked("http://127.0.0.1:9090/api/v1/status/flags", "with")["data"]
    assert flags["storage.tsdb.retention.time"] == "30d"

    def read() -> bool | None:
        targets = asked("http://127.0.0.1:9090/api/v1/targets", "with")["data"]["activeTargets"]
        health = {each["labels"]["job"]: each["health"] for each in targets}
        return health == {"corral": "down", "prometheus": "up", "alertmanager": "up"} or None

    until(read, "reading of both by Prometheus, and of no server", seconds=120)
    rules = asked("http://127.0.0.1:9090/api/v1/rules", "with")["data"]["groups"]
    assert [(group["name"], len(group["rules"])) for group in rules] == [("corral", 12)]
    assert (kubelet_node.home / "monitoring/prometheus/wal").stat().st_uid == USER
    assert (kubelet_node.home / "monitoring/alertmanager").stat().st_uid == USER
