"""Create, use, change and delete OpenPAI's virtual clusters on a server with HiveD's own configuration."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.endtoend.platform import Platform, on_devices
from tests.scheduler.hived_clusters import read_cases
from tests.spec.openpai_files import job_file, role_of
from tests.waiting import pause


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, data_folder: Path) -> Iterator[Platform]:
    """A server whose `--cluster` file is HiveD's unchanged design configuration, wrapped as OpenPAI does."""
    folder = tmp_path_factory.mktemp("hived")
    config = json.dumps(read_cases(data_folder)["scenarios"][0]["config"])
    (folder / "hived.yaml").write_text(f"hivedscheduler:\n  config: {json.dumps(config)}\n")
    made = Platform(folder, cluster=folder / "hived.yaml")
    made.up()
    yield made
    made.down()


@pytest.fixture
def http(server: Platform) -> Iterator[httpx2.Client]:
    token = server.corral("token", "create", "openpai", "-o", "name").strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{server.url}/rest-server/api/v2", headers=headers, trust_env=False) as made:
        yield made


def test_virtual_clusters_of_hived_have_the_figures_of_their_cells(http: httpx2.Client) -> None:
    found = http.get("/virtual-clusters").json()
    total = sum(node["gpuTotal"] for node in http.get("/virtual-clusters?nodes").json().values())
    owned = {name: each["resourcesTotal"]["gpu"] for name, each in found.items()}
    assert owned["VC1"] > 0 and owned["VC2"] > 0
    assert sum(owned.values()) == total
    for name in ("VC1", "VC2"):
        assert found[name]["capacity"] == pytest.approx(owned[name] * 100 / total, abs=0.01)
    skus = http.get("/cluster/sku-types").json()
    assert all(sku["gpu"] == 1 for sku in skus.values())
    assert set(http.get("/cluster/sku-types?vc=VC2").json()) <= set(skus)


def test_a_virtual_cluster_is_made_used_stopped_and_deleted(server: Platform, http: httpx2.Client) -> None:
    refused = http.put("/virtual-clusters/Mine", json={"vcCapacity": 100})
    assert (refused.status_code, refused.json()["code"]) == (403, "NoEnoughQuotaError")
    answer = http.put("/virtual-clusters/Mine", json={"vcCapacity": 0})
    assert (answer.status_code, answer.json()["status"]) == (201, 201), answer.text
    shown: dict[str, Any] = http.get("/virtual-clusters/Mine").json()
    assert (shown["status"], shown["numJobs"]) == ("RUNNING", 0)
    job = server.submit(on_devices("guest", 1, queue="Mine", priority="oppo"))
    assert http.get("/virtual-clusters/Mine").json()["numJobs"] == 1
    in_use = http.delete("/virtual-clusters/Mine")
    assert (in_use.status_code, in_use.json()["code"]) == (403, "RemoveRunningVcError")
    assert http.put("/virtual-clusters/Mine/status", json={"vcStatus": "stopped"}).status_code == 201
    said = server.refused("submit", "-", given=json.dumps(on_devices("late", 1, queue="Mine")), code=4)
    assert "takes no new jobs now" in said
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"
    gone = http.delete("/virtual-clusters/Mine")
    assert gone.status_code == 201, gone.text
    assert http.get("/virtual-clusters/Mine").status_code == 404


def test_a_task_without_gpus_fills_the_cells_it_asks_for_and_a_wrong_sku_is_refused(
    server: Platform, http: httpx2.Client
) -> None:
    sku = "DGX2-V100"
    assert sku in http.get("/cluster/sku-types?vc=VC1").json()

    def sent(name: str, kind: str) -> httpx2.Response:
        hived = {"taskRoles": {"worker": {"skuType": kind, "skuNum": 2}}}
        text = job_file(name=name, defaults={"virtualCluster": "VC1"}, extras={"hivedScheduler": hived})
        return http.post("/jobs", content=text, headers={"Content-Type": "text/yaml"})

    refused = sent("wrong", "no-such-sku")
    assert (refused.status_code, refused.json()["code"]) == (400, "InvalidProtocolError")
    assert refused.json()["message"].startswith("Taskrole worker has unknown skuType no-such-sku, allow ")
    taken = sent("cells", sku)
    assert taken.status_code == 202, taken.text
    job = server.ended("cells")
    assert (job["state"], job["devices"]) == ("succeeded", 2)


@pytest.mark.parametrize(
    ("cluster", "kinds"),
    [
        ("VC2", ({"skuType": "DGX1-P100"}, {"skuType": "CT1"})),
        ("VC1", ({"pinnedCellId": "VC1-YQW-DGX2"}, {"skuType": "DGX2-V100"})),
    ],
    ids=["sku-types", "pinned-cell"],
)
def test_affinity_groups_have_cells_of_their_own_kinds_and_survive_a_restart(
    server: Platform, http: httpx2.Client, cluster: str, kinds: tuple[dict[str, str], dict[str, str]]
) -> None:
    def inspect(path: str) -> Any:
        answer = httpx2.get(f"{server.url}/v1/inspect/{path}", headers=http.headers, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()

    name = f"groups-{cluster.lower()}"
    size = {"cpu": 1, "memoryMB": 64, "gpu": 1}
    role = role_of(resourcePerInstance=size, commands=["sleep 600"], extraContainerOptions={"shmMB": 0})
    cells = [kind | {"skuNum": 1, "affinityGroupName": f"{each}/s"} for each, kind in zip("ab", kinds, strict=True)]
    text = job_file(
        name=name,
        defaults={"virtualCluster": cluster},
        taskRoles={"a": role | {"instances": 2}, "b": role},
        extras={"hivedScheduler": {"jobPriorityClass": "prod", "taskRoles": dict(zip("ab", cells, strict=True))}},
    )
    taken = http.post("/jobs", content=text, headers={"Content-Type": "text/yaml"})
    assert taken.status_code == 202, taken.text
    job = server.until(name, lambda now: now["state"] == "running")
    names = {f"{job['id']}+[=2F{each}=2Fs]" for each in ("a", "b")}

    def groups_now() -> dict[str, Any]:
        return {group["metadata"]["name"]: group["status"] for group in inspect("affinitygroups/")["items"]}

    begun = time.monotonic()
    while (groups := groups_now()).keys() != names:  # costly views are cached for a while
        assert time.monotonic() < begun + 120, groups
        time.sleep(pause(begun))
    assert {status["state"] for status in groups.values()} == {"Allocated"}
    places = server.client.placement(job["id"])["items"]
    nodes = {each: {task["node"] for task in places if task["role"] == each} for each in "ab"}
    assert len(nodes["a"]) == 1 and not nodes["a"] & nodes["b"]
    full_name = f"{job['user']}~{name}"
    detail = http.get(f"/jobs/{full_name}").json()
    told = [each["hived"]["affinityGroupName"] for each in detail["taskRoles"]["a"]["taskStatuses"]]
    assert told == [f"{full_name}/a/s"] * 2
    server.corral("down", "--data", str(server.data))
    server.up_again()
    assert groups_now() == groups
    server.client.stop(job["id"])
    assert server.ended(job["id"])["state"] == "stopped"
    while inspect("affinitygroups/")["items"]:  # costly views are cached for a while
        time.sleep(0.05)
