"""Table A with shared GPUs: who shares, how long an iteration takes, and the printed figures of trace3."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.sim.compat.blossoms import heaviest_pairs
from corral.sim.compat.muri import completions
from corral.sim.compat.muri_jobs import MuriJob, Nodes, read_muri
from corral.sim.compat.muri_sharing import SLOWER, Interleaving, MuriOrder, seconds_together
from corral.sim.compat.muri_table import measure
from corral.sim.trace import TraceProblem
from tests.sim.compat.published import cells_of, lines_of

ONE_GPU = Nodes(1, 1)
READS, COMPUTES = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def job(stages: tuple[float, ...], iterations: int, *, submitted: float = 0.0, gpus: int = 1) -> MuriJob:
    """A job without overhead whose iteration takes the sum of its stages."""
    seconds = sum(stages)
    return MuriJob(gpus, submitted, iterations, seconds, 0.0, stages, iterations * seconds)


@pytest.mark.parametrize("row", ["Muri-S", "Muri-L, slow groups dissolved"])
def test_trace3_has_the_printed_digit_of(row: str, data_folder: Path) -> None:
    cell = cells_of("A", row)["trace3"]
    assert cell.bound is not None
    assert cell.anchor is not None
    assert cell.bound.holds(measure(row, ["trace3"], lines_of(data_folder))["trace3"], cell.anchor)


def best_by_trial(weights: list[list[float]]) -> float:
    """The highest weight of any matching."""
    edges = [(one, other) for one, other in combinations(range(len(weights)), 2) if weights[one][other] > 0]

    def best(left: list[tuple[int, int]]) -> float:
        if not left:
            return 0.0
        (one, other), *others = left
        free = [edge for edge in others if one not in edge and other not in edge]
        return max(best(others), weights[one][other] + best(free))

    return best(edges)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[float]]:
    """Weights of a graph of up to seven vertices, many of them equal, so that blossoms come up."""
    count = draw(st.integers(1, 7))
    weights = [[0.0] * count for _ in range(count)]
    for one, other in combinations(range(count), 2):
        weights[one][other] = weights[other][one] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.5, 0.7, 1.0]))
    return weights


@given(graphs())
def test_no_matching_is_heavier(weights: list[list[float]]) -> None:
    partners = heaviest_pairs(weights)
    pairs = [(one, other) for one, other in enumerate(partners) if other > one]
    assert all(other < 0 or partners[other] == one for one, other in enumerate(partners))
    assert sum(weights[one][other] for one, other in pairs) == pytest.approx(best_by_trial(weights))


def test_a_ring_of_five_leaves_its_vertex_with_the_lightest_edges_alone() -> None:
    ring = {(0, 1): 0.9, (1, 2): 0.8, (2, 3): 0.9, (3, 4): 0.2, (0, 4): 0.1}
    weights = [[ring.get((min(one, other), max(one, other)), 0.0) for other in range(5)] for one in range(5)]
    assert heaviest_pairs(weights) == [1, 0, 3, 2, -1]
    assert heaviest_pairs([[0.0]]) == [-1]
    assert heaviest_pairs([]) == []


def test_jobs_that_use_different_resources_run_beside_each_other() -> None:
    assert seconds_together([READS, COMPUTES]) == 1.0
    assert seconds_together([COMPUTES, COMPUTES]) == 2.0
    assert seconds_together([(1.0, 1.0, 1.0)] * 3) == 4.0
    assert seconds_together([(1.0, 1.0, 1.0)] * 4) == 4.0


def test_a_job_alone_takes_its_own_time_and_shared_ones_pay_for_sharing() -> None:
    interleaving = Interleaving()
    assert interleaving.pace([job(READS, 5)]) == 1.0
    assert interleaving.pace([job(READS, 5), job(COMPUTES, 5)]) == pytest.approx(SLOWER[2])


def test_two_jobs_share_one_gpu_and_end_together() -> None:
    ends, _ = completions([job(READS, 100), job(COMPUTES, 100)], ONE_GPU, MuriOrder(durations_known=True))
    assert ends == pytest.approx([100 * SLOWER[2]] * 2)


def test_no_jobs_share_where_all_fit_alone() -> None:
    ends, _ = completions([job(READS, 100), job(COMPUTES, 100)], Nodes(1, 2), MuriOrder(durations_known=True))
    assert ends == [100.0, 100.0]


def test_groups_that_are_slower_than_turns_are_dissolved_when_asked() -> None:
    jobs = [job(COMPUTES, 100), job(COMPUTES, 50)]
    together, _ = completions(jobs, ONE_GPU, MuriOrder(durations_known=True))
    assert min(together) > 100
    apart, _ = completions(jobs, ONE_GPU, MuriOrder(durations_known=True, dissolves=True))
    assert apart == [150.0, 50.0]


def test_partners_are_those_that_keep_most_resources_busy() -> None:
    groups = [(COMPUTES,), (COMPUTES,), (READS,), (READS,)]
    assert {frozenset((at, partner)) for at, partner in enumerate(Interleaving().pairs(groups))} in (
        {frozenset((0, 2)), frozenset((1, 3))},
        {frozenset((0, 3)), frozenset((1, 2))},
    )


def test_groups_of_more_than_four_jobs_are_not_made() -> None:
    assert Interleaving().pairs([(READS,) * 3, (COMPUTES,) * 2]) == [-1, -1]


def test_jobs_of_different_sizes_do_not_share() -> None:
    jobs = [job(READS, 100, gpus=2), job(COMPUTES, 10)]
    ends, _ = completions(jobs, Nodes(1, 2), MuriOrder(durations_known=True))
    assert ends == [110.0, 10.0]


def test_muri_l_prefers_the_job_that_has_attained_least() -> None:
    jobs = [job(COMPUTES, 100), job(COMPUTES, 60, submitted=40.0)]
    known, _ = completions(jobs, ONE_GPU, MuriOrder(durations_known=True, dissolves=True))
    assert known == [100.0, 160.0]
    unknown, _ = completions(jobs, ONE_GPU, MuriOrder(durations_known=False, dissolves=True))
    assert unknown == [160.0, 100.0]


HEAD = (
    "num_gpu,submit_time,iterations,model_name,iteration_time,duration,resource_time_0,resource_time_1,resource_time_2"
)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([HEAD.rpartition(",")[0], "1,0,5,bert,100,500,1,2"], "resource_time_2 is missing"),
        ([HEAD, "1,0,5,bert,100,500,1,2,-3"], "times of the resources"),
        ([HEAD, "1,0,5,bert,100,nan,1,2,3"], "out of range"),
        ([HEAD, "1,0,5,bert,100,500,1,2,none"], "no number"),
    ],
)
def test_a_broken_line_of_a_trace_with_resources_is_named(lines: list[str], words: str) -> None:
    with pytest.raises(TraceProblem, match=words):
        read_muri(lines, ONE_GPU, shares=True)
