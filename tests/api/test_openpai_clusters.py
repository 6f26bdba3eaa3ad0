"""OpenPAI's cluster routes: virtual clusters (Corral's queues), SKU types, nodes, pods and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from corral.model.inventory import Device, Mismatch, Node
from corral.model.store_writes import Holder
from corral.service.control_client import NoControl
from tests.api.harness import Server, serving

GIGABYTE = 1024**3
SORTS = {"capacity", "usedCapacity", "maxCapacity", "resourcesUsed", "resourcesGuaranteed", "resourcesTotal"}


class FakeControl(NoControl):
    """A control that finds no broken guarantee, with an engine whose list the test sets."""

    def __init__(self) -> None:
        self.listed: dict[str, Any] = {}

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        return self.listed.get(path, None if path.startswith("/cluster/") else [])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A front of each test's own, because the tests change the cluster."""
    with serving(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def fake_control(server: Server) -> FakeControl:
    made = FakeControl()
    server.service.context.control = made
    return made


@pytest.fixture(autouse=True)
def machines(server: Server) -> list[Node]:
    """Two nodes of four devices each."""
    nodes = [
        Node(
            f"local/n{number}",
            devices=tuple(Device(index, f"n{number}:{index}", model="K80") for index in range(4)),
            cpu_millis=10_000,
            memory_bytes=100 * GIGABYTE,
        )
        for number in (1, 2)
    ]
    put(server, nodes)
    return nodes


def put(server: Server, nodes: list[Node]) -> None:
    async def write() -> None:
        lease = await server.store.lead(Holder("here", "boot", 1, "1"))
        assert lease is not None
        await server.store.put_nodes(lease.epoch, "local", nodes, server.clock.now())

    server.call(write())


def client(server: Server, user: str, *, role: str = "user") -> httpx2.Client:
    headers = {"Authorization": f"Bearer {server.token(user, role=role)}"}
    return httpx2.Client(base_url=f"{server.url}/api/v2", headers=headers, trust_env=False)


@pytest.fixture
def root(server: Server) -> Iterator[httpx2.Client]:
    with client(server, "root", role="admin") as made:
        yield made


@pytest.fixture
def alice(server: Server) -> Iterator[httpx2.Client]:
    with client(server, "alice") as made:
        yield made


def refused(answer: httpx2.Response) -> tuple[int, str, str]:
    body = answer.json()
    assert set(body) == {"code", "message"}
    return answer.status_code, body["code"], body["message"]


JOB = "name: {name}\nframework: shell\nqueue: {queue}\nroles: {{main: {{command: 'true'}}}}\n"


def submit(server: Server, http: httpx2.Client, name: str, queue: str) -> httpx2.Response:
    return http.post(f"{server.url}/api/v3/jobs?wait_for_capacity=true", content=JOB.format(name=name, queue=queue))


def test_the_answer_to_who_is_there_needs_no_token(server: Server) -> None:
    found = httpx2.get(f"{server.url}/rest-server/api/v2/info", trust_env=False)
    assert (found.status_code, found.json()) == (
        200,
        {"name": "PAI RESTful API", "version": "v1.8.1", "launcherType": "k8s", "authnMethod": "basic"},
    )
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert httpx2.request(method, f"{server.url}/api/v2/info", trust_env=False).json() == found.json()
    assert httpx2.get(f"{server.url}/api/v2/", trust_env=False).text == "PAI RESTful API v2 (beta version)"


def test_the_default_virtual_cluster_has_what_nobody_was_promised(root: httpx2.Client, alice: httpx2.Client) -> None:
    everything = {"cpu": 20, "vCores": 20, "memory": 204800, "gpu": 8, "GPUs": 8}
    nothing = dict.fromkeys(everything, 0)
    found = alice.get("/virtual-clusters").json()
    assert found == {
        "default": {
            "capacity": 100,
            "usedCapacity": 0,
            "maxCapacity": 100,
            "dedicated": False,
            "numJobs": 0,
            "numActiveJobs": 0,
            "numPendingJobs": 0,
            "status": "RUNNING",
            "resourcesUsed": nothing,
            "resourcesGuaranteed": everything,
            "resourcesTotal": everything,
        }
    }
    assert root.put("/virtual-clusters/vision", json={"vcCapacity": 25}).status_code == 201
    assert alice.get("/virtual-clusters/default").json()["capacity"] == 75
    assert alice.get("/virtual-clusters/default").json()["resourcesTotal"]["gpu"] == 6


def test_a_virtual_cluster_is_made_changed_and_deleted_as_a_queue(server: Server, root: httpx2.Client) -> None:
    made = root.put("/virtual-clusters/vision", json={"vcCapacity": 25, "vcMaxCapacity": "50", "description": "eyes"})
    assert (made.status_code, made.json()) == (
        201,
        {"status": 201, "message": "Create virtual cluster vision to capacity 25 successfully."},
    )
    vision = root.get("/virtual-clusters/vision").json()
    assert vision.keys() >= SORTS
    assert (vision["capacity"], vision["maxCapacity"]) == (25, 50)
    assert vision["resourcesTotal"] == {"cpu": 5, "vCores": 5, "memory": 51200, "gpu": 2, "GPUs": 2}
    document = httpx2.get(f"{server.url}/api/v3/documents/queue/vision", headers=root.headers, trust_env=False).json()
    assert document["document"]["deserved"] == {"devices": "2", "cpu": "5", "memory": "50Gi"}
    assert document["document"]["limit"] == {"devices": "4", "cpu": "10", "memory": "100Gi"}
    group = root.get("/groups/vision").json()
    assert (group["description"], group["extension"]["acls"]["virtualClusters"]) == ("eyes", ["vision"])
    again = root.put("/virtual-clusters/vision", json={"vcCapacity": 37.5})
    assert again.json()["message"] == "Update virtual cluster vision to capacity 37.5 successfully."
    assert root.get("/virtual-clusters/vision").json()["capacity"] == 37.5
    gone = root.delete("/virtual-clusters/vision")
    assert (gone.status_code, gone.json()["message"]) == (201, "Remove virtual cluster vision successfully.")
    assert refused(root.get("/virtual-clusters/vision")) == (404, "NoVirtualClusterError", "Vc vision not found")
    assert refused(root.get("/groups/vision"))[1] == "NoGroupError"


def test_what_was_promised_to_others_cannot_be_promised_again(root: httpx2.Client) -> None:
    assert root.put("/virtual-clusters/a", json={"vcCapacity": 60}).status_code == 201
    told = refused(root.put("/virtual-clusters/b", json={"vcCapacity": 41}))
    assert told == (403, "NoEnoughQuotaError", "No enough quota")
    assert root.put("/virtual-clusters/b", json={"vcCapacity": 40}).status_code == 201


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        (
            "a-b",
            {"vcCapacity": 1},
            (400, "InvalidParametersError", "VC name should only contain alpha-numeric and underscore characters"),
        ),
        ("default", {"vcCapacity": 1}, (403, "ForbiddenUserError", "Update operation to default vc isn't allowed")),
        (
            "x",
            {"vcCapacity": 101},
            (
                400,
                "InvalidParametersError",
                "The capacity of a virtual cluster is 0 to 100, and not above its maximum capacity.",
            ),
        ),
    ],
)
def test_what_cannot_be_a_virtual_cluster_is_refused(
    root: httpx2.Client, name: str, body: dict[str, Any], told: tuple[int, str, str]
) -> None:
    assert refused(root.put(f"/virtual-clusters/{name}", json=body)) == told


@pytest.mark.parametrize("body", [{}, {"vcCapacity": "many"}, {"vcCapacity": None}, []])
def test_a_capacity_that_is_no_number_is_refused(root: httpx2.Client, body: Any) -> None:
    assert refused(root.put("/virtual-clusters/x", json=body))[:2] == (400, "InvalidParametersError")


def test_only_administrators_divide_the_machines(alice: httpx2.Client) -> None:
    told = (403, "ForbiddenUserError", "Non-admin is not allow to do this operation.")
    assert refused(alice.put("/virtual-clusters/x", json={"vcCapacity": 1})) == told
    assert refused(alice.put("/virtual-clusters/x/status", json={"vcStatus": "stopped"})) == told
    assert refused(alice.delete("/virtual-clusters/x")) == told
    assert refused(alice.get("/kubernetes/nodes")) == told
    assert refused(alice.get("/kubernetes/pods")) == told


def test_without_a_token_nothing_of_the_cluster_is_told(server: Server) -> None:
    for path in ("virtual-clusters", "cluster/sku-types", "storages", "kubernetes/nodes", "kubernetes/pods", "alerts"):
        answer = httpx2.get(f"{server.url}/api/v2/{path}", trust_env=False)
        assert refused(answer) == (401, "UnauthorizedUserError", "Guest is not allowed to do this operation.")


def test_a_virtual_cluster_that_is_stopped_takes_no_new_jobs_and_keeps_those_it_has(
    server: Server, root: httpx2.Client
) -> None:
    root.put("/virtual-clusters/vision", json={"vcCapacity": 25})
    assert submit(server, root, "before", "vision").status_code == 201
    stopped = root.put("/virtual-clusters/vision/status", json={"vcStatus": "stopped"})
    assert (stopped.status_code, stopped.json()["message"]) == (201, "Stop virtual cluster vision successfully.")
    assert root.get("/virtual-clusters/vision").json()["status"] == "STOPPED"
    assert root.get("/virtual-clusters/vision").json()["numPendingJobs"] == 1
    refusal = submit(server, root, "after", "vision")
    assert (refusal.status_code, refusal.json()["code"]) == (409, "queue-closed")
    running = root.put("/virtual-clusters/vision/status", json={"vcStatus": "running"})
    assert running.json()["message"] == "Activate virtual cluster vision successfully."
    assert submit(server, root, "after", "vision").status_code == 201
    assert root.get("/virtual-clusters/vision").json()["capacity"] == 25


def test_a_status_that_is_none_and_a_cluster_that_is_not_there_are_refused(root: httpx2.Client) -> None:
    root.put("/virtual-clusters/vision", json={"vcCapacity": 25})
    odd = refused(root.put("/virtual-clusters/vision/status", json={"vcStatus": "asleep"}))
    assert odd == (400, "BadConfigurationError", "Unknown vc status: asleep")
    absent = refused(root.put("/virtual-clusters/absent/status", json={"vcStatus": "stopped"}))
    assert absent == (404, "NoVirtualClusterError", "Vc absent not found, can't stop")
    gone = refused(root.delete("/virtual-clusters/absent"))
    assert gone == (404, "NoVirtualClusterError", "Can't delete a nonexistent vc absent")


def test_a_virtual_cluster_with_jobs_cannot_be_deleted(server: Server, root: httpx2.Client) -> None:
    root.put("/virtual-clusters/vision", json={"vcCapacity": 25})
    assert submit(server, root, "there", "vision").status_code == 201
    told = refused(root.delete("/virtual-clusters/vision"))
    message = "Can't delete vc vision, 1 jobs are running, stop them before delete vc"
    assert told == (403, "RemoveRunningVcError", message)


def test_a_group_of_another_meaning_stands_in_the_way(root: httpx2.Client) -> None:
    made = root.post("/groups", json={"groupname": "taken", "extension": {"acls": {"virtualClusters": ["default"]}}})
    assert made.status_code == 201
    told = refused(root.put("/virtual-clusters/taken", json={"vcCapacity": 1}))
    assert told == (409, "ConflictVcError", "Group name taken already exists.")


def test_a_virtual_cluster_of_pinned_cells_is_changed_as_a_document(server: Server, root: httpx2.Client) -> None:
    text = "kind: Queue\nname: owner\npinnedCells: [quiet]\n"
    applied = httpx2.post(f"{server.url}/api/v3/documents", content=text, headers=root.headers, trust_env=False)
    assert applied.status_code == 200, applied.text
    assert root.get("/virtual-clusters/owner").json()["dedicated"] is True
    told = refused(root.put("/virtual-clusters/owner", json={"vcCapacity": 5}))
    assert told == (403, "ReadOnlyVcError", "Dedicated vc is read-only, can't be updated by rest-api")
    told = refused(root.delete("/virtual-clusters/owner"))
    assert told == (403, "ReadOnlyVcError", "Dedicated vc is read-only, can't be removed by rest-api")


def test_a_virtual_cluster_of_whole_machines_is_given_others(
    server: Server, root: httpx2.Client, fake_control: FakeControl
) -> None:
    text = "kind: Queue\nname: owner\ncells: [{level: numa, count: 1}]\n"
    httpx2.post(f"{server.url}/api/v3/documents", content=text, headers=root.headers, trust_env=False)
    assert root.put("/virtual-clusters/owner", json={"vcCapacity": 50}).status_code == 201
    document = httpx2.get(f"{server.url}/api/v3/documents/queue/owner", headers=root.headers, trust_env=False).json()
    assert document["document"]["cells"] == [{"level": "node", "model": "K80"}]
    standing = {"name": "owner", "ownedDevices": 4, "cells": []}
    fake_control.listed = {"/overview/queues": [{"name": "default"}, standing]}
    told = root.get("/virtual-clusters/owner").json()
    assert (told["capacity"], told["maxCapacity"], told["dedicated"]) == (50, 50, False)
    assert told["resourcesTotal"] == {"cpu": 10, "vCores": 10, "memory": 102400, "gpu": 4, "GPUs": 4}
    odd = refused(root.put("/virtual-clusters/owner", json={"vcCapacity": 20}))
    assert odd == (400, "BadConfigurationError", "20 percent of the machines is not one whole machine; ask for more.")


def test_the_devices_of_each_machine_are_told(alice: httpx2.Client) -> None:
    free = {"gpuUsed": 0, "gpuAvailable": 4, "gpuAvaiable": 4, "gpuTotal": 4}
    for query in ("nodes", "nodes=true"):
        assert alice.get(f"/virtual-clusters?{query}").json() == {"n1": free, "n2": free}


def test_sku_types_are_what_comes_with_one_device(server: Server, root: httpx2.Client, alice: httpx2.Client) -> None:
    skus = {"K80": {"gpu": 1, "cpu": 2, "memory": 25600}}
    assert alice.get("/cluster/sku-types").json() == skus
    assert alice.get("/cluster/sku-types?vc=default").json() == skus
    text = "kind: Queue\nname: other\ncells: [{level: node, model: A100, count: 1}]\n"
    httpx2.post(f"{server.url}/api/v3/documents", content=text, headers=root.headers, trust_env=False)
    assert alice.get("/cluster/sku-types?vc=other").json() == {}
    assert refused(alice.get("/cluster/sku-types?vc=absent"))[:2] == (404, "NoVirtualClusterError")


def test_what_no_job_could_ask_for_by_its_model_is_no_sku_type(server: Server, alice: httpx2.Client) -> None:
    mixed = tuple(Device(index, f"n1:{index}", model="K80" if index else "") for index in range(4))
    bare = tuple(Device(index, f"n2:{index}") for index in range(2))
    put(
        server,
        [
            Node("local/n1", devices=mixed, cpu_millis=8_000, memory_bytes=4 * GIGABYTE),
            Node("local/n2", devices=bare, cpu_millis=1_000, memory_bytes=GIGABYTE),
            Node("local/n3", cpu_millis=1_000, memory_bytes=GIGABYTE),
        ],
    )
    assert alice.get("/cluster/sku-types").json() == {"K80": {"gpu": 1, "cpu": 2, "memory": 1024}}


def test_machines_are_listed_as_kubernetes_nodes(root: httpx2.Client) -> None:
    found = root.get("/kubernetes/nodes").json()
    assert (found["kind"], found["apiVersion"]) == ("NodeList", "v1")
    node = found["items"][0]
    assert node["metadata"]["name"] == "n1"
    assert node["status"]["capacity"] | {"pods": ""} == {
        "cpu": "10",
        "memory": "104857600Ki",
        "pods": "",
        "nvidia.com/gpu": "4",
    }
    (condition,) = node["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    pods = root.get("/kubernetes/pods").json()
    assert (pods["kind"], pods["items"]) == ("PodList", [])
    assert root.get("/kubernetes/pods?namespace=kube-system").json()["items"] == []


def test_where_tasks_run_on_kubernetes_its_own_lists_are_told(root: httpx2.Client, fake_control: FakeControl) -> None:
    fake_control.listed = {
        "/cluster/nodes": {"kind": "NodeList", "items": [{"metadata": {"name": "real"}}]},
        "/cluster/pods?namespace=jobs": {"kind": "PodList", "items": []},
    }
    assert root.get("/kubernetes/nodes").json() == fake_control.listed["/cluster/nodes"]
    assert root.get("/kubernetes/pods?namespace=jobs").json() == {"kind": "PodList", "items": []}


def test_the_first_version_tells_of_the_cluster_too(server: Server, root: httpx2.Client) -> None:
    http = httpx2.Client(base_url=f"{server.url}/rest-server/api/v1", headers=root.headers, trust_env=False)
    with http:
        assert http.get("/virtual-clusters").json().keys() == {"default"}
        assert {"numJobs", "numActiveJobs", "numPendingJobs"} <= http.get("/virtual-clusters/default").json().keys()
        assert http.get("/kubernetes/nodes").json()["kind"] == "NodeList"
        assert http.get("").json() == http.get("/").json() == root.get("/info").json()


def test_alerts_tell_administrators_of_machines_and_users_of_their_own_jobs(
    server: Server, root: httpx2.Client, alice: httpx2.Client
) -> None:
    assert root.get("/alerts").json() == []
    with client(server, "bob") as bob:
        for owner, name in ((alice, "hers"), (bob, "his")):
            assert submit(server, owner, name, "default").status_code == 201
    assert alice.get("/alerts").json() == []
    server.clock.advance(1801)
    sick = Device(0, "n1:0", healthy=False, health_reason="double-bit errors")
    count = Mismatch("devices", "4", "1")
    put(server, [Node("local/n1", devices=(sick,), ready=False, ready_reason="it is silent", mismatches=(count,))])
    (mine,) = alice.get("/alerts").json()
    assert mine["labels"]["alertname"] == "PaiJobPending"
    assert (mine["labels"]["job_name"], mine["labels"]["username"]) == ("alice~hers", "alice")
    assert mine["status"]["state"] == "active"
    names = [alert["labels"]["alertname"] for alert in root.get("/alerts").json()]
    expected = ["PaiJobPending", "PaiJobPending", "NodeNotReady", "NodeGpuCountChanged", "NvidiaSmiDoubleEccError"]
    assert sorted(names) == sorted(expected)

    told = [
        {"status": "firing", "labels": {"alertname": "NodeNotReady", "node_name": "n1", "instance": "n1:9100"}},
        {"status": "firing", "labels": {"alertname": "LowUse", "job_name": "alice~hers", "username": "alice"}},
        {"status": "resolved", "labels": {"alertname": "Over", "username": "alice"}},
    ]
    answer = root.post(f"{server.url}/api/v3/alerts/webhook", json={"alerts": told})
    assert answer.json() == {"firing": 2, "resolved": 1}
    silence = {"matchers": ["alertname=~PaiJob.*|NodeGpu.*"], "seconds": 60, "reason": "known"}
    assert root.post(f"{server.url}/api/v3/alerts/silences", json=silence).status_code == 201
    assert [alert["labels"]["alertname"] for alert in alice.get("/alerts").json()] == ["LowUse"]
    found = {alert["labels"]["alertname"]: alert for alert in root.get("/alerts").json()}
    assert set(found) == {"NodeNotReady", "LowUse", "NvidiaSmiDoubleEccError"}
    assert found["NodeNotReady"]["labels"]["instance"] == "n1:9100", "the told alert stands for the known one"
