"""Run `corral up` on a real control plane whose nodes are simulated by kwok.

etcd, the API server, the controllers, kwok, front, control and the client all share this machine's processors. So every
figure includes the cluster's own work; `used` splits the processor time by process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from bench.harness import Server, running_server
from bench.processes import cpu_seconds
from corral.supervisor import children_of
from tests.testbeds.kubernetes import binaries, images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok
from tests.testbeds.kubernetes.slices import TAINT, device, managed, publish

NODES, DEVICES, BLOCK = 500, 8, 100
NAMESPACE = "bench"
CONNECTIONS = 8
PATIENCE_SECONDS = 300.0
SETTINGS = {"CORRAL_LOG_LEVEL": "warning", "CORRAL_LOG_COPYING": "off"}
"""Simulated nodes have no logs; requests for them would only measure refusals."""


@dataclass
class ServedCluster:
    """A server, its cluster, and the processor time that each has used so far."""

    server: Server
    plane: ControlPlane
    kwok: Kwok

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Every pod of the server, as the API server has it."""
        return self.list(f"/api/v1/namespaces/{NAMESPACE}/pods?limit=1000" + selector)

    def list(self, path: str) -> list[dict[str, Any]]:
        """All objects of a list, page by page."""
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self.plane.request("GET", f"{path}&continue={token}" if token else path)
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    def used(self) -> dict[str, float]:
        """Processor seconds of all processes except this one."""
        pids = {"apiserver": self.plane.apiserver.pid, "etcd": self.plane.etcd.pid, "kwok": self.kwok.pid}
        pids |= {"controllers": self.plane.manager.pid} if self.plane.manager else {}
        return {name: cpu_seconds([pid]) for name, pid in (pids | self.processes()).items()}

    def processes(self) -> dict[str, int]:
        """The server's working processes, by kind."""
        return children_of(self.server.supervisor)

    def session(self) -> aiohttp.ClientSession:
        """A signed-in client that uses little processor time; the caller closes it."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        return aiohttp.ClientSession(self.server.url, headers=headers, connector=connector)


@contextlib.contextmanager
def played_cluster(
    nodes: int = NODES, *, devices: int = DEVICES, controllers: str = "*", claims: bool = False, **options: Any
) -> Iterator[tuple[ControlPlane, Kwok]]:
    """A cluster of simulated nodes in racks of ten and blocks of a hundred, all Ready; ends everything afterwards.

    With `claims` the nodes are Corral's alone, and their devices are published in slices and given by claims.
    """
    if reason := binaries.missing():
        raise RuntimeError(reason)
    levels = {"topology.kubernetes.io/block": BLOCK, "topology.kubernetes.io/rack": 10}
    with ControlPlane(controllers=controllers, **options) as plane, Kwok(plane) as kwok:
        plane.add_namespace(NAMESPACE)
        if claims:
            names = kwok.add_nodes(nodes, devices=0, levels=levels, describe=managed, taints=[TAINT])
            publish(plane, names, [device(number) for number in range(devices)])
        else:
            kwok.add_nodes(nodes, devices=devices, levels=levels)
        _until(lambda: _ready(plane) == nodes, "the nodes are Ready")
        yield plane, kwok


@contextlib.contextmanager
def served_cluster(
    nodes: int = NODES, *, devices: int = DEVICES, controllers: str = "*", claims: bool = False, **options: Any
) -> Iterator[ServedCluster]:
    """Run `corral up` on a cluster of simulated nodes until it sees them; ends everything afterwards."""
    with played_cluster(nodes, devices=devices, controllers=controllers, claims=claims, **options) as (plane, kwok):
        words = ("--engine", "kubernetes", "--kubeconfig", str(plane.kubeconfig), "--namespace", NAMESPACE)
        more = ("--advertise", "http://127.0.0.1:1", "--default-image", images.BUSYBOX)
        with running_server(*words, *more, settings=SETTINGS, patience=PATIENCE_SECONDS) as server:
            served = ServedCluster(server, plane, kwok)
            _until(lambda: _free_devices(server) == nodes * devices, "the server sees every device")
            yield served


def _free_devices(server: Server) -> int:
    with server.client() as client:
        free = client.get("/api/v3/top").raise_for_status().json()["free"]
    return int(free["devices"])


async def submit(session: aiohttp.ClientSession, job: Mapping[str, Any]) -> str:
    """Submit one job; returns its id."""
    async with session.post("/api/v3/jobs", json=job) as answer:
        found = await answer.json()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status}: {found}")
        return str(found["id"])


async def get(session: aiohttp.ClientSession, path: str) -> Any:
    """The API's JSON answer."""
    async with session.get(path) as answer:
        answer.raise_for_status()
        return await answer.json()


def job(name: str, replicas: int = 1, devices: int = 1, **fields: Any) -> dict[str, Any]:
    """A job of one role that runs until it is stopped."""
    role = {
        "replicas": replicas,
        "command": ["sleep", "1000000"],
        "resources": {"cpu": "1", "memory": "1Gi", "devices": devices},
    }
    return {"name": name, "framework": "shell", "roles": {"worker": role}, **fields}


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Processor seconds between two samples, by process."""
    return {f"cpu {name}": after[name] - before.get(name, 0.0) for name in after}


def _ready(plane: ControlPlane) -> int:
    nodes = plane.request("GET", "/api/v1/nodes")["items"]
    return sum(
        any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
        and not [taint for taint in node["spec"].get("taints", ()) if taint["key"] != TAINT["key"]]
        for node in nodes
    )


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {PATIENCE_SECONDS:.0f} s still not: {what}")
        time.sleep(0.2)


async def until(condition: Callable[[], Any], what: str, every: float = 0.1) -> Any:
    """Poll `condition()` until it is true and return its value; raises RuntimeError after minutes without one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := await condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {PATIENCE_SECONDS:.0f} s still not: {what}")
        await asyncio.sleep(every)
    return found
