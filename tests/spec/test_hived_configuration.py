"""HiveD's and OpenPAI's own YAML loads unchanged, and errors name their path (score rows H1, H2)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.scheduler.planners.hived.algorithm import HivedAlgorithm
from corral.spec.configuration_file import is_configuration
from corral.spec.errors import SpecError, path_text
from corral.spec.hived.configuration import load_hived
from tests.scheduler.hived_clusters import read_cases

TEXT = """
kubeApiServerAddress: http://10.10.10.10:8080
waitingPodSchedulingBlockMilliSec: 50
physicalCluster:
  skuTypes:
    P100: {gpu: 1, cpu: 4, memory: 16384Mi}
  cellTypes:
    P100-SWITCH: {childCellType: P100, childCellNumber: 2}
    P100-NODE: {childCellType: P100-SWITCH, childCellNumber: 2, isNodeLevel: true}
    3-P100-NODE: {childCellType: P100-NODE, childCellNumber: 3}
    CT1-NODE: {childCellType: CT1, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
  - cellType: CT1-NODE
    cellAddress: 0.0.0.0
  - cellType: CT1-NODE            # a node with devices of two kinds, and with indexes of its own
    cellAddress: 1.0.0.2
    cellChildren:
    - {cellAddress: 8, pinnedCellId: ONE-CT1}
    - {cellAddress: 9}
  - cellType: 3-P100-NODE
    cellChildren:
    - {cellAddress: 1.0.0.2, cellChildren: null}
    - cellAddress: 1.0.0.1
    - cellAddress: 1.0.0.0
      cellChildren:
      - cellAddress: 1
        cellChildren: [{cellAddress: 3}, {cellAddress: 1}]
      - cellAddress: 0
        cellChildren: [{cellAddress: 2}, {cellAddress: 0}]
virtualClusters:
  VC1:
    virtualCells:
    - {cellType: 3-P100-NODE.P100-NODE, cellNumber: 1}
    pinnedCells: [{pinnedCellId: ONE-CT1}]
  VC2:
    virtualCells:
    - {cellType: 3-P100-NODE.P100-NODE.P100-SWITCH, cellNumber: 3}
    - {cellType: CT1-NODE, cellNumber: 1}
"""


def test_h1_every_cell_gets_hiveds_address_and_its_own_device_index() -> None:
    forest = HivedAlgorithm(load_hived(TEXT)).state.forest
    addresses = {
        chain.name: [[cell.address for cell in cells] for cells in chain.cells] for chain in forest.chains.values()
    }
    assert addresses["CT1-NODE"][1] == ["0.0.0.0/0", "0.0.0.0/1", "1.0.0.2/8", "1.0.0.2/9"]
    assert addresses["3-P100-NODE"][4] == ["2"]
    assert addresses["3-P100-NODE"][3] == ["2/1.0.0.2", "2/1.0.0.1", "2/1.0.0.0"]
    assert addresses["3-P100-NODE"][1][:4] == ["2/1.0.0.2/0/0", "2/1.0.0.2/0/1", "2/1.0.0.2/1/2", "2/1.0.0.2/1/3"]
    assert addresses["3-P100-NODE"][1][8:] == ["2/1.0.0.0/1/3", "2/1.0.0.0/1/1", "2/1.0.0.0/0/2", "2/1.0.0.0/0/0"]
    assert {device for node, device in forest.devices if node == "1.0.0.2"} == {0, 1, 2, 3, 8, 9}
    virtual = [leaf.address for root in forest.tenants["VC2"].roots["3-P100-NODE"] for leaf in root.leaves()]
    assert virtual == ["VC2/0/0", "VC2/0/1", "VC2/1/0", "VC2/1/1", "VC2/2/0", "VC2/2/1"]


def test_h1_hiveds_design_configuration_loads(data_folder: Path) -> None:
    config = read_cases(data_folder)["scenarios"][0]["config"]
    cluster = load_hived(config)
    assert len(cluster.physical_cluster.cell_types) == 21
    assert len(cluster.physical_cluster.physical_cells) == 10
    assert HivedAlgorithm(cluster).consistent()


def test_the_names_of_older_versions_and_openpais_wrapper_are_read() -> None:
    old = TEXT.replace("skuTypes", "gpuTypes").replace("pinnedCells", "reservedCells")
    old = old.replace("pinnedCellId", "reservationId")
    inner = "\n".join("    " + line for line in old.splitlines())
    wrapped = load_hived(f"hivedscheduler:\n  config: |\n{inner}\n")
    assert wrapped == load_hived(TEXT)


def _set(data: Any, path: str, value: Any) -> Any:
    *parts, last = path.split("/")
    for part in parts:
        data = data[int(part) if part.isdigit() and isinstance(data, list) else part]
    data[int(last) if last.isdigit() and isinstance(data, list) else last] = value
    return data


GOOD: dict[str, Any] = {
    "physicalCluster": {
        "cellTypes": {
            "switch": {"childCellType": "gpu", "childCellNumber": 2},
            "node": {"childCellType": "switch", "childCellNumber": 2, "isNodeLevel": True},
            "rack": {"childCellType": "node", "childCellNumber": 2},
        },
        "physicalCells": [
            {"cellType": "rack", "cellChildren": [{"cellAddress": "a"}, {"cellAddress": "b", "pinnedCellId": "pin"}]},
            {"cellType": "node", "cellAddress": "c"},
        ],
    },
    "virtualClusters": {
        "one": {"virtualCells": [{"cellType": "rack.node", "cellNumber": 1}]},
        "two": {
            "virtualCells": [{"cellType": "node.switch", "cellNumber": 2}],
            "pinnedCells": [{"pinnedCellId": "pin"}],
        },
    },
}
CELLS, TYPES = "physicalCluster/physicalCells", "physicalCluster/cellTypes"


@pytest.mark.parametrize(
    ("change", "value", "path", "reason"),
    [
        (f"{TYPES}/switch/childCellType", "rack", "physicalCluster.cellTypes.switch.childCellType", "contains itself"),
        (f"{TYPES}/switch/isNodeLevel", True, "physicalCluster.cellTypes.node.isNodeLevel", "a node inside a node"),
        (f"{TYPES}/node/isNodeLevel", False, "physicalCluster.physicalCells[0].cellType", "has no node"),
        (f"{TYPES}/node/childCellNumber", 0, "physicalCluster.cellTypes.node.childCellNumber", "at least 1"),
        (f"{CELLS}/1/cellType", "nodes", "physicalCluster.physicalCells[1].cellType", 'did you mean "node"'),
        (f"{CELLS}/1/cellType", "", "physicalCluster.physicalCells[1].cellType", "missing"),
        (f"{CELLS}/1/cellAddress", "", "physicalCluster.physicalCells[1].cellAddress", "node's name"),
        (f"{CELLS}/1/cellAddress", "a", "physicalCluster.physicalCells[1].cellChildren[0]", 'device 0 of node "a"'),
        (f"{CELLS}/0/cellChildren/0/cellAddress", "b", "physicalCluster.physicalCells[0].cellChildren[1]", "there twice"),
        (f"{CELLS}/0/cellChildren/0/cellType", "switch", "physicalCluster.physicalCells[0].cellChildren[0]", "expected"),
        (f"{CELLS}/0/cellChildren/0/cellAddress", "a/b", "physicalCluster.physicalCells[0].cellChildren[0]", "'/'"),
        (f"{CELLS}/0/cellChildren", [{"cellAddress": "a"}], "physicalCluster.physicalCells[0].cellChildren", "2 children"),
        (f"{CELLS}/0/pinnedCellId", "all", "physicalCluster.physicalCells[0].cellChildren[1].pinnedCellId", "pinned again"),
        (f"{CELLS}/1/pinnedCellId", "pin", "physicalCluster.physicalCells[1].pinnedCellId", "there twice"),
        (f"{CELLS}/1/cellChildren", [{"cellChildren": [{"cellAddress": "x"}, {}]}, {}],
         "physicalCluster.physicalCells[1].cellChildren[0].cellChildren[0].cellAddress", "index of a device"),
        (f"{CELLS}/1/cellChildren", [{"cellChildren": [{"cellAddress": "2"}, {}]}, {}],
         "physicalCluster.physicalCells[1].cellChildren[1]", "device 2 of node"),
        ("virtualClusters/one/virtualCells/0/cellType", "rack.switch", "virtualClusters.one.virtualCells[0]", "is not"),
        ("virtualClusters/one/virtualCells/0/cellType", "rack.nod", "virtualClusters.one.virtualCells[0]", "did you mean"),
        ("virtualClusters/one/virtualCells/0/cellType", "switch", "virtualClusters.one.virtualCells[0]", "at the top"),
        ("virtualClusters/one/virtualCells/0/cellNumber", -1, "virtualClusters.one.virtualCells[0]", "at least 0"),
        ("virtualClusters/one/virtualCells/0/cellNumber", 2, "virtualClusters", "own 2 cells of type node in chain rack"),
        ("virtualClusters/two/virtualCells/0/cellNumber", 3, "virtualClusters", "own 3 cells of type switch"),
        ("virtualClusters/one/virtualCells/0/cellType", "rack", "virtualClusters", "own 1 cells of type rack"),
        ("virtualClusters/two/pinnedCells/0/pinnedCellId", "pon", "virtualClusters.two.pinnedCells[0]", "did you mean"),
        ("virtualClusters/one/pinnedCells", [{"pinnedCellId": "pin"}], "virtualClusters.two.pinnedCells[0]", "belongs to"),
        ("virtualClusters/one/cells", [], "virtualClusters.one.cells", "unknown field"),
    ],
)  # fmt: skip
def test_h2_what_cannot_be_is_refused_with_the_path_and_the_reason(
    change: str, value: object, path: str, reason: str
) -> None:
    load_hived(GOOD)
    config = copy.deepcopy(GOOD)
    _set(config, change, value)
    with pytest.raises(SpecError) as refused:
        load_hived(config)
    places = [path_text(problem.path) for problem in refused.value.problems]
    assert any(place.startswith(path) for place in places), places
    assert reason in str(refused.value)


def test_two_pinned_devices_in_two_nodes_break_two_nodes() -> None:
    """HiveD's plain count misses this: 1 node is owned, 2 exist, and neither of them is whole."""
    config = copy.deepcopy(GOOD)
    leaves = [{"cellChildren": [{"pinnedCellId": "x"}, {}]}, {}]
    config["physicalCluster"]["physicalCells"] = [
        {"cellType": "node", "cellAddress": "c", "cellChildren": copy.deepcopy(leaves)},
        {"cellType": "node", "cellAddress": "d", "cellChildren": copy.deepcopy(leaves)},
    ]
    config["physicalCluster"]["physicalCells"][1]["cellChildren"][0]["cellChildren"][0]["pinnedCellId"] = "y"
    config["virtualClusters"] = {"one": {"virtualCells": [{"cellType": "node", "cellNumber": 1}]}}
    load_hived(config)
    config["virtualClusters"]["two"] = {"pinnedCells": [{"pinnedCellId": "x"}, {"pinnedCellId": "y"}]}
    with pytest.raises(SpecError, match="own 1 cells of type node in chain node, 0 more pinned, and 0 are there"):
        load_hived(config)


def test_text_is_refused_with_line_and_column() -> None:
    with pytest.raises(
        SpecError, match=r"mine.yaml:33:\d+: virtualClusters.VC1.virtualCells\[0\].cellType: no cell type"
    ):
        load_hived(TEXT.replace("3-P100-NODE.P100-NODE, cell", "3-P100-NODE.NODE, cell"), filename="mine.yaml")


FIELDS = (
    "physicalCluster", "skuTypes", "cellTypes", "childCellType", "childCellNumber", "isNodeLevel", "physicalCells",
    "cellType", "cellAddress", "cellChildren", "pinnedCellId", "virtualClusters", "virtualCells", "cellNumber",
    "pinnedCells", "kubeApiServerAddress", "waitingPodSchedulingBlockMilliSec",
)  # fmt: skip


@pytest.mark.parametrize("respelled", [str.lower, str.upper, str.capitalize])
def test_keys_are_read_in_any_case_as_go_reads_them_and_names_as_they_are(respelled: Callable[[str], str]) -> None:
    text = TEXT
    for field in FIELDS:
        text = re.sub(rf"\b{field}\b", respelled(field), text)
    assert text != TEXT and load_hived(text) == load_hived(TEXT)
    assert is_configuration(text)
    with pytest.raises(SpecError, match=r"virtualClusters\.vc1.*p100-node"):
        load_hived(text + "  vc1:\n    virtualCells: [{cellType: p100-node, cellNumber: 1}]\n")


def test_a_problem_is_placed_where_the_key_is_written_in_its_own_case() -> None:
    with pytest.raises(SpecError) as caught:
        load_hived(
            TEXT.replace("physicalCluster:", "PhysicalCluster:").replace("isNodeLevel: true", "isnodelevel: 3", 1)
        )
    (problem,) = caught.value.problems
    assert path_text(problem.path) == "physicalCluster.cellTypes.P100-NODE.isNodeLevel"
    assert (problem.line, problem.column) == (9, 78)
    with pytest.raises(SpecError, match="repeated; cellType was already given"):
        load_hived(TEXT.replace("  - cellType: CT1-NODE\n", "  - cellType: CT1-NODE\n    CellType: CT1-NODE\n", 1))


def test_null_is_unset() -> None:
    nulls = TEXT.replace(
        "- {cellAddress: 9}", "- {cellAddress: 9, pinnedCellId: null, cellChildren: null, cellType: null}"
    )
    nulls = nulls.replace("childCellNumber: 3}", "childCellNumber: 3, isNodeLevel: null}")
    nulls = nulls.replace("waitingPodSchedulingBlockMilliSec: 50", "waitingPodSchedulingBlockMilliSec: null")
    nulls += "  VC3: null\n"
    loaded = load_hived(nulls)
    assert loaded.physical_cluster == load_hived(TEXT).physical_cluster
    assert (loaded.virtual_clusters["VC3"].virtual_cells, loaded.waiting_pod_scheduling_block_milli_sec) == ([], 0)
