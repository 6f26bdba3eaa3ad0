"""`corral device-plugin` under a real kubelet with containerd: the test allocates claims, containers see the devices."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.devices.dra.health_check import check
from corral.devices.dra.kubelet_server import READY
from corral.kernel.errors import Unavailable
from corral.spec.devices_document import load_devices
from tests.engines.kubernetes.test_testbed import gone, until
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.daemons import Daemon
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]
ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "device-plugin.md"
DRIVER = "devices.corral.dev"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
FINALIZER = "resource.kubernetes.io/delete-protection"
SEES = "env | grep -E 'CORRAL_|NPU_' | sort; ls -l /dev/card0 2>/dev/null; cat /opt/words 2>/dev/null; true"


def blocks(page: Path) -> list[list[dict[str, Any]]]:
    """The documents of each YAML block of a page."""
    parts = page.read_text().split("```yaml\n")[1:]
    return [list(yaml.safe_load_all(part.split("```", 1)[0])) for part in parts]


class Plugin:
    """The program itself on the node, with the permissions of its page."""

    def __init__(self, plane: ControlPlane, node: KubeletNode, home: Path) -> None:
        self.plane, self.node, self.home = plane, node, home
        self.file = home / "devices.yaml"
        (home / "words").write_text("from the machine\n")
        self.describe(4)
        self._options = ["--describe", str(self.file), "--kubelet-root", str(node.home / "kubelet")]
        self._options += ["--cdi-dir", str(node.cdi), "--node", node.name]
        command = [sys.executable, "-m", "corral.cli.main", "device-plugin", *self._options]
        command += ["--kubeconfig", str(allowed(plane))]
        self.daemon = Daemon("device-plugin", command, home, {"PYTHONPATH": str(ROOT)})

    def describe(self, count: int, **more: Any) -> None:
        """Describe `count` NPUs and one card on the node."""
        npu = {"kind": "npu", "model": "a2", "count": count, "visible": "NPU_VISIBLE_DEVICES", "cells": {"numa": 1}}
        card: dict[str, Any] = {"kind": "card", "deviceNodes": [{"path": "/dev/card0", "host": "/dev/null"}]}
        card["mounts"] = [{"host": str(self.home / "words"), "path": "/opt/words"}]
        beside = self.file.with_suffix(".new")
        beside.write_text(yaml.safe_dump({"kind": "Devices", "devices": [card, {**npu, **more}]}))
        beside.rename(self.file)

    def check(self, what: str) -> int:
        command = [sys.executable, "-m", "corral.cli.main", "device-plugin", *self._options, "--check", what]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False).returncode

    def start(self) -> float:
        """Start it and wait until the kubelet has registered it and its slices exist."""
        return self.daemon.start(self._ready)

    def _ready(self) -> bool:
        with contextlib.suppress(Unavailable):
            return check(self.node.home / "kubelet", DRIVER, READY, seconds=30)
        return False

    def said(self, words: str) -> bool:
        return words in self.daemon.tail(1_000_000)

    def slices(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.plane.request(
            "GET", f"{SLICES}?fieldSelector=spec.nodeName={self.node.name}"
        )["items"]
        return found

    def devices(self) -> set[str]:
        return {device["name"] for found in self.slices() for device in found["spec"].get("devices") or []}

    def documents(self) -> list[str]:
        return [path.name for path in self.node.cdi.glob(f"{DRIVER}-*")]

    def entries(self) -> list[str]:
        return [path.stem for path in (self.node.plugins / DRIVER / "claims").glob("*.json")]


def allowed(plane: ControlPlane) -> Path:
    """A kubeconfig with exactly the page's rules."""
    role = next(each for each in blocks(PAGE)[1] if each["kind"] == "ClusterRole")
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": role["metadata"]["name"]},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "device-plugin"}],
    }
    with contextlib.suppress(Refused):  # another module of this session has made them
        plane.request("POST", f"/apis/{group}/v1/clusterroles", role)
        plane.request("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    return plane.kubeconfig_for("device-plugin")


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plugin]:
    plugin = Plugin(control_plane, kubelet_node, tmp_path_factory.mktemp("plugin"))
    print(f"device plugin ready after {plugin.start():.2f} s")
    yield plugin
    plugin.daemon.stop()


@pytest.fixture
def plugin(running: Plugin) -> Iterator[Plugin]:
    running.start()
    yield running
    running.describe(4)


class Claims:
    """Corral's writes for a pod with devices, in their order."""

    def __init__(self, plane: ControlPlane, node: str, namespace: str) -> None:
        self.plane, self.node = plane, node
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
        self.namespace = namespace

    def claim(self, name: str, requests: Sequence[str]) -> None:
        exactly = {"deviceClassName": DRIVER}
        spec = {"devices": {"requests": [{"name": request, "exactly": exactly} for request in requests]}}
        self.plane.request("POST", self.claims, {"metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": spec})

    def pod(self, name: str, claim: str, command: str, request: str = "") -> str:
        wanted = {"name": "k", **({"request": request} if request else {})}
        container = {"name": "task", "image": images.BUSYBOX, "command": ["sh", "-c", command]}
        container["resources"] = {"claims": [wanted]}
        spec = {"nodeName": self.node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        spec |= {"containers": [container], "resourceClaims": [{"name": "k", "resourceClaimName": claim}]}
        return str(self.plane.request("POST", self.pods, {"metadata": {"name": name}, "spec": spec})["metadata"]["uid"])

    def allocate(self, claim: str, devices: dict[str, str], pods: dict[str, str]) -> None:
        results = [
            {"request": request, "driver": DRIVER, "pool": self.node, "device": device}
            for request, device in devices.items()
        ]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.node]}]}
        allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}
        reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in pods.items()]
        patch = {"status": {"allocation": allocation, "reservedFor": reserved}}
        self.plane.request("PATCH", f"{self.claims}/{claim}/status", patch, content="application/merge-patch+json")

    def one(self, name: str, device: str, command: str) -> float:
        """Create a claim of one device and its pod; returns the pod's creation time."""
        self.claim(name, ["r"])
        made = time.monotonic()
        self.allocate(name, {"r": device}, {name: self.pod(name, name, command)})
        return made

    def nudge(self, pod: str) -> None:
        patch = {"metadata": {"annotations": {"corral.dev/nudge": str(time.monotonic_ns())}}}
        self.plane.request("PATCH", f"{self.pods}/{pod}", patch, content="application/merge-patch+json")

    def nudged(self, pod: str, *phases: str) -> dict[str, Any]:
        """The pod once it is in one of the phases; nudges it every second in case of a lost race with the kubelet."""
        nudged = time.monotonic()

        def look() -> dict[str, Any] | None:
            nonlocal nudged
            seen: dict[str, Any] = self.plane.request("GET", f"{self.pods}/{pod}")
            if seen["status"].get("phase") in phases:
                return seen
            if time.monotonic() - nudged > 1:
                self.nudge(pod)
                nudged = time.monotonic()
            return None

        return until(look, f"pod {pod} that is {' or '.join(phases)}")

    def log(self, pod: str) -> str:
        return self.plane.kubectl("logs", "--namespace", self.namespace, pod).stdout

    def printed(self, pod: str, words: str) -> str:
        """The pod's log once it contains these words: a running pod may have printed nothing yet."""

        def look() -> str | None:
            said = self.log(pod)
            return said if words in said else None

        return until(look, f"{words!r} in the log of {pod}")

    def events(self, pod: str, reason: str) -> str:
        selector = f"fieldSelector=involvedObject.name={pod},reason={reason}"
        found = self.plane.request("GET", f"/api/v1/namespaces/{self.namespace}/events?{selector}")["items"]
        return "\n".join(event["message"] for event in found)

    def delete(self, *pods: str, claims: Sequence[str] = ()) -> None:
        for pod in pods:
            self.plane.request("DELETE", f"{self.pods}/{pod}")
        for pod in pods:
            until(lambda pod=pod: gone(self.plane, f"{self.pods}/{pod}"), f"end of pod {pod}")
        for claim in claims:
            patch = {"metadata": {"finalizers": None}}
            with contextlib.suppress(Refused):
                self.plane.request("PATCH", f"{self.claims}/{claim}", patch, content="application/merge-patch+json")
            with contextlib.suppress(Refused):
                self.plane.request("DELETE", f"{self.claims}/{claim}")


@pytest.fixture
def claims(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str) -> Claims:
    return Claims(control_plane, kubelet_node.name, namespace)


def freed(plugin: Plugin) -> Callable[[], bool | None]:
    return lambda: (not plugin.documents() and not plugin.entries()) or None


def test_the_nodes_slices_say_what_was_described(plugin: Plugin) -> None:
    (found,) = plugin.slices()
    assert plugin.devices() == {"card-0", "npu-1", "npu-2", "npu-3", "npu-4"}
    assert found["spec"]["pool"]["name"] == plugin.node.name
    npu = next(device for device in found["spec"]["devices"] if device["name"] == "npu-3")
    assert npu["attributes"]["model"] == {"string": "a2"} and npu["attributes"]["numa"] == {"string": "2"}
    assert [plugin.check(what) for what in ("live", "ready")] == [0, 0]


def test_a_container_sees_the_device_of_its_claim(plugin: Plugin, claims: Claims) -> None:
    made = claims.one("a", "npu-3", SEES)
    claims.nudged("a", "Succeeded")
    print(f"pod made to ended with a device: {time.monotonic() - made:.2f} s")
    assert claims.log("a").splitlines() == [
        "CORRAL_DEVICES=3",
        "CORRAL_DEVICE_NPU_3=npu-3",
        "CORRAL_REQUEST_R=3",
        "NPU_VISIBLE_DEVICES=3",
    ]
    claims.delete("a", claims=["a"])
    until(freed(plugin), "end of the claim's document and entry")


def test_a_container_sees_device_files_and_mounts(plugin: Plugin, claims: Claims) -> None:
    claims.one("a", "card-0", f"{SEES}; echo gone > /dev/card0 && echo written")
    claims.nudged("a", "Succeeded", "Failed")
    said = claims.log("a")
    assert "crw" in said and "from the machine" in said and said.endswith("written\n")
    claims.delete("a", claims=["a"])


def test_a_gang_on_one_node_shares_a_claim_and_each_rank_sees_its_own(plugin: Plugin, claims: Claims) -> None:
    ranks = {f"rank-{rank}": f"npu-{rank + 1}" for rank in range(4)}
    claims.claim("gang", list(ranks))
    pods = {rank: claims.pod(rank, "gang", f"{SEES}; sleep 600", request=rank) for rank in ranks}
    claims.allocate("gang", ranks, pods)
    for rank, device in ranks.items():
        claims.nudged(rank, "Running")
        number = device[-1]
        name = f"CORRAL_REQUEST_{rank.upper().replace('-', '_')}"
        said = claims.printed(rank, f"NPU_VISIBLE_DEVICES={number}\n")
        assert f"{name}={number}\n" in said
        assert said.count("CORRAL_DEVICE_NPU") == 1
    assert len(plugin.entries()) == 1
    claims.delete(*ranks, claims=["gang"])
    until(freed(plugin), "end of the gang's document")


def test_a_device_in_two_claims_runs_once_and_the_other_pod_is_told_who_has_it(plugin: Plugin, claims: Claims) -> None:
    claims.one("first", "npu-1", "sleep 600")
    claims.nudged("first", "Running")
    claims.one("second", "npu-1", "echo mine")
    told = "Device npu-1 is prepared for claim"

    def refused() -> bool | None:
        claims.nudge("second")
        return told in claims.events("second", "FailedPrepareDynamicResources") or None

    until(refused, "event that says who has the device")
    assert f"{claims.namespace}/first" in claims.events("second", "FailedPrepareDynamicResources")
    assert len(plugin.entries()) == 1
    claims.delete("first", claims=["first"])
    claims.nudged("second", "Succeeded")
    claims.delete("second", claims=["second"])


def test_a_killed_driver_knows_its_claims_and_deleted_pods_wait_for_it(plugin: Plugin, claims: Claims) -> None:
    claims.one("a", "npu-2", "sleep 600")
    pod = claims.nudged("a", "Running")
    entries, documents = plugin.entries(), plugin.documents()
    os.kill(plugin.daemon.pid, signal.SIGKILL)
    until(lambda: not plugin.daemon.running or None, "end of the driver")
    claims.plane.request("DELETE", f"{claims.pods}/a")
    until(lambda: not plugin.node.container_pids(pod["metadata"]["uid"]) or None, "end of the pod's processes")
    assert not gone(claims.plane, f"{claims.pods}/a")
    assert (plugin.entries(), plugin.documents()) == (entries, documents)
    begun = time.monotonic()
    plugin.start()

    def ended() -> bool | None:
        with contextlib.suppress(Refused):
            claims.nudge("a")  # the kubelet repeats an unprepare after 10 to 15 s, or when the pod changes
        return gone(claims.plane, f"{claims.pods}/a")

    until(ended, "end of the pod")
    print(f"driver back, pod gone after {time.monotonic() - begun:.2f} s")
    until(freed(plugin), "end of the claim's document")
    claims.delete(claims=["a"])


def test_slices_come_back_after_a_kubelet_restart_and_running_pods_keep_their_devices(
    plugin: Plugin, claims: Claims
) -> None:
    claims.one("a", "npu-2", "sleep 600")
    claims.nudged("a", "Running")
    entries = plugin.entries()
    plugin.node.restart_kubelet()
    until(lambda: plugin.devices() == {"card-0", "npu-1", "npu-2", "npu-3", "npu-4"} or None, "slices")
    assert plugin.entries() == entries
    assert claims.nudged("a", "Running")["status"]["containerStatuses"][0]["restartCount"] == 0
    claims.one("b", "npu-3", "true")
    claims.nudged("b", "Succeeded")
    claims.delete("a", "b", claims=["a", "b"])
    until(freed(plugin), "end of both claims' documents")


def test_the_slices_follow_the_document(plugin: Plugin) -> None:
    (before,) = plugin.slices()
    plugin.describe(2, unhealthy=[{"number": 1, "reason": "fan"}])
    until(lambda: plugin.devices() == {"card-0", "npu-1", "npu-2"} or None, "fewer devices")
    (after,) = plugin.slices()
    assert after["spec"]["pool"]["generation"] > before["spec"]["pool"]["generation"]
    assert after["spec"]["devices"][2]["attributes"]["healthReason"] == {"string": "fan"}
    plugin.file.write_text("devices: [{count: -1}]")
    until(lambda: plugin.said("description not taken") or None, "a word about the broken document")
    assert plugin.devices() == {"card-0", "npu-1", "npu-2"}
    plugin.describe(3)
    os.kill(plugin.daemon.pid, signal.SIGHUP)
    until(lambda: len(plugin.devices()) == 4 or None, "more devices")


def test_a_second_driver_is_refused_and_a_clean_end_takes_the_sockets_away(plugin: Plugin) -> None:
    other = Daemon("other", plugin.daemon._command[4:], plugin.home, {"PYTHONPATH": str(ROOT)})
    with pytest.raises(RuntimeError, match="Another device plugin of this driver runs"):
        other.start(lambda: False)
    plugin.daemon.stop()
    assert plugin.said("the device plugin ended") and not list(plugin.node.registry.glob("*.sock"))
    assert plugin.check("live") == 5


def test_the_pages_documents_are_what_the_cluster_and_corral_take(control_plane: ControlPlane, namespace: str) -> None:
    described, manifest = blocks(PAGE)
    assert load_devices(json.dumps(described[0])).driver == DRIVER
    with contextlib.suppress(Refused):
        control_plane.add_namespace("corral")
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest})
    done = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", given=given)
    assert "daemonset.apps/corral-device-plugin created (server dry run)" in done.stdout
