"""Table D: Pollux' simulator with its baselines, by hand, and a printed figure; the other workloads are in bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.sim.compat import pollux_table
from corral.sim.compat.pollux import (
    NODES,
    Optimus,
    PolluxJob,
    Scheduler,
    Tiresias,
    completions,
    predicted_step,
    read_workload,
)
from corral.sim.trace import TraceProblem
from corral.sim.traces.pollux import split
from corral.sim.traces.pollux_profiles import Application, Epochs, Kind, read_numbers
from tests.sim.compat.published import cells_of, lines_of

KIND = Kind(smallest=8, largest=64, epochs=2)


def application(*, scales: bool = True) -> Application:
    """Steps of 1 s on one GPU whatever the batch; with `scales`, twice the GPUs take half of it. No gradient noise."""
    epochs = {size: Epochs([100.0, 200.0], [100.0, 200.0], [1.0, 1.0], [0.0, 0.0]) for size in KIND.sizes()}
    rows = []
    for placement, replicas in ((1, 1), (2, 2), (3, 3), (4, 4), (11, 2)):
        for local in (1.0, 64.0):
            rows.append((float(placement), local, 1.0 / replicas if scales else 1.0, 0.0))
    return Application(KIND, epochs, rows, [])


def job(number: int, submitted: int, replicas: int, *, scales: bool = False, size: int = 8) -> PolluxJob:
    return PolluxJob(number, application(scales=scales), submitted, replicas, size)


@pytest.mark.parametrize("row", ["Tiresias + tuned", "Optimus + oracle + tuned"])
def test_table_d_is_within_its_percent_for_workload_6(row: str, data_folder: Path) -> None:
    pytest.importorskip("scipy")
    cell = cells_of("D", row)["6"]
    ours = pollux_table.measure(row, ["6"], lines_of(data_folder))["6"]
    assert cell.bound
    assert cell.bound.holds(ours, cell.anchor), ours


@pytest.mark.parametrize("scheduler", [Tiresias(), Optimus()])
def test_a_job_starts_at_the_next_step_and_restarts_for_thirty_seconds(scheduler: Scheduler) -> None:
    # Submitted at 61, placed at 120, no progress until 150, 200 steps of 1 s.
    assert completions([job(0, 61, 1)], scheduler) == [150 + 200 - 61]


def test_tiresias_skips_what_does_not_fit_and_lets_later_jobs_run() -> None:
    jobs = {0: job(0, 0, 4), 1: job(1, 0, 64), 2: job(2, 0, 2)}
    found = Tiresias().allocate(jobs, {}, 60)
    assert found == {0: [0] * 4, 2: [1, 1]}


def test_tiresias_demotes_after_sixteen_gpu_hours() -> None:
    policy = Tiresias()
    jobs = {0: job(0, 0, 64)}
    allocation = policy.allocate(jobs, {}, 60)
    jobs[1] = job(1, 60, 1)
    allocation = policy.allocate(jobs, allocation, 120)
    assert set(allocation) == {0}  # 3,840 GPU-seconds
    assert set(policy.allocate(jobs, allocation, 960)) == {1}  # 57,600


def test_tiresias_keeps_the_nodes_of_a_job_that_runs() -> None:
    policy = Tiresias()
    jobs = {0: job(0, 0, 3), 1: job(1, 0, 2)}
    allocation = policy.allocate(jobs, {}, 60)
    del jobs[0]
    assert policy.allocate(jobs, {1: allocation[1]}, 120) == {1: allocation[1]}


def test_a_placement_takes_the_emptiest_nodes_first() -> None:
    jobs = {number: job(number, 0, 3) for number in range(NODES)} | {99: job(99, 0, 2)}
    found = Tiresias().allocate(jobs, {}, 60)
    assert found[99] == [0, 1]


def test_optimus_gives_gpus_to_the_job_that_gains_most() -> None:
    jobs = {0: job(0, 0, 1, scales=True, size=16), 1: job(1, 0, 1)}
    jobs[0].most_replicas = jobs[1].most_replicas = 3
    found = Optimus().allocate(jobs, {}, 60)
    # The step of job 1 takes as long on two GPUs, but for the pass that Optimus predicts on one.
    assert len(found[0]) == 3
    assert len(found[1]) == 2


def test_optimus_keeps_nodes_while_the_size_stays() -> None:
    jobs = {0: job(0, 0, 1)}
    jobs[0].most_replicas = 1
    assert Optimus().allocate(jobs, {0: [7]}, 60) == {0: [7]}


def test_a_batch_that_does_not_fit_on_a_gpu_takes_several_passes() -> None:
    profile = application()
    profile.most_local = 8
    assert split(32, 2, profile, accumulate=True) == (8, 1)
    assert split(16, 1, profile, accumulate=True) == (8, 1)
    assert split(8, 1, profile, accumulate=False) == (8, 0)
    assert split(8, 1, profile, accumulate=True) == (4, 1)


def test_optimus_predicts_at_least_two_passes_on_one_gpu() -> None:
    assert predicted_step(job(0, 0, 1), 1) == 2.0
    assert predicted_step(job(0, 0, 1), 2) == 1.0


def test_profiles_are_interpolated_between_batch_sizes() -> None:
    epochs = {8: Epochs([1.0], [10.0], [2.0], [4.0]), 16: Epochs([1.5], [30.0], [4.0], [8.0])}
    rows = [(1.0, 8.0, 1.0, 0.5), (1.0, 16.0, 3.0, 0.7)]
    profile = Application(Kind(8, 16, 1), epochs, rows, [])
    assert profile.iterations(12, 0) == 20.0
    assert profile.gradient(12, 0) == (3.0, 6.0)
    assert profile.progress(1) == 1.0
    assert profile.step_times((1,), 12) == pytest.approx((2.0, 0.6))
    with pytest.raises(InvalidInput, match="was not profiled"):
        profile.step_times((1,), 17)


def test_rotations_of_a_placement_have_one_profile() -> None:
    rows = [(12.0, local, 1.0, 0.5) for local in (8.0, 16.0)]
    epochs = {8: Epochs([1.0], [1.0], [1.0], [1.0])}
    profile = Application(Kind(8, 8, 1), epochs, rows, [])
    assert profile.step_times((2, 0, 1), 8) == profile.step_times((1, 2), 8) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,0,lamp,1,8", "lamp is no known application"),
        ("x,0,app,many,8", "no whole number"),
        ("x,0,app,65,8", "out of range"),
        ("x,0,app,1,4", "out of range"),
        ("x,-1,app,1,8", "out of range"),
    ],
)
def test_a_broken_line_is_named(row: str, words: str) -> None:
    with pytest.raises(TraceProblem, match=f"Line 2.*{words}"):
        read_workload(["name,time,application,num_replicas,batch_size", row], {"app": application()})


def test_a_broken_profile_is_named() -> None:
    with pytest.raises(TraceProblem, match="Line 3"):
        read_numbers(["a,b", "1,2", "1,x"], ("a", "b"))
