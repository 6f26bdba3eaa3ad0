"""One server with two engines: jobs run as pods of a cluster and as processes of this machine at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endtoend.platform import CLUSTER, Job, on_devices
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
NAMESPACE = "two-engines"
HERE = {"count": 2, "model": "described-a100"}
"""Devices that only the nodes described on this machine have."""


class OnBoth(OnKubernetes):
    """A server with the Kubernetes engine and the local one."""

    engines = ("kubernetes", "local")

    def options(self, port: str = "") -> list[str]:
        words = super().options(port)
        at = words.index("--engine")
        del words[at : at + 2]
        return [*words, *(word for name in self.engines for word in ("--engine", name)), "--cluster", str(CLUSTER)]

    def where(self, job: Job) -> set[str]:
        """The engines of a job's tasks."""
        return {task["node"].partition("/")[0] for task in self.tasks(job).values()}

    def begun(self) -> tuple[Job, Job]:
        """A gang on two nodes of the cluster and one on two devices of this machine; both run."""
        pods = self.submit(on_devices("pods", 8, replicas=2))
        here = self.submit(on_devices("here", HERE, command="echo ready; while [ ! -e done ]; do sleep 0.1; done"))
        for job in (pods, here):
            self.all_run(job)
        self.printed(here, "main-0", "ready")
        return pods, here

    def finish(self, pods: Job, here: Job) -> None:
        """End both jobs, which must succeed."""
        self.end_pods()
        assert self.ended(pods)["state"] == "succeeded"
        self.corral("exec", here["id"], "--", "touch", "done")
        assert self.ended(here)["state"] == "succeeded"
        until(lambda: self.pods() == [] or None, "end of all pods")


@pytest.fixture(scope="module")
def server(kwok: Kwok, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnBoth]:
    nodes = kwok.add_nodes(2, prefix="both")
    control_plane.add_namespace(NAMESPACE)
    made = OnBoth(tmp_path_factory.mktemp("server"), namespace=NAMESPACE)
    made.plane = control_plane
    made.up()
    named = {f"kubernetes/{name}" for name in nodes}  # those of this machine may be seen first
    until(
        lambda: named <= {each["name"] for each in made.client.nodes(limit=500)["items"]} or None, "the cluster's nodes"
    )
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    for name in nodes:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def test_jobs_run_on_both_engines_at_once_and_survive_a_killed_control(server: OnBoth) -> None:
    pods, here = server.begun()
    assert (server.where(pods), server.where(here)) == ({"kubernetes"}, {"local"})
    nodes = {node["name"].partition("/")[0] for node in server.client.nodes(limit=500)["items"]}
    assert nodes == {"kubernetes", "local"}, "one list of the nodes of both"
    assert len(server.pods(pods)) == 2
    server.kill_control()
    server.finish(pods, here)
    for job in (pods, here):
        assert [len(server.attempts(job, task)) for task in server.tasks(job)] == [1] * len(server.tasks(job))
    assert server.log(here, "main-0") == "ready\n"


def test_an_engine_that_does_not_answer_is_unknown_while_the_other_works(server: OnBoth) -> None:
    pods, here = server.begun()
    silent = "The engine kubernetes does not answer"
    server.plane.kill_apiserver()
    try:
        waiting = server.submit(on_devices("waits", 8))
        until(lambda: silent in server.client.explain(waiting["id"])["message"] or None, "loss of the cluster")
        assert server.ran(on_devices("other", HERE, command="exit 0"))["state"] == "succeeded"
        server.corral("down", "--data", str(server.data))
        server.up_again()
        assert server.ran(on_devices("again", HERE, command="exit 0"))["state"] == "succeeded", "also after a start"
        assert server.client.job(pods["id"])["state"] == "running"
    finally:
        server.plane.restart_apiserver()
    until(lambda: silent not in server.client.explain(waiting["id"])["message"] or None, "return of the cluster")
    server.client.stop(waiting["id"])
    server.finish(pods, here)
    assert [len(server.attempts(pods, task)) for task in server.tasks(pods)] == [1, 1]


def test_an_engine_whose_tasks_run_cannot_be_left_out(server: OnBoth) -> None:
    pods, here = server.begun()
    server.corral("down", "--data", str(server.data))
    for name, place in (("local", "on the engine kubernetes"), ("kubernetes", f"data folder {server.data}")):
        server.engines = (name,)
        said = server.refused("up", *server.options(server.url.rpartition(":")[2]))
        assert "The tasks of this database run" in said and place in " ".join(said.split()), said
    del server.engines
    server.up_again()
    server.finish(pods, here)


def test_the_doctor_checks_each_engine(server: OnBoth, tmp_path: Path) -> None:
    cluster = ["--kubeconfig", str(server.plane.kubeconfig), "--namespace", NAMESPACE, "--no-probe"]
    both = ["--engine", "local", "--engine", "kubernetes"]
    said = json.loads(server.run("doctor", "--data", str(tmp_path), *both, *cluster, "-o", "json").stdout)
    names = [check["name"] for check in said]
    assert {"containers", "mpirun", "namespace", "permissions"} <= set(names)
    assert names.index("containers") < names.index("namespace"), "in the order in which they are named"
