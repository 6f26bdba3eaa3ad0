"""The fractions of Gavel's programs are their optimum: against hand-computed cases, closed forms and another solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.scheduler.policy.gavel import linear_program
from corral.scheduler.policy.gavel.programs import (
    cheapest,
    fairest,
    finish_time_fairness,
    max_min,
    shortest_makespan,
)
from corral.sim.compat import interior_point
from tests.examples import examples

ONE_OF_EACH = [1, 1]


def test_max_min_divides_both_models_where_one_job_gains_more_from_the_fast_one() -> None:
    # Normalised by an equal share (2 and 1.5): 0.5 + a = 4/3 - 2/3 a, where a is the first job's part of the fast one.
    x = max_min([[3, 1], [2, 1]], [1, 1], [1, 1], ONE_OF_EACH)
    assert x == pytest.approx(np.full((2, 2), 0.5), abs=1e-5)


def test_max_min_gives_the_fast_model_to_the_job_that_gains_by_it() -> None:
    # The second job works as fast on either model, so it loses nothing on the slow one.
    x = max_min([[2, 1], [1, 1]], [1, 1], [1, 1], ONE_OF_EACH)
    assert x == pytest.approx(np.array([[1, 0], [0, 1]]), abs=1e-5)


def test_a_weight_of_two_is_worth_twice_the_time() -> None:
    x = max_min([[1], [1]], [1, 1], [2, 1], [1])
    assert x[:, 0] == pytest.approx([2 / 3, 1 / 3], abs=1e-5)


@given(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=12), st.integers(4, 16))
def test_on_equal_devices_max_min_is_an_equal_share_of_device_time(devices: list[int], capacity: int) -> None:
    x = max_min([[1]] * len(devices), devices, [1] * len(devices), [capacity])[:, 0]
    assert float(np.dot(x, devices)) <= capacity + 1e-6
    least = min(float(part * count) for part, count in zip(x, devices, strict=True))
    assert least == pytest.approx(min(min(devices), capacity / len(devices)), abs=1e-4)


def test_the_last_of_two_equal_jobs_ends_soonest_when_they_take_turns() -> None:
    x = shortest_makespan([[1, 0.5], [1, 0.5]], [1, 1], [10, 10], ONE_OF_EACH)
    assert x == pytest.approx(np.full((2, 2), 0.5), abs=1e-5)


def test_a_job_with_twice_the_work_gets_twice_the_device() -> None:
    assert shortest_makespan([[1], [1]], [1, 1], [20, 10], [1])[:, 0] == pytest.approx([2 / 3, 1 / 3], abs=1e-5)


def test_finish_times_are_equally_fair_for_an_old_and_a_new_job() -> None:
    # (10 + 10/x) / 20 = (10 / (1 - x)) / 20, so x = 0.618: the golden ratio.
    x = finish_time_fairness([[1], [1]], [1, 1], [10, 0], [0, 0], [10, 10], [1])
    assert x[:, 0] == pytest.approx([0.618, 0.382], abs=2e-3)


def test_the_cheapest_fractions_use_the_model_with_most_work_for_the_money() -> None:
    assert cheapest([[1, 0.5]], [1], [3, 1], ONE_OF_EACH) == pytest.approx(np.array([[0, 1]]), abs=1e-5)
    assert cheapest([[1, 0.2]], [1], [3, 1], ONE_OF_EACH) == pytest.approx(np.array([[1, 0]]), abs=1e-5)


def test_equally_cheap_work_is_done_as_much_as_possible() -> None:
    x = cheapest([[1, 0.5], [1, 0.5]], [1, 1], [2, 1], ONE_OF_EACH)
    assert float((x * [[1, 0.5], [1, 0.5]]).sum()) == pytest.approx(1.5, abs=1e-5)


def test_a_job_gets_no_time_where_it_cannot_run() -> None:
    x = max_min([[0, 1], [1, 0.5]], [1, 1], [1, 1], ONE_OF_EACH)
    assert x == pytest.approx(np.array([[0, 1], [1, 0]]), abs=1e-5)


SPEED = st.floats(0.1, 8.0).map(lambda speed: round(speed, 2))


@settings(max_examples=examples(40))
@given(st.data(), st.integers(1, 8))
def test_the_optimum_is_that_of_an_interior_point_solver(data: st.DataObject, jobs: int) -> None:
    speeds = [data.draw(st.lists(SPEED, min_size=3, max_size=3)) for _ in range(jobs)]
    devices = data.draw(st.lists(st.sampled_from([1, 2, 4]), min_size=jobs, max_size=jobs))
    x, found = fairest(speeds, speeds, devices, [4, 8, 5])
    values, counts, capacity = (np.array(each, dtype=float) for each in (speeds, devices, [4, 8, 5]))
    _, expected = interior_point.fairest(values, counts, capacity)
    assert found == pytest.approx(expected, rel=1e-4)
    assert float((values * x).sum(axis=1).min()) == pytest.approx(expected, rel=1e-4)
    assert (x.sum(axis=1) <= 1 + 1e-6).all() and ((counts[:, None] * x).sum(axis=0) <= capacity + 1e-6).all()


@settings(max_examples=examples(40))
@given(data=st.data(), jobs=st.integers(1, 12))
def test_scipys_binding_gives_the_very_answer_of_milp(data: st.DataObject, jobs: int) -> None:
    # A policy's decisions must not depend on which of the two solves its programs.
    models = 3
    costs = np.array(data.draw(st.lists(SPEED, min_size=jobs * models, max_size=jobs * models)))
    table = np.zeros((jobs + models, jobs * models))
    for at in range(jobs * models):
        table[at // models, at] = 1.0
        table[jobs + at % models, at] = float(data.draw(st.sampled_from([1, 2, 4])))
    high = np.append(np.ones(jobs), [4.0, 8.0, 5.0])
    program = (-costs, table, np.full(len(high), -np.inf), high, np.full(len(costs), np.inf))
    binding = linear_program._binding()
    assert binding is not None, "this scipy has another binding of HiGHS: programs take twice as long"
    assert linear_program._by_binding(binding, *program) is not None
    assert linear_program.solve(*program).tobytes() == linear_program._by_milp(*program).tobytes()


def test_a_program_without_a_solution_is_said_to_have_none() -> None:
    one = np.ones(1)
    with pytest.raises(ArithmeticError, match="has no solution"):
        linear_program.solve(one, np.ones((1, 1)), np.array([2.0]), np.array([3.0]), one)
