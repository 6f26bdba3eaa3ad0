"""Five hundred nodes of eight devices: filled, preempted, drained and failed; no device is ever in two pods."""

from __future__ import annotations

import concurrent.futures
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.platform import Job
from tests.engines.kubernetes.chronicle import Chronicle
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok
from tests.testbeds.kubernetes.slices import TAINT, device, managed, publish, withdraw

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800)]
NAMESPACE = "five"
NODES, DEVICES, RACK = 500, 8, 20
SINGLES, GANGS, SEAS, SEA = 60, 5, 4, 113
PATIENCE = 600.0
"""Seconds for a step that takes a few seconds on an idle machine."""
_PAUSE = 0.3
"""Seconds between two looks: each lists hundreds of pods at the API server."""


class Patient(OnKubernetes):
    """A server whose jobs may take longer to end."""

    def ended(self, job: Job | str) -> Job:
        return dict(self.client.wait(job if isinstance(job, str) else job["id"], timeout=PATIENCE))


@pytest.fixture
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    rack = {"topology.kubernetes.io/rack": RACK}
    made = kwok.add_nodes(NODES, prefix="five", devices=0, describe=managed, taints=[TAINT], levels=rack)
    publish(control_plane, made, [device(number) for number in range(DEVICES)])
    yield made
    withdraw(control_plane, made)
    gone = {node["metadata"]["name"] for node in control_plane.request("GET", "/api/v1/nodes")["items"]}
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        paths = [f"/api/v1/nodes/{name}" for name in made if name in gone]
        list(threads.map(lambda path: control_plane.request("DELETE", path), paths))


@pytest.fixture
def server(control_plane: ControlPlane, nodes: list[str], tmp_path: Path) -> Iterator[OnKubernetes]:
    control_plane.add_namespace(NAMESPACE)
    made = Patient(tmp_path, namespace=NAMESPACE)
    made.plane = control_plane
    made.env |= {"CORRAL_LOG_COPYING": "off", "CORRAL_CONFLICT_DELAY_MINIMUM": "1"}
    made.up()
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def gang(name: str, tasks: int, **fields: Any) -> Job:
    """Tasks of a whole node each."""
    role = {"replicas": tasks, "resources": {"cpu": "1", "devices": DEVICES}, "command": "train"}
    return {"name": name, "framework": "shell", "roles": {"worker": role}, **fields}


def one(name: str) -> Job:
    """A task of one device."""
    role = {"resources": {"cpu": "1", "devices": 1}, "command": "train"}
    return {"name": name, "framework": "shell", "roles": {"worker": role}}


def states(server: OnKubernetes, jobs: list[Job]) -> Counter[str]:
    """The number of jobs in each state."""
    return Counter(server.client.job(job["id"])["state"] for job in jobs)


class Cluster:
    """The server, seen from the apiserver's side."""

    def __init__(self, server: OnKubernetes) -> None:
        self.server = server

    def pods(self, where: str) -> list[dict[str, Any]]:
        """The pods that match a query and have not ended."""
        listed = self.server.plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?{where}")["items"]
        return [pod for pod in listed if pod["status"]["phase"] in ("Pending", "Running")]

    def running(self, job: Job, tasks: int) -> None:
        """Wait until a job has exactly `tasks` pods, all running."""

        def all_run() -> bool | None:
            phases = [pod["status"]["phase"] for pod in self._of(job)]
            return phases == ["Running"] * tasks or None

        until(all_run, f"{tasks} running pods of {job['name']}", seconds=PATIENCE, least=_PAUSE)

    def places(self, job: Job) -> list[str]:
        """The nodes of a job's pods that have not ended."""
        return [pod["spec"]["nodeName"] for pod in self._of(job)]

    def empty(self, node: str) -> None:
        """Wait until all pods on a node have ended."""
        where = f"fieldSelector=spec.nodeName={node}"
        until(lambda: not self.pods(where) or None, f"empty {node}", seconds=PATIENCE, least=_PAUSE)

    def _of(self, job: Job) -> list[dict[str, Any]]:
        return self.pods(f"labelSelector=corral.dev/job={job['id']}")

    def racks(self, job: Job) -> set[int]:
        """The racks of these pods."""
        return {int(node.rpartition("-")[2]) // RACK for node in self.places(job)}


def test_no_device_is_ever_in_two_pods(
    server: OnKubernetes, nodes: list[str], kwok: Kwok, control_plane: ControlPlane
) -> None:
    cluster = Cluster(server)
    until(lambda: server.client.top()["total"]["devices"] >= NODES * DEVICES or None, "all devices", seconds=PATIENCE)
    with Chronicle(control_plane, NAMESPACE) as chronicle:
        close = {"required": "rack"}
        singles = [server.submit(one(f"single-{number}")) for number in range(SINGLES)]
        gangs = [server.submit(gang(f"gang-{number}", 8, topology=close)) for number in range(GANGS)]
        seas = [server.submit(gang(f"sea-{number}", SEA, priority="oppo")) for number in range(SEAS)]
        for tasks, jobs in ((1, singles), (8, gangs), (SEA, seas)):
            for job in jobs:
                cluster.running(job, tasks)
        for job in gangs:
            assert len(set(cluster.places(job))) == 8
            assert len(cluster.racks(job)) == 1, "inside the rack that it requires"

        urgent = server.submit(gang("urgent", 8, topology=close, priority="prod"))
        cluster.running(urgent, 8)
        assert len(cluster.racks(urgent)) == 1
        yielded = Counter(running=SEAS - 1, waiting=1)
        until(
            lambda: states(server, seas) == yielded or None, "one guest that made room", seconds=PATIENCE, least=_PAUSE
        )

        drained = cluster.places(singles[0])[0]
        server.client.drain(f"kubernetes/{drained}", why="new cables")
        cluster.empty(drained)
        for job in singles:
            cluster.running(job, 1)

        lost = cluster.places(gangs[0])[3]
        kwok.lose(lost)
        control_plane.request("DELETE", f"/api/v1/nodes/{lost}")
        cluster.empty(lost)
        cluster.running(gangs[0], 8)
        assert lost not in cluster.places(gangs[0])
        assert len(cluster.racks(gangs[0])) == 1
        server.clear()
    account = chronicle.told()
    assert chronicle.faults == []
    assert account.twice == []
    assert account.most == SINGLES + (GANGS * 8 + SEAS * SEA) * DEVICES, "the account has seen what was given"
