"""Table B: rounds, batch sizes and the baselines' optima, by hand and against a solver, and the printed figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.sim.compat import shockwave_table
from corral.sim.compat.centre import centre_above, most_throughput
from corral.sim.compat.rounds import RoundJob, RoundRules, Rounds
from corral.sim.compat.shockwave_jobs import Adaptation, Batches, critical, read_alone, read_schedule, read_shockwave
from corral.sim.compat.shockwave_table import GPUS, OneType, shortest_makespan
from corral.sim.trace import TraceProblem
from tests.sim.compat.published import cells_of, lines_of


@pytest.mark.parametrize("row", ["Gandiva-Fair", "Gavel max-min", "max-sum throughput", "OSSP", "Themis FTF", "AlloX"])
def test_table_b_is_within_its_bounds_for(row: str, data_folder: Path) -> None:
    cells = cells_of("B", row)
    ours = shockwave_table.measure(row, list(cells), lines_of(data_folder))
    missed = {
        column: (ours[column], cell.anchor)
        for column, cell in cells.items()
        if cell.bound is not None and not cell.bound.holds(ours[column], cell.anchor)
    }
    assert not missed
    assert sum(cell.bound is not None for cell in cells.values()) >= 2


def equal(jobs: list[RoundJob]) -> list[float]:
    return [1.0 for _ in jobs]


RULES = RoundRules(round_seconds=120.0, reset_gap=1000.0, start_overhead=20.0, empty_needs_both=True)


def test_a_job_ends_within_a_round_and_its_gpu_idles_until_the_round_ends() -> None:
    jobs = [RoundJob(0, 0.0, 1, 150, [1.0]), RoundJob(1, 0.0, 1, 300, [1.0])]
    result = Rounds([2], RULES, OneType(equal)).run(jobs)
    assert result.ends == {0: 150.0, 1: 300.0}
    assert sum(result.busy[0]) == 450.0
    assert result.end == 300.0


def test_a_job_that_starts_again_loses_the_overhead_but_its_slice_ends_as_before() -> None:
    # One GPU; who has less time received goes first. Job 0 has 120 steps after the first round. Job 1 starts with 100,
    # goes on with 120, and has 20 left. Job 0 starts again with 100 and ends 20 s later, and then job 1 does.
    jobs = [RoundJob(0, 0.0, 1, 240, [1.0]), RoundJob(1, 0.0, 1, 240, [1.0])]
    result = Rounds([1], RULES, OneType(equal)).run(jobs)
    assert result.ends[0] == 500.0
    assert result.ends[1] == 520.0


def test_an_arrival_between_resets_holds_gpus_without_running() -> None:
    # The first reset is at 0 and the second, forced, in the round after the first arrival; the third waits 1000 s.
    jobs = [RoundJob(0, 0.0, 1, 3000, [1.0]), RoundJob(1, 10.0, 1, 100, [1.0]), RoundJob(2, 250.0, 1, 100, [1.0])]
    result = Rounds([3], RULES, OneType(equal)).run(jobs)
    assert result.ends[1] == 220.0
    assert result.ends[2] == 1300.0  # the reset is at 1,200, the first round end 1,000 s after 120


@pytest.mark.parametrize("both", [True, False])
def test_a_job_without_steps_left_leaves_after_five_empty_rounds(both: bool) -> None:
    rules = RoundRules(round_seconds=120.0, reset_gap=1000.0, empty_needs_both=both)
    jobs = [RoundJob(0, 0.0, 1, 0, [1.0]), RoundJob(1, 0.0, 1, 1200, [1.0])]
    result = Rounds([2], rules, OneType(equal)).run(jobs)
    assert result.failed == {0}
    assert result.ends[0] == 480.0


def test_a_share_of_steps_below_one_on_a_gpu_is_an_empty_round_of_gavel() -> None:
    jobs = [RoundJob(0, 0.0, 4, 3, [1.0]), RoundJob(1, 0.0, 1, 1200, [1.0])]
    result = Rounds([5], RoundRules(round_seconds=120.0, reset_gap=1000.0), OneType(equal)).run(jobs)
    assert result.failed == {0}


def adapted(model: str, size: int, mode: str, total: int, done: int) -> RoundJob:
    job = RoundJob(0, 0.0, 1, total, [1.0], Batches(model, size, size, mode))
    job.done = done
    return job


SPEEDS = {("ResNet-18", size, 1): float(size) for size in (32, 64, 128, 256)} | {
    ("Transformer", size, 1): float(size) for size in (64, 128)
}


def test_accordion_takes_the_largest_batch_outside_of_critical_epochs() -> None:
    steps = 1563  # 50,000 samples at 32
    job = adapted("ResNet-18", 32, "accordion", 100 * steps, 9 * steps)
    adaptation = Adaptation(SPEEDS, {})
    adaptation.decide([job])
    adaptation.apply(job)
    assert job.payload == Batches("ResNet-18", 32, 32, "accordion")
    job.done = 9 * steps + 1  # a part of the tenth epoch counts as whole
    adaptation.decide([job])
    adaptation.apply(job)
    assert job.payload == Batches("ResNet-18", 32, 256, "accordion")
    assert (job.total, job.done, job.throughput) == (19_538, 10 * 196, [256.0])


def test_gns_doubles_one_epoch_before_its_schedule_says_so() -> None:
    adaptation = Adaptation(SPEEDS, {("ResNet-18", 32, 1): ((0, 32), (21, 64), (31, 128))})
    job = adapted("ResNet-18", 32, "gns", 100 * 1563, 19 * 1563)
    adaptation.decide([job])
    assert job.payload == Batches("ResNet-18", 32, 32, "gns")
    job.done = 20 * 1563
    adaptation.decide([job])
    assert job.payload == Batches("ResNet-18", 32, 32, "gns", pending=64)


def test_rounding_of_a_part_epoch_can_leave_less_than_no_steps() -> None:
    job = adapted("ResNet-18", 32, "accordion", 19 * 1563 + 5, 19 * 1563 + 1)
    adaptation = Adaptation(SPEEDS, {})
    adaptation.decide([job])
    adaptation.apply(job)
    assert job.remaining <= 0


def test_transformers_and_unknown_sizes_do_not_change() -> None:
    adaptation = Adaptation({}, {("ResNet-18", 32, 1): ((0, 64),)})
    jobs = [adapted("Transformer", 64, "accordion", 9000, 8000), adapted("ResNet-18", 32, "gns", 9000, 8000)]
    adaptation.decide(jobs)
    assert [job.payload.pending for job in jobs] == [None, None]  # type: ignore[attr-defined]


def test_critical_epochs_are_those_of_the_description() -> None:
    assert [critical("ResNet-50", 64, epoch) for epoch in (9, 10, 30, 39, 40)] == [True, False, True, True, False]
    assert [critical("Recommendation", size, 35) for size in (1024, 2048, 4096)] == [False, True, False]
    assert [critical("ResNet-18", size, 15) for size in (32, 256)] == [False, True]
    assert critical("ResNet-18", 32, 155)
    assert critical("LM", 5, 9)
    assert not critical("LM", 5, 10)


jobs_of = st.lists(st.tuples(st.floats(0.01, 1.0), st.sampled_from([1.0, 2.0, 4.0])), min_size=1, max_size=12)


@settings(max_examples=25)
@given(jobs_of, st.integers(1, 32))
def test_the_centre_is_feasible_and_no_slack_can_grow_alone(jobs: list[tuple[float, float]], capacity: int) -> None:
    gpus = np.array([each[1] for each in jobs])
    least = np.array([each[0] for each in jobs])
    least = least * min(1.0, 0.9 * capacity / float(gpus @ least))
    found = centre_above(least, gpus, float(capacity))
    assert (found >= least - 1e-9).all()
    assert (found <= 1).all()
    slack = capacity - float(gpus @ found)
    assert slack > 0
    free = least < 1 - 1e-6
    slope = 1 / (found - least)[free] + 1 / found[free] - 1 / (1 - found)[free] - gpus[free] / slack
    assert np.abs(slope * np.minimum(found - least, 1 - found)[free]).max(initial=0) < 1e-3


@given(jobs_of, st.integers(1, 32))
def test_max_sum_reaches_the_optimum_of_the_linear_program(jobs: list[tuple[float, float]], capacity: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    speed, gpus = np.array([each[0] for each in jobs]), np.array([each[1] for each in jobs])
    found = most_throughput(speed, gpus, float(capacity))
    best = optimize.linprog(-speed, A_ub=[gpus], b_ub=[capacity], bounds=(0, 1))
    assert float(gpus @ found) <= capacity + 1e-9
    assert float(speed @ found) == pytest.approx(-best.fun, abs=1e-5)


def test_max_sum_splits_evenly_between_equal_jobs() -> None:
    assert most_throughput(np.ones(4), np.ones(4), 2.0) == pytest.approx([0.5] * 4, abs=1e-6)


def test_the_shortest_makespan_is_within_five_percent_of_the_bound() -> None:
    jobs = [RoundJob(at, 0.0, 1, 1000, [1.0]) for at in range(2 * GPUS)]
    least = 1000 / min(shortest_makespan(jobs))
    assert 2000 <= least <= 2000 * 1.06


def line(kind: str, steps: str) -> str:
    return "\t".join([kind, "", "", "", "1", steps, "1", "gns", "1", "-1", "5", "0"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb", "Line 1 of the trace: it has 2 fields"),
        (line("LM (batch size 7)", "10"), "no throughput is known"),
        (line("Transformer (batch size 64)", "x"), "no number"),
        (line("Transformer (batch size 64)", "0"), "out of range"),
    ],
)
def test_a_broken_line_is_named(text: str, words: str) -> None:
    with pytest.raises(TraceProblem, match=words):
        read_shockwave([text], SPEEDS)


def test_broken_schedules_and_profiles_are_named() -> None:
    with pytest.raises(TraceProblem, match="Line 2"):
        read_schedule(["model,initial_batch_size", "LM,5"])
    with pytest.raises(TraceProblem, match="Line 2"):
        read_alone(["job_id,exclusive_s", "1,"])
