"""The PyTorch demo as pods: a gang on DRA devices, with data from a store, through kills, restarts and stops."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from corral.engines.local import processes
from tests.engines.kubernetes.chronicle import Chronicle
from tests.engines.kubernetes.demo_platform import IMAGE, IMAGES, KEY, NAMESPACE, DemoPlatform
from tests.engines.kubernetes.object_store import object_store, relayed
from tests.engines.kubernetes.test_claims_on_a_kubelet import managed
from tests.engines.kubernetes.test_device_plugin_on_a_node import Plugin
from tests.engines.kubernetes.test_testbed import until
from tests.engines.slow_jobs import gang, looked_into
from tests.reserved import free_port
from tests.testbeds import debian
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.frameworks, pytest.mark.timeout(900)]
WORKERS = ["worker-0", "worker-1"]
LEARNED = 0.9
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"


@pytest.fixture(scope="module")
def plugin(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plugin]:
    with managed(kubelet_node, control_plane, tmp_path_factory.mktemp("plugin")) as made:
        yield made


@pytest.fixture(scope="module")
def platform(
    control_plane: ControlPlane, kubelet_node: KubeletNode, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DemoPlatform]:
    """The server, a signed-in user with the key of a store that has the digits, and a record of all changes."""
    if reason := debian.missing():
        pytest.skip(reason)
    folder, port = tmp_path_factory.mktemp("demo"), free_port()
    control_plane.add_namespace(NAMESPACE)
    with (
        relayed(kubelet_node, "server", port, port, folder),
        object_store(kubelet_node, folder) as store,
        Chronicle(control_plane, NAMESPACE) as chronicle,
    ):
        made = DemoPlatform(folder, kubelet_node, store, chronicle)
        made.plane, made.port = control_plane, str(port)
        made.up()
        made.corral("secret", "set", "store-key", given=KEY)
        yield made
        made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    account = chronicle.told()
    assert chronicle.faults == []
    assert account.twice == [] and account.most == made.most


@pytest.fixture
def demo(platform: DemoPlatform) -> Iterator[DemoPlatform]:
    """The same platform for each test, with the former test's jobs removed."""
    yield platform
    platform.clear()


def epochs(log: str) -> list[tuple[int, float, float]]:
    """The epochs in a log, each with loss and accuracy."""
    found = re.findall(r"epoch (\d+)/\d+ loss ([0-9.]+) accuracy ([0-9.]+) processes 2", log)
    return [(int(number), float(loss), float(accuracy)) for number, loss, accuracy in found]


def test_two_pods_learn_from_the_store_and_leave_their_model_there(demo: DemoPlatform, plugin: Plugin) -> None:
    job = demo.train("learning", epochs=5)
    demo.printed(job, "worker-0", r"epoch 1/5 ")
    pods, devices = demo.workers(job), demo.devices(job)
    assert sorted(pods) == sorted(devices) == WORKERS
    assert len(set(devices.values())) == 2
    assert {(driver, node) for driver, node, _ in devices.values()} == {("devices.corral.dev", demo.node.name)}
    named = {pod["spec"]["resourceClaims"][0]["resourceClaimName"] for pod in pods.values()}
    claims = {each["metadata"]["name"]: each["metadata"]["uid"] for each in demo.plane.request("GET", CLAIMS)["items"]}
    assert {claims[name] for name in named} == set(plugin.entries()), "what the driver has prepared"
    for task in WORKERS:
        seen = demo.corral("exec", job, task, "--", "sh", "-c", "echo $RANK $NPU_VISIBLE_DEVICES; pwd; id -u")
        assert seen.split()[:2] == [task[-1], devices[task][2].rpartition("-")[2]]
    assert "debian" in demo.corral("exec", job, "worker-1", "--", "cat", "/etc/os-release")
    demo.corral("exec", job, "worker-1", "--", "sh", "-c", "exit 7", code=7)
    assert KEY not in str(list(pods.values()))

    demo.go_on("learning")
    ended = demo.ended(job)
    log = demo.log(job, "worker-0")
    assert (ended["state"], ended["exit"]["code"]) == ("succeeded", 0), log
    assert f"training on {IMAGES * 3 // 4} images with 2 processes from epoch 1" in log
    numbers, losses, accuracies = zip(*epochs(log), strict=True)
    assert numbers == (1, 2, 3, 4, 5)
    assert losses[-1] < losses[0] and accuracies[-1] > LEARNED
    work = demo.until(job, lambda now: now["work"] is not None and now["work"]["step"] == 5)["work"]
    assert (work["progress"], work["batchSize"], work["loss"]) == (1, 64, pytest.approx(losses[-1], abs=1e-5))
    assert work["throughput"] > 0 and (work["gradientNoise"] or 1) > 0
    model = zipfile.ZipFile(BytesIO(demo.store.get("learning/model.pt")))
    assert model.testzip() is None and any(name.endswith("data.pkl") for name in model.namelist())
    assert "loss" not in demo.log(job, "worker-1")


def test_a_killed_container_has_the_gang_tried_again_from_its_checkpoint(demo: DemoPlatform, plugin: Plugin) -> None:
    job = demo.train("killed")
    demo.printed(job, "worker-0", r"epoch 1/3 ")
    first = demo.workers(job)
    for pid in demo.node.container_pids(first["worker-1"]["metadata"]["uid"]):
        if any("held.py" in word for word in processes.arguments(pid)):
            with contextlib.suppress(ProcessLookupError):  # it may have ended with another process
                os.kill(pid, signal.SIGKILL)
    demo.until(job, lambda now: now["attempt"] == 1 and now["tasks"]["running"] == len(WORKERS))
    assert len(set(demo.devices(job).values())) == 2
    demo.go_on("killed")
    ended = demo.ended(job)
    log = demo.log(job, "worker-0")
    assert (ended["state"], ended["exit"]["code"]) == ("succeeded", 0), log
    assert "with 2 processes from epoch 2" in log and epochs(log)[-1][0] == 3
    for task in WORKERS:
        (_, gone), (begun, _) = until(lambda task=task: demo.lives(job, task), "lives")
        assert 0 < gone < begun, "the second instance came after the first one's end"
    attempts = demo.attempts({"id": job}, "worker-1")
    assert [each["exit"]["code"] for each in attempts] == [137, 0]


def test_a_job_trains_on_while_the_kubelet_is_started_again(demo: DemoPlatform) -> None:
    job = demo.train("restarted")
    demo.printed(job, "worker-0", r"epoch 1/3 ")
    before = {task: pod["metadata"]["uid"] for task, pod in demo.workers(job).items()}
    demo.node.restart_kubelet()
    assert {task: pod["metadata"]["uid"] for task, pod in demo.workers(job).items()} == before
    demo.go_on("restarted")
    ended = demo.ended(job)
    log = demo.log(job, "worker-0")
    assert (ended["state"], ended["attempt"]) == ("succeeded", 0), log
    assert [number for number, _, _ in epochs(log)] == [1, 2, 3]
    assert [len(demo.attempts({"id": job}, task)) for task in WORKERS] == [1, 1]
    assert [len(demo.lives(job, task)) for task in WORKERS] == [1, 1]
    demo.store.get("restarted/model.pt")


def test_a_stopped_job_gives_its_claim_and_devices_back(demo: DemoPlatform, plugin: Plugin) -> None:
    free = demo.client.top()["free"]["devices"]
    job = demo.train("stopped")
    demo.printed(job, "worker-0", r"epoch 1/3 ")
    assert demo.client.top()["free"]["devices"] == free - 2
    demo.corral("stop", job)
    assert demo.ended(job)["state"] == "stopped"
    assert demo.client.top()["free"]["devices"] == free
    until(lambda: not demo.plane.request("GET", CLAIMS)["items"] or None, "end of the claim")
    until(lambda: not plugin.entries() or None, "end of the driver's entry")
    until(lambda: demo.pods() == [] or None, "end of all pods")


def test_why_a_gang_is_slow_or_hangs_is_told_and_its_node_is_measured(
    demo: DemoPlatform, plugin: Plugin, tmp_path: Path
) -> None:
    """The image lacks PyTorch and Corral's runtime: the libraries are a mount, the runtime is beside the task."""
    hang = demo.kept("slow") / "hang"
    resources = {"cpu": 1, "memory": "2Gi", "devices": {"count": 1, "kind": "npu"}}
    role = {"image": IMAGE, "resources": resources, "kubernetes": {"podTemplate": demo.mounts("slow")}}
    demo.most = len(plugin.devices())  # a benchmark takes all of its node
    job = gang("slow", demo.python / "python", "/kept/hang", **role)
    suite, nodes, measured = tmp_path / "suite.yaml", [f"kubernetes/{demo.node.name}"], ("cpu-stream", "disk-benchmark")
    figures = looked_into(demo, job, hang, suite, nodes, ("process-launch", *measured), "--image", IMAGE)
    for most in figures.values():
        assert 0 <= most["page cache"] < most["memory of the group"] <= 2048, f"of the container's own group: {most}"
        assert most["network sent"] > 0, f"the pod's own network: {most}"
