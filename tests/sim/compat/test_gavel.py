"""Table C: Gavel's linear programs against a simplex method, its FIFO by hand, and the printed figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.sim.compat import gavel_table
from corral.sim.compat.gavel_jobs import TYPES, read_arrivals, read_trace
from corral.sim.compat.gavel_policies import Fifo, FinishTimeFairness, MaxMin, ShortestMakespan, earliest
from corral.sim.compat.interior_point import fairest
from corral.sim.compat.rounds import RoundJob
from corral.sim.trace import TraceProblem
from tests.sim.compat.published import cells_of, lines_of


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("FIFO", "JCT"),
        ("LAS", "JCT"),
        ("FTF", "JCT"),
        ("Gavel", "JCT"),
        ("makespan, Gavel", "makespan"),
        ("makespan, agnostic", "makespan"),
    ],
)
def test_table_c_is_within_its_percents_for(row: str, column: str, data_folder: Path) -> None:
    cell = cells_of("C", row)[column]
    ours = gavel_table.measure(row, [column], lines_of(data_folder))[column]
    assert cell.bound
    assert cell.bound.holds(ours, cell.anchor), ours


speeds = st.lists(
    st.tuples(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.0, 5), st.sampled_from([1.0, 2.0, 4.0])),
    min_size=1, max_size=10,
)  # fmt: skip
CAPACITY = np.array([2.0, 4.0, 6.0])


def optimum(value: np.ndarray, gpus: np.ndarray) -> float:
    """The optimum by scipy's simplex method."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    jobs, types = value.shape
    cost = np.zeros(jobs * types + 1)
    cost[-1] = -1
    rows, bounds = [], []
    for job in range(jobs):
        least = np.zeros(len(cost))
        least[job * types : job * types + types] = -value[job]
        least[-1] = 1
        whole = np.zeros(len(cost))
        whole[job * types : job * types + types] = 1
        rows += [least, whole]
        bounds += [0.0, 1.0]
    for kind in range(types):
        used = np.zeros(len(cost))
        used[kind : jobs * types : types] = gpus
        rows.append(used)
        bounds.append(CAPACITY[kind])
    found = linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=[(0, None)] * len(cost))
    return float(-found.fun)


@settings(max_examples=40)
@given(speeds)
def test_max_min_reaches_the_optimum_of_the_linear_program(jobs: list[tuple[float, float, float, float]]) -> None:
    value, gpus = np.array([each[:3] for each in jobs]), np.array([each[3] for each in jobs])
    x, least = fairest(value, gpus, CAPACITY)
    assert (x.sum(axis=1) <= 1 + 1e-6).all()
    assert (gpus @ x <= CAPACITY + 1e-5).all()
    assert least == pytest.approx(optimum(value, gpus), rel=1e-4)
    assert float((value * x).sum(axis=1).min()) == pytest.approx(least, rel=1e-4)


def test_among_many_optima_the_centre_treats_equal_jobs_equally() -> None:
    gpus = np.array([1.0] * 8 + [4.0] * 2)
    x, least = fairest(np.ones((10, 3)) * gpus[:, None], gpus, CAPACITY)
    assert least == pytest.approx(1.2, abs=0.21)
    assert x[:8] == pytest.approx(np.tile(x[0], (8, 1)), abs=1e-3)


def test_a_goal_is_reached_with_slack() -> None:
    value, gpus = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 1.0]]), np.array([1.0, 1.0])
    x, _ = fairest(value, gpus, CAPACITY, goal=0.5)
    assert ((value * x).sum(axis=1) > 0.5).all()


def test_a_job_without_any_speed_is_refused() -> None:
    with pytest.raises(ValueError, match="no type of GPU"):
        fairest(np.zeros((1, 3)), np.ones(1), CAPACITY)


def job(number: int, gpus: int = 1, speed: tuple[float, ...] = (3.0, 2.0, 1.0), total: float = 3600) -> RoundJob:
    return RoundJob(number, 0.0, gpus, total, speed)


def test_gavel_gives_fast_gpus_to_those_who_gain_most() -> None:
    jobs = [job(0, speed=(10.0, 1.0)), job(1, speed=(1.0, 10.0))]
    found = MaxMin([1, 1], aware=True).fractions(jobs, 0.0)
    assert found[0][0] > 0.9
    assert found[1][1] > 0.9


def test_las_is_blind_to_speeds() -> None:
    found = MaxMin([1, 1, 1], aware=False).fractions([job(0), job(1, speed=(9.0, 1.0, 1.0)), job(2), job(3)], 0.0)
    assert [sum(found[number]) for number in range(4)] == pytest.approx([0.75] * 4, abs=1e-3)


def test_finish_time_fairness_equalises_ratios_of_equal_jobs() -> None:
    policy = FinishTimeFairness([1, 1, 1], aware=True)
    found = policy.fractions([job(number) for number in range(6)], 0.0)
    done = [sum(x * speed for x, speed in zip(found[number], (3.0, 2.0, 1.0), strict=True)) for number in range(6)]
    assert done == pytest.approx([1.0] * 6, rel=1e-3)


def test_the_makespan_is_the_first_that_the_bisection_tries_and_can_be_reached() -> None:
    found = ShortestMakespan([1, 1], aware=True).fractions([job(0, speed=(2.0, 1.0)), job(1, speed=(1.0, 1.0))], 0.0)
    assert 0 < sum(found[1]) <= 1
    assert 5000 < earliest(5000) <= 5000 * 1.06
    assert earliest(2e6) > 2e6


SIZES = {"v100": 1, "p100": 2, "k80": 1}


def chosen(policy: Fifo, jobs: list[RoundJob]) -> dict[int, str]:
    found = policy.fractions(jobs, 0.0)
    return {number: TYPES[list(row).index(1.0)] for number, row in found.items() if 1.0 in row}


def test_fifo_takes_the_last_type_by_name_whatever_is_drawn() -> None:
    policy = Fifo(SIZES, TYPES, seed=0)
    assert chosen(policy, [job(0)]) == {0: "v100"}


def test_fifo_lets_the_head_of_the_queue_inherit_the_type_of_a_job_that_left() -> None:
    policy = Fifo({"v100": 1, "p100": 0, "k80": 0}, TYPES, seed=0)
    assert chosen(policy, [job(0), job(1), job(2)]) == {0: "v100"}
    assert chosen(policy, [job(1), job(2)]) == {1: "v100"}


def test_fifo_may_overbook_a_type_that_was_not_drawn() -> None:
    overbooked = set()
    for seed in range(20):
        found = chosen(Fifo({"v100": 1, "p100": 1, "k80": 1}, TYPES, seed), [job(number) for number in range(3)])
        counts = [list(found.values()).count(kind) for kind in TYPES]
        overbooked.add(max(counts) > 1)
    assert overbooked == {True, False}


def test_fifo_gives_no_type_on_which_a_job_cannot_run() -> None:
    policy = Fifo({"v100": 0, "p100": 0, "k80": 2}, TYPES, seed=0)
    assert chosen(policy, [job(0, speed=(1.0, 1.0, 0.0)), job(1)]) == {1: "k80"}


SPEEDS = {("A", 1): (1.0, 1.0, 1.0)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A\t1", "Line 1 of the trace: it has 2 fields"),
        ("\t".join(["A", "", "", "", "1", "x", "1", "1", "-1", "0"]), "no number"),
        ("\t".join(["A", "", "", "", "1", "5", "1", "1", "-1", "-3"]), "out of range"),
        ("\t".join(["B", "", "", "", "1", "5", "1", "1", "-1", "0"]), "no throughput is known"),
    ],
)
def test_a_broken_line_is_named(text: str, words: str) -> None:
    with pytest.raises(TraceProblem, match=words):
        read_trace([text], SPEEDS)


def test_arrivals_keep_parts_of_steps() -> None:
    head = "job_id,arrival_s,job_type,scale_factor,total_steps"
    assert read_arrivals([head, "7,1.5,A,1,10.25"], SPEEDS)[0].total == 10.25
    with pytest.raises(TraceProblem, match="arrival_s is missing"):
        read_arrivals(["job_id,job_type,scale_factor,total_steps", "7,A,1,1"], SPEEDS)
