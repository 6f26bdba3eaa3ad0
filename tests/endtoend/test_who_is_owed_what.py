"""Queues, waiting list and cells at a terminal, and metrics by queue, where queues have cells and deserved devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.endtoend.platform import CLUSTER, Platform, on_devices

pytestmark = pytest.mark.timeout(300)

QUEUES = """
queues:
  default: {}
  research: {cells: [{level: node, count: 2}]}
  production: {deserved: {devices: 8}, limit: {devices: 8}}
  nightly: {parent: production}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The described devices of `examples/cluster.yaml` with other queues."""
    folder: Path = tmp_path_factory.mktemp("owed")
    cluster = folder / "cluster.yaml"
    cluster.write_text(CLUSTER.read_text().partition("queues:")[0] + QUEUES)
    made = Platform(folder, cluster=cluster)
    made.up()
    yield made
    made.down()


def test_who_owns_what_who_uses_it_and_who_is_next(platform: Platform) -> None:
    mine = platform.submit(on_devices("mine", 4, queue="research"))
    guest = platform.submit(on_devices("guest", 3, queue="nightly"))
    for job in (mine, guest):
        platform.until(job, lambda found: found["state"] == "running")
    waits = platform.submit(on_devices("waits", 4, replicas=2, queue="nightly"))
    platform.until(waits, lambda found: bool(found["reasons"]) and found["reasons"]["binding"]["code"] == "queue-limit")

    queues = {queue["name"]: queue for queue in json.loads(platform.corral("queues", "-o", "json"))}
    assert list(queues) == ["default", "production", "nightly", "research"]
    assert queues["production"]["standing"]["used"]["devices"] == 3
    (cells,) = queues["research"]["standing"]["cells"]
    assert (cells["owned"], cells["bound"], cells["free"]) == (2, 1, 1)
    assert "  nightly" in platform.corral("queues")
    assert "2" in platform.corral("queues", "research").partition("CELLS")[2]

    (entry,) = json.loads(platform.corral("line", "--queue", "production", "-o", "json"))
    assert (entry["name"], entry["position"], entry["devices"]) == ("waits", 1, 8)
    assert "may hold 8" in platform.corral("line")

    token = json.loads(platform.corral("token", "create", "prometheus", "-o", "json"))["token"]
    told = httpx2.get(f"{platform.url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
    assert 'corral_queue_used{queue="production",resource="devices"} 3.0' in told
    assert 'corral_jobs_waiting{queue="nightly",reason="queue-limit"} 1.0' in told
    assert "production" not in (totals := httpx2.get(f"{platform.url}/metrics").text)
    assert 'corral_jobs_waiting{reason="queue-limit"} 1.0' in totals

    tree = platform.corral("cells")
    assert "bound to research" in tree and "●●●●" in tree.replace(" ", "") and "◐" in tree
    (node,) = {task["node"] for task in platform.client.placement(mine["id"])["items"]}
    shown = platform.corral("cells", f"local|node:{node}")
    assert shown.count("guaranteed)") == 4 and "mine main-0" in shown
    assert "There is no cell" in platform.refused("cells", "local|rack:nowhere", code=3)
    assert "There is no queue" in platform.refused("queues", "nowhere", code=3)
