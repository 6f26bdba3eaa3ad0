"""The control plane of the tests itself: it starts, fails on request, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.testbeds.kubernetes import abandoned, binaries, images, remains
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.kwok import DEVICES, ENDS_AFTER, EXIT_CODE, Kwok
from tests.waiting import pause

pytestmark = pytest.mark.kubernetes
T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
ZONE = "topology.kubernetes.io/zone"


def until(
    look: Callable[[], T | None], what: str, *, seconds: float = 120, least: float = 0.02, most: float = 0.5
) -> T:
    """Poll `look` until it returns a value, with `least` to `most` seconds between; returns that."""
    begun = time.monotonic()
    while (found := look()) is None:
        assert time.monotonic() - begun < seconds, f"no {what} after {seconds:.0f} s"
        time.sleep(pause(begun, least=least, most=max(least, most)))
    return found


def pod(name: str, node: str, *command: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "task", "image": images.BUSYBOX, "command": list(command)}
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def in_phase(plane: ControlPlane, namespace: str, name: str, *phases: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        seen: dict[str, Any] = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return seen if seen["status"].get("phase") in phases else None

    return until(look, f"pod {name} that is {' or '.join(phases)}")


def gone(plane: ControlPlane, path: str) -> bool | None:
    with contextlib.suppress(Refused):
        plane.request("GET", path)
        return None
    return True


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(4, prefix="testbed", levels={ZONE: 2})
    yield made
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def test_the_server_says_its_version(control_plane: ControlPlane) -> None:
    assert control_plane.request("GET", "/version")["gitVersion"].startswith("v1.34.")
    assert "Server Version: v1.34." in control_plane.kubectl("version").stdout


def test_two_runs_at_once_build_a_program_once(tmp_path: Path) -> None:
    if reason := binaries.missing():
        pytest.skip(reason)
    words = [sys.executable, "-m", "tests.testbeds.kubernetes", "pause"]
    env = {**os.environ, "CORRAL_CACHE": str(tmp_path)}
    runs = [
        subprocess.Popen(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = "".join(run.communicate()[1] for run in runs)
    assert [run.returncode for run in runs] == [0, 0], said
    assert said.count("built pause in") == 1
    (built,) = (tmp_path / "kubernetes").glob("pause-*")
    assert [path.name for path in built.iterdir()] == ["pause"]


def test_claims_for_devices_are_served(control_plane: ControlPlane) -> None:
    served = control_plane.request("GET", "/apis/resource.k8s.io/v1")["resources"]
    assert {"resourceclaims", "resourceclaims/status", "resourceslices"} <= {entry["name"] for entry in served}


def test_a_user_without_a_role_is_refused(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig_for("nobody")
    refused = subprocess.run(
        [binaries.program("kubectl"), "--kubeconfig", kubeconfig, "get", "pods"], capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert 'User "nobody" cannot list resource "pods"' in refused.stderr


def test_played_nodes_have_devices_and_topology(control_plane: ControlPlane, nodes: list[str]) -> None:
    for name in nodes:
        until_ready(control_plane, name)
    seen = [control_plane.request("GET", f"/api/v1/nodes/{name}") for name in nodes]
    assert [node["status"]["allocatable"][DEVICES] for node in seen] == ["8"] * 4
    assert [node["metadata"]["labels"][ZONE] for node in seen] == ["zone-0", "zone-0", "zone-1", "zone-1"]


def ready(plane: ControlPlane, node: str) -> str:
    seen = plane.request("GET", f"/api/v1/nodes/{node}")["status"].get("conditions", ())
    return str({entry["type"]: entry["status"] for entry in seen}.get("Ready", ""))


def until_ready(plane: ControlPlane, node: str) -> None:
    until(lambda: ready(plane, node) == "True" or None, f"Ready node {node}")


def test_a_played_pod_runs_until_it_is_deleted(control_plane: ControlPlane, nodes: list[str], namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.request("POST", pods, pod("a", nodes[0]))
    seen = in_phase(control_plane, namespace, "a", "Running")
    assert "running" in seen["status"]["containerStatuses"][0]["state"]
    control_plane.request("DELETE", f"{pods}/a")
    until(lambda: gone(control_plane, f"{pods}/a"), "end of pod a")


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("9", "Failed")])
def test_a_played_pod_ends_as_its_annotations_say(
    control_plane: ControlPlane, nodes: list[str], namespace: str, code: str, phase: str
) -> None:
    annotations = {ENDS_AFTER: "100ms", EXIT_CODE: code}
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod("a", nodes[1], annotations=annotations))
    seen = in_phase(control_plane, namespace, "a", "Succeeded", "Failed")
    assert seen["status"]["phase"] == phase
    assert seen["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)


def test_a_played_node_is_lost_and_found(control_plane: ControlPlane, kwok: Kwok, nodes: list[str]) -> None:
    until_ready(control_plane, nodes[3])
    kwok.lose(nodes[3])
    assert ready(control_plane, nodes[3]) == "Unknown"
    kwok.find(nodes[3])
    until_ready(control_plane, nodes[3])


def test_writes_are_counted(control_plane: ControlPlane, namespace: str) -> None:
    before = control_plane.writes()
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})
    with pytest.raises(Refused) as refused:
        control_plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})
    assert refused.value.status == 409
    assert control_plane.writes() - before == {("create", "configmaps"): 1}


def test_a_killed_apiserver_comes_back_with_its_data_and_old_versions_are_gone() -> None:
    with ControlPlane(controllers="") as plane:
        with pytest.raises(Refused):
            plane.request("GET", "/api/v1/namespaces/default/configmaps/kept")
        old = plane.request("GET", "/api/v1/configmaps")["metadata"]["resourceVersion"]
        plane.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        for index in range(3):
            plane.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"more-{index}"}})
        page = plane.request("GET", "/api/v1/configmaps?limit=1")["metadata"]["continue"]
        plane.request("DELETE", "/api/v1/namespaces/default/configmaps/more-0")
        plane.compact()
        plane.kill_apiserver()
        with pytest.raises(OSError):
            plane.request("GET", "/readyz")
        plane.start_apiserver()
        assert plane.request("GET", "/api/v1/namespaces/default/configmaps/kept")["metadata"]["name"] == "kept"
        with pytest.raises(Refused) as refused:
            plane.request("GET", f"/api/v1/configmaps?limit=1&continue={page}")
        assert refused.value.status == 410
        answer = plane.request("GET", f"/api/v1/configmaps?watch=1&resourceVersion={old}&timeoutSeconds=5")
        assert (answer["type"], answer["object"]["code"]) == ("ERROR", 410)


def test_the_own_scheduler_places_pods_that_no_one_else_has(nodes_of_its_own: ControlPlane) -> None:
    nodes_of_its_own.request("POST", "/api/v1/namespaces/default/pods", pod("a", ""))
    assert in_phase(nodes_of_its_own, "default", "a", "Running")["spec"]["nodeName"] == "node-0000"


@pytest.fixture
def nodes_of_its_own() -> Iterator[ControlPlane]:
    with ControlPlane(scheduler=True) as plane, Kwok(plane) as played:
        played.add_nodes(1)
        yield plane


def test_nothing_of_a_control_plane_is_left() -> None:
    with ControlPlane() as plane:
        pids = [daemon.pid for daemon in (plane.etcd, plane.apiserver, plane.manager) if daemon is not None]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not plane.home.exists()


@pytest.mark.kubelet
def test_a_real_pod_exits_with_its_code(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.request("POST", pods, pod("a", kubelet_node.name, "sh", "-c", "echo begun; exit 3"))
    seen = in_phase(control_plane, namespace, "a", "Succeeded", "Failed")
    assert seen["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert control_plane.kubectl("logs", "--namespace", namespace, "a").stdout == "begun\n"


@pytest.mark.kubelet
def test_a_real_pod_reaches_the_apiserver(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str
) -> None:
    ask = r"printf 'GET / HTTP/1.0\r\n\r\n' | nc $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT"
    asking = pod("a", kubelet_node.name, "sh", "-c", ask)
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", asking)
    in_phase(control_plane, namespace, "a", "Succeeded")
    assert "to an HTTPS server" in control_plane.kubectl("logs", "--namespace", namespace, "a").stdout


@pytest.mark.kubelet
def test_a_command_runs_in_a_real_pod(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.request("POST", pods, pod("a", kubelet_node.name, "sleep", "600"))
    uid = in_phase(control_plane, namespace, "a", "Running")["metadata"]["uid"]
    ran = control_plane.kubectl(
        "exec", "--namespace", namespace, "a", "--", "sh", "-c", "hostname; exit 7", check=False
    )
    assert (ran.stdout, ran.returncode) == ("a\n", 7)
    assert kubelet_node.container_pids(uid)
    kubelet_node.restart_kubelet()
    assert in_phase(control_plane, namespace, "a", "Running")["status"]["containerStatuses"][0]["restartCount"] == 0
    control_plane.request("DELETE", f"{pods}/a")
    until(lambda: gone(control_plane, f"{pods}/a"), "end of pod a")
    until(lambda: not kubelet_node.container_pids(uid) or None, "end of the pod's processes")


@pytest.mark.kubelet
def test_nothing_of_a_node_is_left(control_plane: ControlPlane, namespace: str) -> None:
    with KubeletNode(control_plane, "leaves-nothing") as node:
        control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod("a", node.name, "sleep", "600"))
        in_phase(control_plane, namespace, "a", "Running")
        home, bridge, cgroup = str(node.home), node.bridge.name, node.cgroup.path.strip("/")
        assert home in Path("/proc/self/mountinfo").read_text()
        assert processes_with(home)
    assert not processes_with(home)
    assert home not in Path("/proc/self/mountinfo").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{cgroup}"))
    assert bridge not in subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
    assert not node.home.exists()
    control_plane.request("DELETE", f"/api/v1/nodes/{node.name}")


@pytest.mark.kubelet
def test_what_a_killed_test_left_of_a_node_is_removed_by_the_next(control_plane: ControlPlane, namespace: str) -> None:
    others = set(remains.orphans())
    words = [sys.executable, "-m", abandoned.__name__, "orphan", namespace]
    told = abandoned.told_of(control_plane, "orphan")
    killed = subprocess.run(words, input=told, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert killed.returncode == -signal.SIGKILL and not killed.stderr, killed.stderr
    (home,) = (str(home) for home in remains.orphans() if home not in others)
    assert processes_with(home)
    remains.sweep()
    assert not processes_with(home)
    assert home not in Path("/proc/self/mountinfo").read_text()
    assert not Path(home).exists()
    control_plane.request("DELETE", "/api/v1/nodes/orphan")


def processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if word in line:
                found.append(line)
    return found
