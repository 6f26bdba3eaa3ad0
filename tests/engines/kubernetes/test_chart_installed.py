"""The installed chart on a real cluster: its pods run under a kubelet, run a job, and keep jobs through upgrades."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from corral.kernel.errors import Unavailable
from tests.endtoend.platform import Job, Platform, one
from tests.engines.kubernetes.charts import CHART, Helm, merged
from tests.engines.kubernetes.test_testbed import until
from tests.reserved import free_port
from tests.testbeds.kubernetes import images, services
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.daemons import Daemon, answers
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.servertree import POSTGRES_USER, POSTGRESQL, SERVER, postgres_tree, server_tree
from tests.testbeds.postgresql import binaries

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.postgres, pytest.mark.timeout(1500)]
NAMESPACE = "installed"
DEVICES = {
    "apiVersion": "corral.dev/v1alpha1",
    "kind": "Devices",
    "driver": "installed.corral.dev",
    "devices": [{"kind": "npu", "count": 2}],
}
Found = TypeVar("Found")
SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}}


class Installed(Platform):
    """A server that the chart installed, reached through `kubectl port-forward` as its notes say."""

    def __init__(self, folder: Path, plane: ControlPlane, values: dict[str, Any]) -> None:
        super().__init__(folder)
        self.plane, self.values = plane, values
        self.helm = Helm(folder, plane)
        self._forward: Daemon | None = None

    def install(self) -> None:
        words = ["install", "corral", str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "900s"]
        self.helm.done(*words, values=self.values)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.forward()
        self.corral("login", self.link())
        token = self.corral("token", "create", "tests", "-o", "name").strip()
        from corral.client import Client

        self.client = Client(self.url, token)

    def upgrade(self, **values: Any) -> None:
        self.values = merged(self.values, values)
        words = ["upgrade", "corral", str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "900s"]
        self.helm.done(*words, values=self.values)
        self.forward()

    def forward(self) -> None:
        """Forward the service's port; repeated, because a forward ends with its pod."""
        self.leave()
        local = f"{self.url.rpartition(':')[2]}:8470"
        words = ["--kubeconfig", self.plane.kubeconfig, "-n", NAMESPACE, "port-forward", "service/corral", local]
        self._forward = Daemon("forward", [images.program("kubectl"), *words], self.folder)
        self._forward.start(lambda: answers(f"{self.url}/readyz", "true"))

    def leave(self) -> None:
        if self._forward is not None:
            self._forward.stop()

    def patiently(self, call: Callable[[], Found]) -> Found:
        """The answer of a call, repeated while the server asks for a retry; kubectl drops a forward at its first error."""

        def tried() -> Found | None:
            try:
                return call()
            except Unavailable:
                if self._forward is None or not self._forward.running:
                    self.forward()
                return None

        return until(tried, "answer", seconds=120)

    def submit(self, document: Mapping[str, Any], **options: Any) -> Job:
        return self.patiently(lambda: super(Installed, self).submit(document, **options))

    def until(self, job: Job | str, holds: Callable[[Job], bool]) -> Job:
        return self.patiently(lambda: super(Installed, self).until(job, holds))

    def ended(self, job: Job | str) -> Job:
        return self.patiently(lambda: super(Installed, self).ended(job))

    def log(self, job: Job | str, task: str = "") -> str:
        return self.patiently(lambda: super(Installed, self).log(job, task))

    def link(self) -> str:
        words = ["deployment/corral", "-c", "front", "--", "corral", "sign-in-link", "--url", self.url]
        return self.plane.kubectl("-n", NAMESPACE, "exec", *words).stdout.strip()

    def server_pods(self) -> list[dict[str, Any]]:
        selector = "labelSelector=app.kubernetes.io/component%3Dserver"
        found: list[dict[str, Any]] = self.plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?{selector}")[
            "items"
        ]
        return found

    def server_names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.server_pods() if "deletionTimestamp" not in pod["metadata"]]

    def said(self, pod: str) -> str:
        """The control log of one of the server's pods."""
        return self.plane.kubectl("-n", NAMESPACE, "logs", pod, "-c", "control", check=False).stdout

    def led(self, pod: str) -> int:
        """The last epoch that one of the server's pods led with; 0 when it never led, or its control restarted."""
        epochs = [json.loads(line)["epoch"] for line in self.said(pod).splitlines() if '"leading"' in line]
        return max(epochs, default=0)

    def leading(self, pods: list[str]) -> tuple[int, str] | None:
        """The pod that leads, and its epoch; an earlier leader has a smaller one in its log."""
        found = max((self.led(pod), pod) for pod in pods)
        return found if found[0] else None

    def pod_of(self, job: Job) -> dict[str, Any]:
        every = self.plane.request(
            "GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=corral.dev/job={job['id']}"
        )
        (found,) = every["items"]
        assert isinstance(found, dict)
        return found

    def story(self) -> str:
        """The pods' logs, for the message of a failure."""
        told = [self.plane.kubectl("-n", NAMESPACE, "get", "pods,events", "-o", "wide", check=False).stdout]
        for name in ("deployment/corral", "statefulset/corral-postgresql"):
            words = ["logs", name, "--all-containers", "--tail=40", "--prefix"]
            told.append(self.plane.kubectl("-n", NAMESPACE, *words, check=False).stdout)
        return "\n".join(told)


@pytest.fixture(scope="module")
def node(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> KubeletNode:
    """The node, with the images of two versions of Corral and of PostgreSQL."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: tests/testbeds/apt.sh postgresql")
    for name, fill in ((f"{SERVER}:1", server_tree), (POSTGRESQL, postgres_tree)):
        tree = tmp_path_factory.mktemp("tree")
        kubelet_node.import_tree(name, fill(tree))
        shutil.rmtree(tree)
    kubelet_node.ctr("images", "tag", f"{SERVER}:1", f"{SERVER}:2")
    return kubelet_node


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    blobs = node.home / "blobs"
    blobs.mkdir(mode=0o777)
    blobs.chmod(0o777)
    trial = {
        "enabled": True,
        "image": POSTGRESQL,
        "volume": {"emptyDir": {}},
        "user": POSTGRES_USER,
        "resources": SMALL,
    }
    values = {
        "image": {"repository": SERVER, "tag": "1", "pullPolicy": "Never"},
        "database": {"trial": trial},
        "blobs": {"volume": {"hostPath": {"path": str(blobs)}}},
        "nodeSelector": {"kubernetes.io/hostname": node.name},
        "jobs": {"defaultImage": images.BUSYBOX},
        "resources": {"front": SMALL, "control": SMALL},
        "objects": {"accounts": {NAMESPACE: "admin"}},
        "devicePlugin": {
            "enabled": True,
            "devices": yaml.safe_dump(DEVICES),
            "nodeSelector": {"kubernetes.io/hostname": node.name},
            "kubeletRoot": str(node.home / "kubelet"),
            "cdiRoot": str(node.cdi),
            "resources": SMALL,
        },
    }
    control_plane.add_namespace(NAMESPACE)
    with control_plane.scheduling(), contextlib.ExitStack() as stack:
        playing = services.played(control_plane, node)
        stack.callback(playing.stop)
        installed = Installed(folder, control_plane, values)
        stack.callback(installed.leave)
        try:
            installed.install()
        except BaseException:
            print(installed.story())
            raise
        yield installed
        installed.client.close()
        installed.helm.done("uninstall", "corral", "--namespace", NAMESPACE, "--wait")
        # Helm leaves CRDs behind, and the tests of objects start without them.
        control_plane.kubectl("delete", "customresourcedefinition", "unifiedjobs.corral.dev", "--ignore-not-found")
        # The kubelet removes the slices of a driver that is gone only after half a minute.
        control_plane.kubectl("delete", "resourceslices", "--field-selector", f"spec.driver={DEVICES['driver']}")
        left = control_plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets")["items"]
        assert {"corral-key", "corral-database"} <= {each["metadata"]["name"] for each in left}
        control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def here(node: KubeletNode) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node.name}}


def test_a_job_runs_in_the_cluster_that_corral_is_installed_in(server: Installed, node: KubeletNode) -> None:
    job = server.ran(one("first", "echo hello from $CORRAL_ROLE; exit 3", role=here(node)))
    assert (job["state"], job["exit"]["code"]) == ("failed", 3), server.story()
    assert server.log(job) == "hello from main\n"


def test_what_a_gang_needs_is_allowed(server: Installed, node: KubeletNode) -> None:
    """Peers and a secret need the runtime, a Secret and a ConfigMap: all within the chart's own permissions."""
    server.corral("secret", "set", "word", given="xyzzy")
    script = 'test "$WORD" = xyzzy && echo "$(peer:main-0:host)" is first'
    role = {**here(node), "replicas": 2, "image": f"{SERVER}:1", "secrets": [{"name": "word", "env": "WORD"}]}
    job = server.ran(one("gang", script, role=role))
    assert job["state"] == "succeeded", server.log(job) + server.story()


def test_somebody_looks_into_a_running_task(server: Installed, node: KubeletNode) -> None:
    job = server.submit(one("looked-at", "sleep 600", role=here(node)))
    server.until(job, lambda now: now["state"] == "running")
    assert "inside" in server.corral("exec", job["id"], "main-0", "--", "echo", "inside")
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"


def test_an_object_becomes_a_job(server: Installed, node: KubeletNode, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(one("object", "true", role=here(node))))
    server.plane.kubectl("apply", "-n", NAMESPACE, "-f", "-", given=server.corral("convert", str(file)))
    words = ["-n", NAMESPACE, "wait", "--for=condition=Complete", "--timeout=300s", "unifiedjob/object"]
    done = server.plane.kubectl(*words, check=False)
    assert done.returncode == 0, done.stderr + server.story()
    server.plane.kubectl("delete", "-n", NAMESPACE, "--timeout=300s", "unifiedjob/object")


def test_the_device_plugin_of_the_chart_publishes_what_it_was_told(server: Installed, node: KubeletNode) -> None:
    def published() -> list[str] | None:
        slices = server.plane.request("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
        specs = [each["spec"] for each in slices if each["spec"]["driver"] == DEVICES["driver"]]
        return [device["name"] for spec in specs for device in spec["devices"] if spec["nodeName"] == node.name] or None

    assert until(published, "published devices", seconds=120) == ["npu-0", "npu-1"]


def test_an_upgrade_keeps_jobs_accounts_and_logs(server: Installed, node: KubeletNode) -> None:
    script = "echo before; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo after"
    job = server.submit(one("kept", script, role=here(node)))
    server.until(job, lambda now: now["state"] == "running")
    uid = server.pod_of(job)["metadata"]["uid"]
    before = {pod["metadata"]["uid"] for pod in server.server_pods()}
    server.upgrade(image={"tag": "2"}, replicas=2)
    pods = server.server_pods()
    assert len(pods) == 2 and not before & {pod["metadata"]["uid"] for pod in pods}
    assert {each["image"] for pod in pods for each in pod["spec"]["containers"]} == {f"{SERVER}:2"}
    assert server.pod_of(job)["metadata"]["uid"] == uid
    server.corral("exec", job["id"], "main-0", "--", "touch", "/tmp/go")
    assert server.ended(job)["state"] == "succeeded", server.story()
    assert server.log(job) == "before\nafter\n"
    assert len(server.attempts(job, "main-0")) == 1


def test_losing_the_pod_that_leads_loses_nothing(server: Installed, node: KubeletNode) -> None:
    if server.values.get("replicas") != 2:
        server.upgrade(replicas=2)
    job = server.submit(one("outlives", "while [ ! -e /tmp/go ]; do sleep 0.2; done; echo done", role=here(node)))
    server.until(job, lambda now: now["state"] == "running")
    before = server.server_names()
    epoch, leading = until(lambda: server.leading(before), "pod that leads")
    server.plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{leading}?gracePeriodSeconds=1")
    other = next(name for name in before if name != leading)
    until(lambda: server.led(other) > epoch or None, "lead of the other pod")
    until(
        lambda: [ready(pod) for pod in server.server_pods()] == [True, True] or None, "two ready servers", seconds=240
    )
    server.forward()
    server.corral("exec", job["id"], "main-0", "--", "touch", "/tmp/go")
    assert server.ended(job)["state"] == "succeeded", server.story()
    assert server.log(job) == "done\n"


def ready(pod: dict[str, Any]) -> bool:
    conditions = {entry["type"]: entry["status"] for entry in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
