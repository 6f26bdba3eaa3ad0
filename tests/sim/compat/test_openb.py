"""Table E: placement on GPU nodes, each score against a plain computation, and the printed figures."""

from __future__ import annotations

from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.sim.compat import openb_table
from corral.sim.compat.openb import Machine, Shape, Typical, inflated, read_machines, read_pods, typical_pods
from corral.sim.compat.openb_placing import (
    BestFit,
    Clustering,
    DotProduct,
    FragmentationGradient,
    NodeState,
    Packing,
    Score,
    Shapes,
    affinity,
    allocated_at,
    allocated_shares,
    fits,
)
from corral.sim.trace import TraceProblem
from corral.sim.traces.openb import MILLI
from tests.sim.compat.published import cells_of, lines_of

shapes = st.one_of(
    st.builds(Shape, st.integers(0, 64_000), st.just(0), st.just(1), st.integers(1, MILLI - 1)),
    st.builds(Shape, st.integers(0, 64_000), st.just(0), st.sampled_from([0, 1, 2, 4, 8]), st.just(MILLI)).map(
        lambda shape: shape._replace(milli=MILLI if shape.gpus else 0)
    ),
)
nodes = st.builds(
    lambda cpu, left: NodeState(cpu, 0, np.array(sorted(left), dtype=np.int64), set()),
    st.integers(0, 96_000),
    st.lists(st.one_of(st.just(MILLI), st.integers(0, MILLI)), min_size=1, max_size=8),
)
typical = st.lists(shapes, min_size=1, max_size=6).map(
    lambda found: [Typical(shape.cpu, shape.gpus, shape.milli, 1 / len(found)) for shape in found]
)


def fragmentation(cpu: int, left: list[int], pods: list[Typical]) -> float:
    """The definition of the paper, pod by pod."""
    expected = 0.0
    for pod in pods:
        usable = [gpu for gpu in left if pod.milli and gpu >= pod.milli]
        fitting = pod.milli and cpu >= pod.cpu and len(usable) >= pod.gpus
        expected += pod.share * (sum(left) - (sum(usable) if fitting else 0))
    return expected


def placements(node: NodeState, shape: Shape) -> list[list[int]]:
    """All ways to take the shape from the node's GPUs."""
    left = node.left.tolist()
    if affinity(shape) == -1:
        return [[gpu - shape.milli * (at == index) for at, gpu in enumerate(left)] for index in range(len(left))
                if left[index] >= shape.milli]  # fmt: skip
    idle = [index for index, gpu in enumerate(left) if gpu == MILLI]
    return [[0 if at in idle[: shape.gpus] else gpu for at, gpu in enumerate(left)]]


@given(nodes, st.lists(shapes, min_size=1, max_size=5, unique=True), typical)
def test_fgd_takes_the_gpu_whose_fragmentation_grows_least(
    node: NodeState, wanted: list[Shape], pods: list[Typical]
) -> None:
    score = FragmentationGradient(pods)
    rated = score.scores(node, Shapes(wanted))
    before = fragmentation(node.cpu, node.left.tolist(), pods)
    for at, fitting in enumerate(fits(node, Shapes(wanted))):
        if fitting:
            gains = [before - fragmentation(node.cpu - wanted[at].cpu, left, pods) for left in
                     placements(node, wanted[at])]  # fmt: skip
            exact = 100 / (1 + exp(-max(gains) / 1000))
            assert rated[at] == int(exact) or abs(exact - round(exact)) < 1e-6
            if affinity(wanted[at]) == -1:
                after = NodeState(node.cpu, 0, node.left.copy(), set())
                after.take(wanted[at], score.gpu(node, wanted[at]))
                gain = before - fragmentation(after.cpu, after.left.tolist(), pods)
                assert int(100 / (1 + exp(-gain / 1000)) + 1e-6) >= int(rated[at])


def state(cpu: int, *left: int, affinities: set[int] | None = None) -> NodeState:
    return NodeState(cpu, 10**6, np.array(sorted(left), dtype=np.int64), affinities or set())


def rate(score: Score, node: NodeState, shape: Shape) -> int:
    return int(score.scores(node, Shapes([shape]))[0])


HALF = Shape(8_000, 0, 1, 500)
TWO = Shape(16_000, 0, 2, MILLI)
NONE = Shape(4_000, 0, 0, 0)


def test_best_fit_prefers_the_smaller_remainder() -> None:
    # (64,000 - 8,000) / 128,000 and (2,000 - 500) / 8,000 at half weight each: 100 (1 - 0.3125).
    assert rate(BestFit(), state(64_000, 1000, 1000), HALF) == 68
    assert rate(BestFit(), state(32_000, 0, 500), HALF) > 68


def test_dot_product_prefers_nodes_with_little_of_what_is_asked() -> None:
    # 1 - (0.5 * 0.0625 + 0.25 * 0.0625) / 2
    assert rate(DotProduct(), state(64_000, 1000, 1000), HALF) == 97
    assert rate(DotProduct(), state(128_000, *[1000] * 8), TWO) == 81


def test_clustering_keeps_pods_of_the_same_size_together() -> None:
    halves = state(64_000, 500, 1000, affinities={-1})
    mixed = state(64_000, 500, 1000, affinities={-1, 2})
    idle = state(64_000, 1000, 1000)
    assert [rate(Clustering(), node, HALF) for node in (halves, mixed, idle)] == [95, 70, 43]
    assert rate(Clustering(), halves, TWO) == 20
    assert rate(Clustering(), halves, NONE) == 0


def test_packing_fills_used_gpus_then_used_nodes_then_idle_nodes() -> None:
    assert rate(Packing(), state(64_000, 500, 1000), HALF) == 95
    assert rate(Packing(), state(64_000, 400, 1000), HALF) == 49
    assert rate(Packing(), state(64_000, 400, 1000, 1000), TWO) == 48
    assert rate(Packing(), state(64_000, 1000, 1000), HALF) == 31
    assert rate(Packing(), state(64_000, 500, 1000), NONE) == 0


def test_pods_go_nowhere_when_nothing_fits() -> None:
    machines = [Machine(64_000, 10**6, 2)]
    asked, allocated = allocated_shares([TWO, HALF, NONE], machines, BestFit(), 1)
    assert asked.tolist() == [1.0, 1.25, 1.25]
    assert allocated.tolist() == [1.0, 1.0, 1.0]
    assert allocated_at(125, asked, allocated) == 1.0


@given(st.lists(shapes, min_size=1, max_size=30), st.integers(0, 3), st.sampled_from([None, BestFit(), Packing()]))
def test_no_gpu_is_given_out_twice(pods: list[Shape], seed: int, score: Score | None) -> None:
    machines = [Machine(96_000, 10**6, 8), Machine(64_000, 10**6, 2)]
    asked, allocated = allocated_shares(pods, machines, score, seed)
    assert (allocated <= np.minimum(asked, 1) + 1e-12).all()
    assert allocated_shares(pods, machines, score, seed)[1].tolist() == allocated.tolist()


def test_cloning_ends_at_the_demand() -> None:
    machines = [Machine(64_000, 10**6, 8)] * 4
    workload = inflated([HALF, Shape(1, 1, 1, MILLI)], machines, 1.3, 7)
    asked = sum(pod.gpus * pod.milli for pod in workload)
    assert 1.3 * 32_000 - 1_000 < asked <= 1.3 * 32_000


def test_typical_pods_are_the_most_frequent_ones() -> None:
    found = typical_pods([HALF] * 60 + [TWO] * 36 + [NONE] * 4)
    assert [(pod.gpus, round(pod.share, 3)) for pod in found] == [(1, 0.625), (2, 0.375)]


# The other rows take longer and are measured by `bench sim-tables`.
@pytest.mark.parametrize("row", ["Random", "BestFit"])
def test_table_e_is_within_its_points_for(row: str, data_folder: Path) -> None:
    cell = cells_of("E", row)["130 %"]
    ours = openb_table.measure(row, ["130 %"], lines_of(data_folder))["130 %"]
    assert cell.bound
    assert cell.bound.holds(ours, cell.anchor), ours


def test_one_seed_of_fgd_allocates_more_than_best_fit(data_folder: Path) -> None:
    lines = lines_of(data_folder)
    machines, pods = (
        read_machines(lines("openb/openb_node_list_gpu_node.csv")),
        read_pods(lines("openb/openb_pod_list_default.csv")),
    )
    workload = inflated(pods, machines, 1.3, 42)
    score = FragmentationGradient(typical_pods(pods))
    ours = 100 * allocated_at(130, *allocated_shares(workload, machines, score, 42))
    assert abs(ours - cells_of("E", "FGD")["130 %"].anchor) < 0.8
    assert ours > 100 * allocated_at(130, *allocated_shares(workload, machines, BestFit(), 42))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["cpu_milli,memory_mib,num_gpu", "1,1,1"], "gpu_milli is missing"),
        (["cpu_milli,memory_mib,num_gpu,gpu_milli", "1,1,9,1000"], "num_gpu is 9, not within 0 to 8"),
        (["cpu_milli,memory_mib,num_gpu,gpu_milli", "1,-1,1,1000"], "memory_mib is -1"),
        (["cpu_milli,memory_mib,num_gpu,gpu_milli", "1,1,2,500"], "must ask for whole ones"),
        (["cpu_milli,memory_mib,num_gpu,gpu_milli", "1,1,1,0"], "asks for nothing"),
        (["cpu_milli,memory_mib,num_gpu,gpu_milli", "1,x,1,1000"], "no whole number"),
    ],
)
def test_a_broken_line_is_named(lines: list[str], words: str) -> None:
    with pytest.raises(TraceProblem, match=words):
        read_pods(lines)
