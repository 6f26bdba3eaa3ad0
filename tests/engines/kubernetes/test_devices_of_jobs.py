"""Device requests on a cluster: named devices through claims, and counts where a device plugin chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from corral.kernel.errors import Conflict
from tests.endtoend.platform import Job
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import DEVICES, Kwok
from tests.testbeds.kubernetes.slices import DRIVER, TAINT, device, managed, publish, withdraw

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
NAMESPACE = "asking"


@pytest.fixture(scope="module")
def platform(
    control_plane: ControlPlane, kwok: Kwok, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnKubernetes]:
    """A server with one node of eight named devices under two PCIe switches, and one of eight counted ones."""
    alone = kwok.add_nodes(1, prefix="alone", devices=0, describe=managed, taints=[TAINT])
    shared = kwok.add_nodes(1, prefix="common", describe=lambda index: {"labels": {"nvidia.com/gpu.product": "h100"}})
    publish(control_plane, alone, [device(number) for number in range(8)])
    control_plane.add_namespace(NAMESPACE)
    made = OnKubernetes(tmp_path_factory.mktemp("server"), namespace=NAMESPACE)
    made.plane = control_plane
    made.up()
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    withdraw(control_plane, alone)
    for name in (*alone, *shared):
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def server(platform: OnKubernetes) -> Iterator[OnKubernetes]:
    """The same server for each test, with the former test's jobs removed, also if that test failed."""
    yield platform
    platform.clear()


def asked(name: str, *, replicas: int = 1, **more: Any) -> dict[str, Any]:
    wanted = {key: more.pop(key) for key in ("count", "ids", "model") if key in more}
    role = {"replicas": replicas, "resources": {"cpu": "1", "devices": wanted}, "command": "train"}
    return {"name": name, "framework": "shell", "roles": {"worker": role}, **more}


def given(server: OnKubernetes, job: Job) -> dict[str, list[str]]:
    """The devices of each of a job's pods by its claims, once all are allocated (kwok's pods run without waiting)."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
    deadline = time.monotonic() + 150
    while True:
        pods = server.pods(job)
        claims = {each["metadata"]["name"]: each for each in server.plane.request("GET", path)["items"]}
        if all("allocation" in claims[name].get("status", {}) for pod in pods for name in claimed(pod).values()):
            return {pod["metadata"]["name"]: devices(pod, claims) for pod in pods}
        assert time.monotonic() < deadline, f"not all claims of {len(pods)} running pods were ever allocated"
        time.sleep(0.1)


def claimed(pod: dict[str, Any]) -> dict[str, str]:
    """The claim's name by the name that the pod's containers use."""
    return {each["name"]: each["resourceClaimName"] for each in pod["spec"].get("resourceClaims", [])}


def devices(pod: dict[str, Any], claims: dict[str, Any]) -> list[str]:
    return sorted(
        result["device"]
        for use in pod["spec"]["containers"][0]["resources"].get("claims", [])
        for result in claims[claimed(pod)[use["name"]]]["status"]["allocation"]["devices"]["results"]
        if use.get("request", result["request"]) == result["request"]
    )


def running(server: OnKubernetes, document: dict[str, Any]) -> Any:
    return server.all_run(server.submit(document))


def stop(server: OnKubernetes, job: Any) -> None:
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"


def test_devices_by_their_names_are_those(server: OnKubernetes) -> None:
    names = [f"{DRIVER}/alone-0000/gpu-{number}" for number in (3, 6)]
    job = running(server, asked("named", ids=names))
    assert list(given(server, job).values()) == [["gpu-3", "gpu-6"]]
    stop(server, job)


def test_a_gang_inside_one_pcie_switch_is_there(server: OnKubernetes) -> None:
    taken = running(server, asked("taken", count=1))
    job = running(server, asked("close", replicas=4, count=1, topology={"required": "pcie-switch"}))
    four = sorted(each for own in given(server, job).values() for each in own)
    assert four in ([f"gpu-{number}" for number in range(4)], [f"gpu-{number}" for number in range(4, 8)])
    stop(server, job)
    stop(server, taken)


@pytest.mark.parametrize(
    "wish",
    [
        {"count": 2, "topology": {"required": "pcie-switch"}},
        {"ids": [f"{DEVICES}#0"]},
    ],
)
def test_where_a_plugin_chooses_a_wish_for_certain_devices_is_refused_and_told_why(
    server: OnKubernetes, wish: dict[str, Any]
) -> None:
    with pytest.raises(Conflict, match="on shared nodes the device plugin chooses the devices"):
        server.submit(asked("certain", model="h100", **wish))


def test_where_a_plugin_chooses_a_number_is_given(server: OnKubernetes) -> None:
    job = running(server, asked("number", count=8, model="h100"))
    (pod,) = server.pods(job)
    assert pod["spec"]["nodeName"] == "common-0000"
    assert pod["spec"]["containers"][0]["resources"]["limits"][DEVICES] == "8"
    stop(server, job)
