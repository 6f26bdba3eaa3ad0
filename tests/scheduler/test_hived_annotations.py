"""HiveD's annotations are read and written unchanged; bound pods are recovered from them (score rows H9, H11)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm import HivedAlgorithm, Member, Order, PodRequest, Preempt
from corral.scheduler.planners.hived.algorithm.annotations import bind_document, read_bind, read_request
from corral.spec.hived.configuration import load_hived
from tests.scheduler.hived_life import Life
from tests.scheduler.test_hived_guarantees import config, pod, start

SPEC: dict[str, Any] = {
    "virtualCluster": "vc",
    "priority": 5,
    "leafCellType": "V100",
    "leafCellNumber": 2,
    "lazyPreemptionEnable": True,
    "affinityGroup": {
        "name": "jobs/one",
        "members": [{"podNumber": 3, "leafCellNumber": 2}, {"podNumber": 1, "leafCellNumber": 4}],
    },
}


def test_a_request_is_read_from_hiveds_annotation_of_any_version() -> None:
    expected = PodRequest(
        pod="jobs/one-0",
        vc="vc",
        priority=5,
        leaves=2,
        group="jobs/one",
        members=(Member(3, 2), Member(1, 4)),
        leaf_type="V100",
        lazy_preemption=True,
    )
    assert read_request(SPEC, "jobs/one-0") == expected
    old = json.loads(json.dumps(SPEC).replace("leafCellType", "gpuType").replace("leafCellNumber", "gpuNumber"))
    assert read_request(old, "jobs/one-0") == expected
    shouted = json.loads(re.sub('"([a-zA-Z]+)":', lambda key: key[0].upper(), json.dumps(SPEC)))
    assert read_request(shouted, "jobs/one-0") == expected
    alone = read_request({"virtualCluster": "vc", "priority": -1, "leafCellNumber": 4}, "ns/pod")
    assert (alone.group, alone.members, alone.ignore_suggested) == ("ns/pod", (Member(1, 4),), True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"virtualCluster": 3}, "virtualCluster is not text"),
        ({"leafCellNumber": "2"}, "leafCellNumber is not a whole number"),
        ({"leafCellNumber": True}, "leafCellNumber is not a whole number"),
        ({"lazyPreemptionEnable": "yes"}, "lazyPreemptionEnable is not true or false"),
        ({"affinityGroup": []}, "expected a mapping, got list"),
        ({"affinityGroup": {"name": "g", "members": 3}}, "members is not a list"),
        ({"affinityGroup": {"name": "g", "members": [{"podNumber": 10**9, "leafCellNumber": 2}]}}, "more than"),
        ({"affinityGroup": {"name": "g", "members": [{"podNumber": 1, "leafCellNumber": 8}]}}, "no member of 2"),
        ({"priority": 2000}, "from -1 to 1000"),
    ],
)
def test_an_annotation_that_cannot_be_meant_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_request({**SPEC, **change}, "pod")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected a mapping"),
        ({"node": "n", "leafCellIsolation": [], "affinityGroupBindInfo": []}, "bound to no device"),
        ({"node": "n", "leafCellIsolation": ["0"], "affinityGroupBindInfo": []}, "a list of whole numbers"),
        ({"node": 3, "leafCellIsolation": [0], "affinityGroupBindInfo": []}, "node is not text"),
        ({"node": "n", "leafCellIsolation": [0]}, "affinityGroupBindInfo is not a list"),
    ],
)
def test_bind_info_that_cannot_be_meant_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_bind(data)


def test_a_binding_is_written_as_hiveds_and_read_back() -> None:
    algorithm = HivedAlgorithm(config(["A"], {"vc": {"rack": 1}}))
    bound = start(algorithm, PodRequest("g.0", "vc", 0, 1, "g", (Member(1, 1), Member(1, 2))))
    document = bind_document(bound)
    assert document == {
        "node": "A0",
        "leafCellIsolation": [0],
        "cellChain": "rack",
        "affinityGroupBindInfo": [
            {
                "podPlacements": [
                    {"physicalNode": "A0", "physicalLeafCellIndices": [0], "preassignedCellTypes": ["rack"]}
                ]
            },
            {
                "podPlacements": [
                    {"physicalNode": "A1", "physicalLeafCellIndices": [0, 1], "preassignedCellTypes": ["rack", "rack"]}
                ]
            },
        ],
    }
    assert read_bind(json.loads(json.dumps(document))) == bound


def test_h11_after_a_crash_everything_that_ran_is_recovered_from_its_annotations() -> None:
    for seed in range(8):
        life = Life(("crash", seed), Order.CONFIGURATION)
        for _ in range(50):
            life.live()
        kept = [
            (request, json.dumps(bind_document(bound))) for pods in life.running.values() for request, bound in pods
        ]
        recovered = HivedAlgorithm(life.algorithm.cluster)
        for request, document in kept:
            recovered.add_allocated(request, read_bind(json.loads(document)))
        assert recovered.differences() == []
        assert recovered.broken_guarantees() == []
        used = {
            name: {(cell.nodes[0], cell.device) for cell, _ in group.held()}
            for name, group in life.algorithm.groups.items()
            if group.pods
        }
        assert used == {
            name: {(cell.nodes[0], cell.device) for cell, _ in group.held()} for name, group in recovered.groups.items()
        }


def pinned(pin: str) -> HivedAlgorithm:
    """Two nodes: one pinned to `owner`, the other owned by `other`."""
    cells = [
        {"cellType": "node", "cellAddress": name, **({"pinnedCellId": "pin"} if name == pin else {})} for name in "ab"
    ]
    types = {"node": {"childCellType": "gpu", "childCellNumber": 2, "isNodeLevel": True}}
    tenants = {
        "owner": {"pinnedCells": [{"pinnedCellId": "pin"}]},
        "other": {"virtualCells": [{"cellType": "node", "cellNumber": 1}]},
    }
    physical = {"cellTypes": types, "physicalCells": cells}
    return HivedAlgorithm(load_hived({"physicalCluster": physical, "virtualClusters": tenants}))


def test_h9_a_pinned_cell_is_its_owners_alone_and_whoever_scavenges_on_it_yields() -> None:
    algorithm = pinned("a")
    nodes = set(algorithm.nodes)
    assert start(algorithm, pod("other", "other", 2)).node == "b"
    with pytest.raises(InvalidInput, match='no pinned cell "pin"'):
        algorithm.schedule(PodRequest("x", "other", 0, 1, "x", (Member(1, 1),), pinned_cell="pin"), nodes)
    with pytest.raises(InvalidInput, match="opportunistic and names a pinned cell"):
        algorithm.schedule(PodRequest("x", "owner", -1, 1, "x", (Member(1, 1),), pinned_cell="pin"), nodes)
    assert start(algorithm, pod("spare", "other", 1, priority=-1)).node == "a"
    request = PodRequest("mine", "owner", 0, 2, "mine", (Member(1, 2),), pinned_cell="pin")
    assert algorithm.schedule(request, nodes) == Preempt("a", ("spare",))
    algorithm.delete_allocated(pod("spare", "other", 1, priority=-1))
    assert start(algorithm, request).node == "a"


def test_h9_a_gang_on_a_cell_that_is_pinned_elsewhere_now_runs_on_without_its_guarantee() -> None:
    algorithm = pinned("a")
    start(algorithm, PodRequest("mine", "owner", 0, 2, "mine", (Member(1, 2),), pinned_cell="pin"))
    fresh, changes = algorithm.reconfigured(pinned("b").cluster)
    assert changes.lazily_preempted == ("mine",)
    assert fresh.groups["mine"].label == "Allocated+LazyPreempted"
    assert fresh.consistent()
