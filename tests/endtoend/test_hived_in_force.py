"""A server started with HiveD's own configuration: virtual clusters get their cells, and HiveD's REST paths work (H12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.endtoend.platform import Job, Platform, on_devices
from tests.scheduler.hived_clusters import read_cases


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


def running(job: Job) -> bool:
    return bool(job["state"] == "running" and job["tasks"]["running"] == job["tasks"]["total"])


def waiting(job: Job) -> bool:
    return bool(job["state"] == "waiting" and job["reasons"] and job["reasons"]["binding"]["code"] != "submitted")


def inspect(platform: Platform, address: str, status: int = 200) -> Any:
    """HiveD's JSON at a path, for a signed-in user."""
    token = platform.corral("token", "create", f"t{abs(hash(address))}", "-o", "name").strip()
    answer = httpx2.get(f"{platform.url}/v1/inspect/{address}", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == status, answer.text
    return answer.json()


def ct1(name: str, replicas: int, queue: str, priority: str, **fields: Any) -> Job:
    """A job on whole CT1 nodes; there are three, and VC2 owns one."""
    devices = {"count": 2, "model": "CT1"}
    return on_devices(name, devices, replicas=replicas, queue=queue, priority=priority, **fields)


def test_owners_preempt_opportunists_and_everything_is_told_and_kept(platform: Platform) -> None:
    guests = platform.submit(ct1("guests", 3, "VC1", "oppo"))
    platform.until(guests, running)
    owner = platform.submit(ct1("owner", 1, "VC2", "prod"))
    platform.until(owner, running)
    told = platform.until(guests, lambda job: waiting(job) and bool(job["receipts"]))
    (receipt,) = told["receipts"]
    assert receipt["rule"] == "opportunistic"
    assert "VC2" in receipt["message"]
    assert "HiveD" in platform.corral("explain", "guests")

    second = platform.submit(ct1("second", 1, "VC2", "prod"))
    assert "VC2" in platform.until(second, waiting)["reasons"]["binding"]["message"]
    levels = platform.submit(ct1("levels", 1, "VC2", "prod", topology={"required": "rack"}))
    assert platform.until(levels, waiting)["reasons"]["binding"]["code"] == "not-in-hived"

    before = inspect(platform, f"affinitygroups/{owner['id']}")
    placement = platform.client.placement(owner["id"])
    platform.corral("down", "--data", str(platform.data))
    platform.up_again()
    assert platform.client.placement(owner["id"]) == placement
    platform.until(owner, running)
    assert inspect(platform, f"affinitygroups/{owner['id']}") == before
    platform.client.stop(owner["id"])
    platform.until(second, running)


def test_hiveds_addresses_are_answered(platform: Platform) -> None:
    """H12: HiveD's JSON at HiveD's paths, for every signed-in user."""
    job = platform.submit(ct1("shown", 1, "VC2", "prod"))
    platform.until(job, running)
    names = [group["metadata"]["name"] for group in inspect(platform, "affinitygroups/")["items"]]
    assert names == [job["id"]]
    status = inspect(platform, f"affinitygroups/{job['id']}")["status"]
    assert (status["vc"], status["priority"], status["state"]) == ("VC2", 100, "Allocated")
    assert inspect(platform, "affinitygroups/nobody", 400)["code"] == "unknown-group"
    whole = inspect(platform, "clusterstatus")
    assert whole["physicalCluster"] == inspect(platform, "clusterstatus/physicalcluster")
    assert whole["virtualClusters"] == inspect(platform, "clusterstatus/virtualclusters")
    assert whole["virtualClusters"]["VC2"] == inspect(platform, "clusterstatus/virtualclusters/VC2")
    used = [cell for cell in whole["physicalCluster"] if cell["cellState"] == "Used"]
    assert [cell["cellType"] for cell in used] == ["CT1-NODE"] and used[0]["virtualCell"]["cellAddress"].startswith(
        "VC2/"
    )
    assert inspect(platform, "clusterstatus/virtualclusters/VC9", 400)["code"] == "unknown-virtual-cluster"
    assert httpx2.get(f"{platform.url}/v1/inspect/clusterstatus").status_code == 401
