"""Simulate hundreds of nodes with kwok: real objects, and one program instead of all kubelets.

A simulated pod runs until it is deleted, or ends by itself when its annotations say so (`ENDS_AFTER`, `EXIT_CODE`).
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.reserved import free_port
from tests.testbeds.kubernetes.binaries import MODULES, program
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.daemons import Daemon, answers

PLAYED: Final = "corral.test/played"
"""The label of the nodes that kwok simulates; all others belong to their kubelets."""
ENDS_AFTER: Final = "corral.test/ends-after"
"""A pod's annotation: the time from its start to its end, such as "1.5s"."""
EXIT_CODE: Final = "corral.test/exit-code"
"""A pod's annotation: the exit code of its containers, 0 by default."""
DEVICES: Final = "nvidia.com/gpu"


class Kwok:
    """kwok on a control plane: simulates every node with the label `PLAYED`, and the pods bound to them."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._address = f"127.0.0.1:{free_port()}"
        flags = {
            "kubeconfig": plane.kubeconfig_for("kwok", ["system:masters"]),
            "config": MODULES.parent / "stages.yaml",
            "manage-all-nodes": "false",
            "manage-nodes-with-label-selector": PLAYED,
            "server-address": self._address,
            "node-ip": "127.0.0.1",
            "node-lease-duration-seconds": 40,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        self._daemon = Daemon("kwok", [program("kwok"), *words], plane.home, {"HOME": str(plane.home)})
        self.start()

    def __enter__(self) -> Kwok:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The running program's pid."""
        return self._daemon.pid

    def start(self) -> None:
        """Start kwok, also after a `kill`."""
        self._daemon.start(lambda: answers(f"http://{self._address}/healthz", "ok"))

    def kill(self) -> None:
        """Kill kwok as a crash would: no simulated kubelet answers any more."""
        self._daemon.kill()

    def close(self) -> None:
        """Stop kwok; the nodes stay in the control plane."""
        self._daemon.stop()

    def add_nodes(
        self,
        count: int,
        *,
        devices: int = 8,
        resource: str = DEVICES,
        prefix: str = "node",
        levels: Mapping[str, int] | None = None,
        describe: Callable[[int], dict[str, Any]] | None = None,
        cpu: str = "96",
        memory: str = "1Ti",
        pods: int = 250,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> list[str]:
        """Create nodes `prefix-0000` and on, each with `devices` of `resource`; returns their names, all Ready or soon.

        `levels` gives topology labels: {"topology.kubernetes.io/zone": 100} puts a hundred consecutive nodes into one
        zone. `describe(i)` may add `labels`, `annotations` and `allocatable` to node i. Without controllers every new
        node keeps the taint `node.kubernetes.io/not-ready`, which the apiserver gives it.
        """
        allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "1Ti"}
        if devices:
            allocatable[resource] = str(devices)
        names = [f"{prefix}-{index:04}" for index in range(count)]

        def add(index: int) -> None:
            name, more = names[index], describe(index) if describe else {}
            labels = {PLAYED: "", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
            for label, size in (levels or {}).items():
                labels[label] = f"{label.rpartition('/')[2]}-{index // size}"
            amounts = allocatable | more.get("allocatable", {})
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": labels | more.get("labels", {}),
                    "annotations": more.get("annotations", {}),
                },
                "spec": {"taints": list(taints)},
                "status": {"allocatable": amounts, "capacity": amounts},
            }
            self._plane.request("POST", "/api/v1/nodes", node)

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            list(threads.map(add, range(count)))
        return names

    def lose(self, node: str) -> None:
        """Stop simulating a node, and set its conditions as the node controller would after a minute."""
        merge = "application/merge-patch+json"
        self._plane.request("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {PLAYED: None}}}, content=merge)
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "lost by the test"}
        status = {"status": {"conditions": [unknown]}}
        strategic = "application/strategic-merge-patch+json"
        self._plane.request("PATCH", f"/api/v1/nodes/{node}/status", status, content=strategic)

    def find(self, node: str) -> None:
        """Simulate the node again; it becomes Ready."""
        merge = "application/merge-patch+json"
        self._plane.request("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {PLAYED: ""}}}, content=merge)
