"""DRA claims under a real kubelet, with `corral device-plugin` as the driver: the devices that containers get."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.inventory import Device
from corral.model.launch import TaskLaunch
from tests.engines.kubernetes.engine_harness import MERGE, Harness, launch, new_attempt, until
from tests.engines.kubernetes.test_device_plugin_on_a_node import DRIVER, Plugin
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.slices import MANAGED, TAINT

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.timeout(300)]
SEES = "env | grep -E 'NPU_VISIBLE|CORRAL_DEVICE_' | sort"


@contextlib.contextmanager
def managed(node: KubeletNode, plane: ControlPlane, folder: Path) -> Iterator[Plugin]:
    """The driver on a node that is Corral's alone while the block runs."""
    path = f"/api/v1/nodes/{node.name}"
    mine = {"metadata": {"labels": {MANAGED: "true"}}, "spec": {"taints": [TAINT]}}
    plane.request("PATCH", path, mine, content=MERGE)
    made = Plugin(plane, node, folder)
    made.start()
    yield made
    made.daemon.stop()
    shared = {"metadata": {"labels": {MANAGED: None}}, "spec": {"taints": None}}
    plane.request("PATCH", path, shared, content=MERGE)


@pytest.fixture(scope="module")
def plugin(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plugin]:
    with managed(kubelet_node, control_plane, tmp_path_factory.mktemp("plugin")) as made:
        yield made


@pytest.fixture
def at(control_plane: ControlPlane, plugin: Plugin, namespace: str, tmp_path: Path) -> Harness:
    return Harness(control_plane, namespace, tmp_path)


async def npus(at: Harness, plugin: Plugin) -> dict[str, Device]:
    """The node's NPUs by name, once Corral sees them."""

    async def look() -> dict[str, Device]:
        found = [each for each in (await at.engine.inventory()).nodes if each.name.endswith(f"/{plugin.node.name}")]
        devices = [each for node in found for each in node.devices if each.kind == "npu"]
        return {each.id.rpartition("/")[2]: each for each in devices if each.id.startswith(f"{DRIVER}/")}

    found: dict[str, Device] = await until(look)
    return found


async def gang(at: Harness, plugin: Plugin, *names: str) -> list[TaskLaunch]:
    """A job whose tasks on the node have one device each."""
    known, job = await npus(at, plugin), parse_attempt_id(new_attempt()).job
    script = f"{SEES}; sleep 600"
    return [
        launch(
            plugin.node.name,
            "sh",
            "-c",
            script,
            attempt=AttemptId(f"{job}.0.worker.{number}.0"),
            devices=(known[name],),
            beside=len(names) - 1,
        )
        for number, name in enumerate(names)
    ]


async def test_each_task_of_a_gang_sees_its_own_device_of_the_claim_they_share(at: Harness, plugin: Plugin) -> None:
    async with at:
        tasks = await gang(at, plugin, "npu-1", "npu-2", "npu-3", "npu-4")
        before, begun = at.plane.writes(), time.monotonic()
        await asyncio.gather(*(at.engine.start(each) for each in tasks))
        for each in tasks:
            await at.started(each.attempt)
        seconds, nudges = time.monotonic() - begun, at.engine._tending.nudged
        path = f"/api/v1/namespaces/{at.namespace}/events?fieldSelector=reason=FailedPrepareDynamicResources"
        races = len((await at.ask("GET", path))["items"])
        print(f"gang of 4 by one claim: all run after {seconds:.2f} s, {races} races lost, {nudges} nudges")
        print(at.plane.writes() - before)
        assert len(plugin.entries()) == 1
        for number, each in enumerate(tasks, 1):
            await until(lambda which=each, seen=f"NPU_VISIBLE_DEVICES={number}": seen in at.log(which.attempt))
            assert f"CORRAL_DEVICE_NPU_{number}=npu-{number}" in at.log(each.attempt)
            assert at.log(each.attempt).count("CORRAL_DEVICE_NPU") == 1
        await asyncio.gather(*(at.engine.stop(each.attempt, grace_seconds=0) for each in tasks))
        for each in tasks:
            await at.exited(each.attempt)
        await at.engine.forget([each.attempt for each in tasks])
        await until(lambda: not plugin.entries())
        await until(lambda: _none(at))


async def test_a_freed_device_of_a_shared_claim_goes_to_the_next_task(at: Harness, plugin: Plugin) -> None:
    async with at:
        first, second = await gang(at, plugin, "npu-1", "npu-2")
        await asyncio.gather(at.engine.start(first), at.engine.start(second))
        await asyncio.gather(at.started(first.attempt), at.started(second.attempt))
        await at.engine.stop(first.attempt, grace_seconds=0)
        await at.exited(first.attempt)
        retried = msgspec.structs.replace(first, attempt=AttemptId(f"{first.attempt[:-1]}1"))
        await at.engine.start(retried)
        await at.started(retried.attempt)
        await until(lambda: "NPU_VISIBLE_DEVICES=1" in at.log(retried.attempt))
        assert len(plugin.entries()) == 1


async def test_a_claim_that_the_kubelet_read_too_early_is_read_again(at: Harness, plugin: Plugin) -> None:
    """The status arrives late: without a nudge the kubelet would wait for minutes."""
    async with at:
        (alone,) = await gang(at, plugin, "npu-3")
        settle = at.engine._claiming.settle

        async def late(claim: Any) -> None:
            path = f"/api/v1/namespaces/{at.namespace}/events?fieldSelector=reason=FailedPrepareDynamicResources"

            async def failed() -> bool:
                return bool((await at.ask("GET", path))["items"])

            await until(failed)
            await settle(claim)

        at.engine._claiming.settle = late  # type: ignore[method-assign]
        await at.engine.start(alone)
        begun = time.monotonic()
        await at.started(alone.attempt)
        print(f"started {time.monotonic() - begun:.2f} s after its claim was given, {at.engine._tending.nudged} nudges")


async def test_a_pod_that_was_deleted_while_its_driver_was_away_goes_when_it_is_back(
    at: Harness, plugin: Plugin
) -> None:
    async with at:
        (alone,) = await gang(at, plugin, "npu-4")
        await at.engine.start(alone)
        await at.started(alone.attempt)
        plugin.daemon.kill()
        await at.engine.stop(alone.attempt, grace_seconds=0)
        await until(lambda: _deleting(at, alone.attempt))
        plugin.start()
        await at.exited(alone.attempt)
        await at.engine.forget([alone.attempt])
        await until(lambda: not plugin.entries())


NAMESPACE = "claimed"


@pytest.fixture
def server(
    control_plane: ControlPlane, plugin: Plugin, kubelet_node: KubeletNode, tmp_path: Path
) -> Iterator[OnKubernetes]:
    control_plane.add_namespace(NAMESPACE)
    made = OnKubernetes(tmp_path, namespace=NAMESPACE, gateway=kubelet_node.gateway)
    made.plane = control_plane
    made.up()
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def test_gangs_of_two_get_named_devices_and_none_is_ever_in_two_pods(server: OnKubernetes, plugin: Plugin) -> None:
    """Six gangs on four devices, checked from the API server's side: a running pod's devices are its own."""
    watch = Watch(server)
    script = f"{SEES}; sleep 1"
    role = {"replicas": 2, "resources": {"cpu": "100m", "devices": {"count": 1, "kind": "npu"}}, "command": script}
    jobs = [
        server.submit({"name": f"gang-{number}", "framework": "shell", "roles": {"worker": role}})
        for number in range(6)
    ]
    try:
        for job in jobs:
            assert server.ended(job)["state"] == "succeeded"
    finally:
        watch.stop()
    assert watch.twice == []
    for job in jobs:
        logs = [server.log(job, task) for task in ("worker-0", "worker-1")]
        numbers = [line.partition("=")[2] for log in logs for line in log.splitlines() if "NPU_VISIBLE" in line]
        assert len(numbers) == 2 and len(set(numbers)) == 2, logs


class Watch:
    """Polls the devices of pods that have not ended."""

    def __init__(self, server: OnKubernetes) -> None:
        self._server, self._over = server, threading.Event()
        self.twice: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        plane = self._server.plane
        while not self._over.wait(0.05):
            pods = [each for each in self._server.pods() if each["status"]["phase"] in ("Pending", "Running")]
            path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
            claims = {each["metadata"]["name"]: each for each in plane.request("GET", path)["items"]}
            held = Counter(device for pod in pods for device in _devices(pod, claims))
            self.twice += [device for device, count in held.items() if count > 1]


def _devices(pod: dict[str, Any], claims: dict[str, Any]) -> Iterator[str]:
    named = {each["name"]: each["resourceClaimName"] for each in pod["spec"].get("resourceClaims", ())}
    for use in pod["spec"]["containers"][0].get("resources", {}).get("claims", ()):
        allocated = claims.get(named[use["name"]], {}).get("status", {}).get("allocation", {})
        for result in allocated.get("devices", {}).get("results", ()):
            if use.get("request", result["request"]) == result["request"]:
                yield f"{result['driver']}/{result['pool']}/{result['device']}"


async def _none(at: Harness) -> bool:
    return not (await at.ask("GET", f"/apis/resource.k8s.io/v1/namespaces/{at.namespace}/resourceclaims"))["items"]


async def _deleting(at: Harness, attempt: AttemptId) -> bool:
    pod = await at.pod(attempt)
    return pod is not None and "deletionTimestamp" in pod["metadata"]
