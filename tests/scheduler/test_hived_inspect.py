"""HiveD's inspection documents, field by field (score row H12)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm import HivedAlgorithm, Order, Phase, inspect_api
from corral.spec.hived.configuration import load_hived
from tests.scheduler.hived_clusters import read_cases
from tests.scheduler.hived_life import Life
from tests.scheduler.test_hived_guarantees import config, pod, start


def busy() -> HivedAlgorithm:
    """A gang on its owned node, one that lost its guarantee to it, and an opportunistic one."""
    algorithm = HivedAlgorithm(config(["A", "B"], {"vc": {"node": 1}, "other": {"rack": 1}}))
    start(algorithm, pod("lost", "vc", 2, lazy=True))
    urgent = pod("urgent", "vc", 2, priority=5)
    decision = algorithm.schedule(urgent, set(algorithm.nodes), now=1_600_000_000.0)
    algorithm.add_allocated(urgent, decision)  # type: ignore[arg-type]
    start(algorithm, pod("spare", "vc", 1, priority=-1))
    return algorithm


def test_h12_affinity_groups_are_hiveds_documents() -> None:
    algorithm = busy()
    assert inspect_api.affinity_groups(algorithm.state) == {
        "items": [inspect_api.affinity_group(algorithm.state, name) for name in ("lost", "urgent", "spare")]
    }
    assert inspect_api.affinity_group(algorithm.state, "lost") == {
        "metadata": {"name": "lost"},
        "status": {
            "vc": "vc",
            "priority": 0,
            "state": "Allocated",
            "physicalPlacement": {"A0": [0, 1]},
            "allocatedPods": ["lost"],
            "lazyPreemptionStatus": {"preemptor": "urgent", "preemptionTime": "2020-09-13T12:26:40Z"},
        },
    }
    assert inspect_api.affinity_group(algorithm.state, "urgent")["status"]["virtualPlacement"] == {
        "vc/0": ["vc/0/0", "vc/0/1"]
    }
    with pytest.raises(InvalidInput, match="nobody"):
        inspect_api.affinity_group(algorithm.state, "nobody")


def test_h12_a_preemptor_shows_the_pods_that_wait() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    start(algorithm, pod("victim.0", "vc", 2, pods=2))
    algorithm.schedule(pod("urgent", "vc", 2, priority=1), set(algorithm.nodes), Phase.PREEMPTING)
    status = inspect_api.affinity_group(algorithm.state, "urgent")["status"]
    assert (status["state"], status["preemptingPods"], "allocatedPods" in status) == ("Preempting", ["urgent"], False)
    assert inspect_api.affinity_group(algorithm.state, "victim")["status"]["state"] == "BeingPreempted"
    states = {cell["cellAddress"]: cell["cellState"] for cell in inspect_api.physical_cluster(algorithm.state)}
    assert states == {"0": "Used"}


def test_h12_a_physical_cell_shows_its_children_and_whose_it_is() -> None:
    algorithm = busy()
    algorithm.set_node_health("B1", healthy=False)
    first, second = inspect_api.cluster_status(algorithm.state)["physicalCluster"]
    assert {name: value for name, value in second.items() if name != "cellChildren"} == {
        "leafCellType": "gpu",
        "cellType": "rack",
        "cellAddress": "1",
        "cellState": "Used",
        "cellHealthiness": "Bad",
        "cellPriority": 5,
    }
    node, bad = second["cellChildren"]
    assert {name: value for name, value in node.items() if name != "cellChildren"} == {
        "cellType": "node",
        "isNodeLevel": True,
        "cellAddress": "1/B0",
        "cellState": "Used",
        "cellHealthiness": "Healthy",
        "cellPriority": 5,
        "vc": "vc",
        "virtualCell": {
            "leafCellType": "gpu",
            "cellType": "node",
            "isNodeLevel": True,
            "cellAddress": "vc/0",
            "cellState": "Used",
            "cellHealthiness": "Healthy",
            "cellPriority": 5,
        },
    }
    assert (bad["cellHealthiness"], bad["cellState"], bad["cellPriority"]) == ("Bad", "Free", -2)
    assert (first["cellHealthiness"], first["cellState"], first["cellPriority"]) == ("Healthy", "Used", -1)
    assert first["cellChildren"][0]["cellChildren"][0]["vc"] == "vc"
    assert "vc" not in first["cellChildren"][1]["cellChildren"][1]


def test_h12_a_virtual_cluster_shows_its_cells_and_what_it_uses_beyond_them() -> None:
    algorithm = busy()
    own, *beyond = inspect_api.virtual_cluster(algorithm.state, "vc")
    assert own["cellAddress"] == "vc/0"
    assert own["physicalCell"]["cellAddress"] == "1/B0"
    assert "cellChildren" not in own["physicalCell"]
    assert [child["cellAddress"] for child in own["cellChildren"]] == ["vc/0/0", "vc/0/1"]
    assert [cell["cellAddress"] for cell in beyond] == ["0/A0/0-opp", "0/A0/1-opp", "0/A1/0-opp"]
    assert {cell["cellPriority"] for cell in beyond} == {-1}
    assert inspect_api.virtual_clusters(algorithm.state)["vc"] == [own, *beyond]
    with pytest.raises(InvalidInput, match="nobody"):
        inspect_api.virtual_cluster(algorithm.state, "nobody")


def test_h12_hiveds_design_cluster_has_every_cell_once(data_folder: Path) -> None:
    cluster = load_hived(read_cases(data_folder)["scenarios"][0]["config"])
    algorithm = HivedAlgorithm(cluster)
    status = json.loads(json.dumps(inspect_api.cluster_status(algorithm.state)))
    assert set(status) == {"physicalCluster", "virtualClusters"}
    assert len(status["physicalCluster"]) == 10
    assert set(status["virtualClusters"]) == {"VC1", "VC2"}
    pinned = [cell for cell in status["virtualClusters"]["VC1"] if "physicalCell" in cell]
    assert sorted(cell["physicalCell"]["cellAddress"] for cell in pinned) == ["1.0.0.2/8", "7/14", "9"]


def test_h12_whatever_the_state_it_can_be_shown_and_shows_every_used_device() -> None:
    for seed in range(6):
        life = Life(("shown", seed), Order.CONFIGURATION)
        for _ in range(60):
            life.happen()
            state = life.algorithm.state
            shown = json.dumps(inspect_api.cluster_status(state))
            assert inspect_api.affinity_groups(state)["items"] or '"cellState": "Used"' not in shown
            for tenant, documents in inspect_api.virtual_clusters(state).items():
                beyond = [cell for cell in documents if cell["cellAddress"].endswith("-opp")]
                assert len(beyond) == sum(
                    owned is None and cell.reserver is None
                    for group in state.groups.values()
                    if group.vc == tenant
                    for cell, owned in group.held()
                )
