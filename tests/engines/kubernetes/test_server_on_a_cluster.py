"""A server on a cluster: submitted jobs run as pods, and a killed server loses and doubles none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corral import supervisor
from corral.kernel.errors import Conflict
from tests.endtoend.platform import Job, Platform, one
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.kwok import ENDS_AFTER, EXIT_CODE, Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
NAMESPACE = "served"


class OnKubernetes(Platform):
    """A server whose tasks are pods."""

    plane: ControlPlane
    port = "0"
    kubeconfig: Path | None = None
    """The server's account on the cluster; the administrator's by default."""

    def __init__(
        self, folder: Path, *, namespace: str, image: str = images.BUSYBOX, gateway: str = "127.0.0.1"
    ) -> None:
        super().__init__(folder)
        self.namespace, self._image, self._gateway = namespace, image, gateway

    def options(self, port: str = "") -> list[str]:
        cluster = [
            "--engine",
            "kubernetes",
            "--kubeconfig",
            str(self.kubeconfig or self.plane.kubeconfig),
            "--namespace",
            self.namespace,
        ]
        where = ["--port", port or self.port, "--data", str(self.data), "--default-image", self._image]
        return [
            "--detach",
            *where,
            *cluster,
            "--advertise",
            f"http://{self._gateway}:{port or self.port}",
            "-o",
            "json",
        ]

    def pods(self, job: Job | None = None) -> list[dict[str, Any]]:
        """The pods of a job, or all: pods of ended jobs may still be there, until their logs are kept."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        chosen = f"?labelSelector=corral.dev/job={job['id']}" if job else ""
        found: list[dict[str, Any]] = self.plane.request("GET", path + chosen)["items"]
        return found

    def end_pods(self, code: str = "0", *, chosen: Callable[[dict[str, str]], bool] = lambda labels: True) -> None:
        """Make kwok end every living pod with this exit code, or those whose labels are chosen."""
        for pod in self.pods():
            meta = pod["metadata"]
            ends = "deletionTimestamp" in meta or pod["status"]["phase"] in ("Succeeded", "Failed")
            if ends or not chosen(meta["labels"]):  # what ends may be gone before it is written
                continue
            path = f"/api/v1/namespaces/{self.namespace}/pods/{meta['name']}"
            body = {"metadata": {"annotations": {ENDS_AFTER: "10ms", EXIT_CODE: code}}}
            self.plane.request("PATCH", path, body, content="application/merge-patch+json")

    def kill_control(self) -> None:
        """Kill control, as a crash would."""
        os.kill(supervisor.children_of(self.pid)["control"], signal.SIGKILL)


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(2, prefix="served", levels={"topology.kubernetes.io/rack": 1})
    yield made
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture(scope="module")
def platform(
    control_plane: ControlPlane, nodes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnKubernetes]:
    control_plane.add_namespace(NAMESPACE)
    made = OnKubernetes(tmp_path_factory.mktemp("server"), namespace=NAMESPACE)
    made.plane = control_plane
    made.up()
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture
def server(platform: OnKubernetes) -> Iterator[OnKubernetes]:
    """The same server for each test, with the former test's jobs removed, also if that test failed."""
    yield platform
    platform.clear()


def gang(name: str, replicas: int = 2, **fields: Any) -> dict[str, Any]:
    role = {"replicas": replicas, "resources": {"cpu": "1", "devices": 8}, "command": "train"}
    return {"name": name, "framework": "shell", "roles": {"worker": role}, **fields}


def test_a_gang_gets_whole_nodes_and_succeeds(server: OnKubernetes, nodes: list[str]) -> None:
    job = server.submit(gang("both"))
    server.all_run(job)
    assert sorted(pod["spec"]["nodeName"] for pod in server.pods(job)) == sorted(nodes)
    server.end_pods()
    assert server.ended(job)["state"] == "succeeded"
    until(lambda: server.pods() == [] or None, "end of all pods, whose logs are kept first")


def test_what_pods_write_to_their_nodes_is_bounded_by_default_and_by_what_their_roles_reserve(
    server: OnKubernetes,
) -> None:
    small = {"replicas": 1, "resources": {"cpu": "1", "devices": 8}, "command": "write"}
    large = {**small, "resources": {"cpu": "1", "devices": 8, "disk": "300Gi"}}
    job = server.submit({"name": "writers", "framework": "shell", "roles": {"small": small, "large": large}})
    server.all_run(job)
    given = {
        pod["metadata"]["labels"]["corral.dev/role"]: [
            pod["spec"]["containers"][0]["resources"][kind]["ephemeral-storage"] for kind in ("requests", "limits")
        ]
        for pod in server.pods(job)
    }
    assert given == {"small": ["0", str(256 * 2**30)], "large": [str(300 * 2**30), str(300 * 2**30)]}
    server.end_pods()
    assert server.ended(job)["state"] == "succeeded"
    until(lambda: server.pods() == [] or None, "end of all pods, whose logs are kept first")


def test_a_gang_that_fits_no_rack_is_refused_and_told_why(server: OnKubernetes) -> None:
    with pytest.raises(Conflict, match="16 devices inside one rack"):
        server.submit(gang("close", topology={"required": "rack"}))
    assert server.pods() == []


def test_a_killed_server_finds_its_pods_and_their_ends(server: OnKubernetes) -> None:
    job = server.submit(gang("survivor"))
    server.all_run(job)
    before = sorted(pod["metadata"]["uid"] for pod in server.pods(job))
    server.kill_control()
    server.end_pods()
    assert server.ended(job)["state"] == "succeeded"
    assert len(before) == 2
    tasks = server.tasks(job)
    assert [len(server.attempts(job, task)) for task in tasks] == [1, 1]


def test_a_pod_deleted_by_hand_is_tried_again(server: OnKubernetes) -> None:
    job = server.submit(gang("retried", replicas=1))
    server.all_run(job)
    (pod,) = server.pods(job)
    server.plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    old = pod["metadata"]["uid"]
    until(lambda: [each for each in server.pods(job) if each["metadata"]["uid"] != old] or None, "another pod")
    assert len(server.attempts(job, "worker-0")) == 2
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"
    until(lambda: server.pods() == [] or None, "end of all pods")


def test_a_server_without_an_address_for_pods_is_refused(server: OnKubernetes, tmp_path: Path) -> None:
    words = ["up", "--detach", "--data", str(tmp_path / "d"), "--port", "0", "--engine", "kubernetes"]
    assert "--advertise" in server.refused(*words, code=2)


def test_a_cluster_that_cannot_be_reached_is_said_at_the_start(server: OnKubernetes, tmp_path: Path) -> None:
    words = ["up", "--detach", "--data", str(tmp_path / "d"), "--port", "0", "--engine", "kubernetes"]
    said = server.refused(*words, "--advertise", "http://x", "--kubeconfig", str(tmp_path / "none"), code=2)
    assert "kubeconfig" in said


@pytest.mark.kubelet
def test_a_job_runs_in_a_real_container(server: OnKubernetes, kubelet_node: KubeletNode) -> None:
    selector = {"nodeSelector": {"kubernetes.io/hostname": kubelet_node.name}}
    real = one("real", "echo hello from $CORRAL_ROLE; exit 5", role=selector)
    job = server.ran(real, wait_for_capacity=True)  # the node may be new
    assert (job["state"], job["exit"]["code"]) == ("failed", 5)
    assert server.log(job) == "hello from main\n"
