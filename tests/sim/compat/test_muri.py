"""Table A: Muri's event loop, its orders by hand, and the printed figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.sim.compat.muri import ShortestFirst, TiresiasL, completions
from corral.sim.compat.muri_jobs import SLOWDOWN, MuriJob, Nodes, read_muri, start_overhead
from corral.sim.compat.muri_table import NODES, measure
from corral.sim.compat.muri_themis import Themis, fairest_fractions
from corral.sim.trace import TraceProblem
from tests.sim.compat.published import cells_of, lines_of

ONE_NODE = Nodes(1, 8)


def job(gpus: int, submitted: float, seconds: int, overhead: float = 0.0) -> MuriJob:
    return MuriJob(gpus, submitted, seconds, 1.0, overhead)


@pytest.mark.parametrize("row", ["SRTF", "SRSF", "Tiresias-L"])
def test_table_a_has_the_printed_digits_of(row: str, data_folder: Path) -> None:
    cells = cells_of("A", row)
    ours = measure(row, list(cells), lines_of(data_folder))
    holds = {
        column: cell.bound is not None and cell.anchor is not None and cell.bound.holds(ours[column], cell.anchor)
        for column, cell in cells.items()
    }
    assert holds == {"trace1": True, "trace3": True, "trace3_pr": True}


def test_themis_of_trace3_is_printed_with_iterations_of_their_profiled_time(data_folder: Path) -> None:
    makespan = 8172104.51  # as the anchor's files print it
    text = list(lines_of(data_folder)("muri/trace3.csv"))

    def earliest_end(slowdown: float) -> float:
        jobs = read_muri(text, NODES, slowdown=slowdown)
        return max(job.submitted + job.iterations * job.iteration_seconds for job in jobs)

    assert earliest_end(1.0) < makespan < earliest_end(SLOWDOWN)
    cell = cells_of("A", "Themis")["trace3"]
    assert cell.bound is not None
    assert cell.anchor is not None
    assert cell.bound.holds(measure("Themis", ["trace3"], lines_of(data_folder))["trace3"], cell.anchor)


def test_a_running_job_loses_its_overhead_at_each_event_but_not_at_its_own_end() -> None:
    # The arrival at 10 takes 4 s of the work done by then; the second job is longer and waits for the first to end.
    ends, events = completions([job(8, 0, 30, 4.0), job(8, 10, 50, 4.0)], ONE_NODE, ShortestFirst(by_service=False))
    assert ends == [34.0, 84.0]
    assert events == 4


def test_a_stretch_shorter_than_the_overhead_does_no_work() -> None:
    ends, _ = completions([job(8, 0, 30, 4.0), job(8, 3, 50, 4.0)], ONE_NODE, ShortestFirst(by_service=False))
    assert ends == [33.0, 83.0]


def test_srtf_looks_at_time_and_srsf_at_time_times_gpus() -> None:
    jobs = [job(8, 0, 10), job(1, 0, 40)]
    assert completions(jobs, ONE_NODE, ShortestFirst(by_service=False))[0] == [10.0, 50.0]
    jobs = [job(8, 0, 10), job(1, 0, 40), job(8, 0, 30)]
    # 80, 40 and 240 GPU-seconds: the one GPU goes first, and neither of the large jobs fits beside it.
    assert completions(jobs, ONE_NODE, ShortestFirst(by_service=True))[0] == [50.0, 40.0, 80.0]


def test_2d_las_moves_a_job_down_when_its_gpu_seconds_reach_the_limit() -> None:
    # With a limit of 80 GPU-seconds the first job of 8 GPUs runs for 10 s, then the second one, and then the first again.
    ends, _ = completions([job(8, 0, 25), job(8, 1, 10)], ONE_NODE, TiresiasL([80.0]))
    assert ends == [35.0, 20.0]


def test_2d_las_counts_gpus_and_lets_no_job_wait_for_a_whole_node() -> None:
    two = Nodes(2, 4)
    jobs = [job(3, 0, 10), job(3, 0, 10), job(2, 0, 10)]
    assert completions(jobs, two, TiresiasL([1e9]))[0] == [10.0, 10.0, 10.0]
    assert completions(jobs, two, ShortestFirst(by_service=False))[0] == [10.0, 10.0, 20.0]


def test_more_gpus_than_a_node_has_need_whole_idle_nodes() -> None:
    jobs = [job(1, 0, 10), job(8, 0, 20)]
    assert completions(jobs, Nodes(2, 4), ShortestFirst(by_service=False))[0] == [10.0, 30.0]


def test_themis_fractions_of_two_equal_jobs_share_the_cluster() -> None:
    found = fairest_fractions(np.zeros(2), np.array([0.5, 0.5]), np.array([8.0, 8.0]), 8.0)
    assert found == pytest.approx([0.5, 0.5])


def test_themis_gives_more_time_to_the_job_that_waited_longer() -> None:
    # rho = waited + work / x with x1 + x2 = 1: 1 + 0.5 / x = 0.5 / (1 - x) gives x = sqrt(0.5).
    found = fairest_fractions(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([1.0, 1.0]), 1.0)
    assert found == pytest.approx([0.5**0.5, 1 - 0.5**0.5])


fractions = st.floats(0.01, 5.0)


@given(
    st.lists(st.tuples(fractions, fractions, st.sampled_from([1, 2, 4, 8])), min_size=1, max_size=8), st.integers(1, 64)
)
def test_no_feasible_share_has_a_smaller_worst_ratio(jobs: list[tuple[float, float, int]], capacity: int) -> None:
    waited, work, gpus = (np.array([float(each[at]) for each in jobs]) for at in range(3))
    found = fairest_fractions(waited, work, gpus, float(capacity))
    assert (found > 0).all()
    assert (found <= 1 + 1e-9).all()
    assert float(gpus @ found) <= capacity * (1 + 1e-9)
    worst = float(np.max(waited + work / found))
    # A ratio smaller by a thousandth needs more than the capacity, or more than all of the time.
    needed = work / np.maximum(worst * 0.999 - waited, 1e-300)
    assert worst * 0.999 <= waited.max() or needed.max() > 1 or float(gpus @ needed) > capacity * (1 - 1e-6)


def test_themis_ends_every_job() -> None:
    jobs = [job(8, 0, 25, 1.0), job(4, 1, 10), job(2, 1, 10)]
    ends, _ = completions(jobs, ONE_NODE, Themis())
    assert all(end >= each.submitted + each.iterations for end, each in zip(ends, jobs, strict=True))
    assert max(ends) <= 40


def test_overheads_are_those_of_the_description() -> None:
    assert [start_overhead("a2c", gpus) for gpus in (1, 2, 4, 8, 32)] == [38, 39, 39, 46, 46]
    assert [start_overhead("vgg16", gpus) for gpus in (1, 4, 8, 16, 32)] == [7, 8, 9, 9, 10]
    assert start_overhead("unheard-of", 1) == start_overhead("bert", 8) == 10


HEAD = "num_gpu,submit_time,iterations,model_name,iteration_time"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["num_gpu,submit_time", "1,0"], "iterations is missing"),
        ([HEAD, "1,0,5,bert,100", "1,-3,5,bert,100"], "Line 3 of the trace"),
        ([HEAD, "99,0,5,bert,100"], "GPUs 1 to 8"),
        ([HEAD, "1,0,many,bert,100"], "no number"),
        ([HEAD, "1,nan,5,bert,100"], "out of range"),
        ([HEAD, "1"], "a number is missing"),
    ],
)
def test_a_broken_line_is_named(lines: list[str], words: str) -> None:
    with pytest.raises(TraceProblem, match=words):
        read_muri(lines, ONE_NODE)


def test_a_job_larger_than_the_cluster_ends_the_run() -> None:
    with pytest.raises(ValueError, match="fits nowhere"):
        completions([job(9, 0, 1)], ONE_NODE, ShortestFirst(by_service=False))
