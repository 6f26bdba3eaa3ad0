"""The simulator plays traces through the core of control: ends, interruptions, costs, and equal hashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.scheduler import Policy, find_policy, find_preempt
from corral.sim.machines import Site, described_site, plain_site
from corral.sim.progress import Costs
from corral.sim.results import Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob, problem_of

SHORTEST = replace(
    find_policy("srtf"), name="srtf+order", preempt=find_preempt("order"), consolidation=False, review_seconds=600.0
)


def site_of(machines: str) -> Site:
    return plain_site(machines) or described_site(machines)


def play(*jobs: TraceJob, machines: str = "1x4", policy: Policy | None = None, knobs: Knobs | None = None) -> Result:
    return Simulation(jobs, site_of(machines), policy or find_policy("fifo"), knobs).run()


def test_jobs_run_in_turn_on_the_devices_that_there_are() -> None:
    result = play(TraceJob("a", 0.0, 100.0, 4), TraceJob("b", 10.0, 50.0, 2), TraceJob("c", 20.0, 60.0, 2))
    assert [(job.name, job.started, job.ended) for job in result.jobs] == [
        ("a", 0.0, 100.0), ("b", 100.0, 150.0), ("c", 100.0, 160.0),
    ]  # fmt: skip
    assert result.makespan == 160.0
    assert result.utilisation == (400 + 100 + 120) / 640
    assert result.figures()["mean_jct"] == (100 + 140 + 140) / 3


def test_an_interrupted_job_goes_on_from_its_checkpoint_after_the_cost_of_a_restart() -> None:
    knobs = Knobs(Costs(restart=5.0, checkpoint=60.0))
    jobs = (TraceJob("long", 0.0, 1000.0, 4), TraceJob("short", 100.0, 50.0, 4))
    long, short = play(*jobs, policy=SHORTEST, knobs=knobs).jobs
    assert (short.started, short.ended) == (100.0, 150.0)
    assert (long.interruptions, long.lost) == (1, 40.0)
    assert long.ended == 150.0 + 5.0 + (1000.0 - 60.0)
    assert long.finished


def test_a_gang_that_is_spread_wider_than_needed_is_slower() -> None:
    filling = [TraceJob(f"half-{number}", 0.0, 1000.0, 2) for number in range(2)]
    ending = [TraceJob(f"end-{number}", 0.0, 10.0, 2) for number in range(2)]
    jobs = (*(job for pair in zip(filling, ending, strict=True) for job in pair), TraceJob("gang", 5.0, 100.0, 4))
    costs = Knobs(Costs(scatter=0.5))
    gang = next(job for job in play(*jobs, machines="2x4", knobs=costs).jobs if job.name == "gang")
    close = next(job for job in play(jobs[-1], machines="2x4", knobs=costs).jobs if job.name == "gang")
    assert close.ended - close.started == 100.0
    assert gang.ended - gang.started == pytest.approx(100.0), "the job that needs one node gets one"
    wide = TraceJob("wide", 0.0, 100.0, 6)
    (across,) = play(wide, machines="2x4x1", knobs=costs).jobs
    assert across.ended - across.started == pytest.approx(150.0), "two racks, as few nodes as can be"


def test_a_straggler_takes_twice_its_time_and_is_not_ended_before() -> None:
    (slow,) = play(TraceJob("slow", 0.0, 100.0, 4), knobs=Knobs(stragglers=1.0)).jobs
    assert (slow.ended, slow.finished) == (200.0, True)


def test_jobs_that_declare_too_little_are_ended_as_on_a_server() -> None:
    jobs = [TraceJob(f"job-{number}", 100.0 * number, 1000.0, 1) for number in range(10)]
    result = play(*jobs, machines="2x8", knobs=Knobs(underestimate=0.5))
    cut = [job for job in result.jobs if not job.finished]
    assert len(cut) >= 5 and all(500 <= job.ended - job.started < 1000 for job in cut)
    assert all(job.ended - job.started == 1000 for job in result.jobs if job.finished)


def test_a_failed_node_interrupts_jobs_that_all_come_to_their_ends() -> None:
    jobs = [TraceJob(f"job-{number}", number * 3600.0, 20_000.0, 2) for number in range(20)]
    result = play(*jobs, machines="3x4", knobs=Knobs(node_failures_per_day=6.0, seed=3))
    assert len(result.jobs) == 20 and all(job.finished for job in result.jobs)
    assert sum(job.interruptions for job in result.jobs) > 0


@pytest.mark.parametrize(
    ("machines", "said"),
    [("0x8", "from 1 to"), ("99999x99", "from 1 to"), ("kind: Queue\nname: a", "needs one Cluster document")],
)
def test_machines_that_cannot_be_are_refused(machines: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        site_of(machines)


def test_a_job_larger_than_the_machines_and_an_unknown_queue_are_refused() -> None:
    with pytest.raises(InvalidInput, match="big needs 9 devices, and the machines have 8"):
        play(TraceJob("big", 0.0, 1.0, 9), machines="2x4")
    with pytest.raises(InvalidInput, match="the queue nowhere, which no document describes"):
        play(TraceJob("lost", 0.0, 1.0, 1, queue="nowhere"))


JOBS = st.lists(
    st.builds(
        TraceJob,
        name=st.just("job"),
        submitted=st.integers(0, 500).map(float),
        seconds=st.integers(0, 400).map(float),
        devices=st.integers(1, 8),
        user=st.sampled_from(["ada", "bob"]),
        queue=st.just("default"),
        priority=st.just(0),
        part=st.just(1000),
        cpu_millis=st.just(0),
        memory_bytes=st.just(0),
        regimes=st.just(()),
        speeds=st.just(()),
        profile=st.none(),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(JOBS, st.sampled_from(["fair", "fifo", "srtf", "las"]), st.booleans())
def test_every_job_ends_once_and_no_more_devices_are_held_than_there_are(
    drawn: list[TraceJob], name: str, preempting: bool
) -> None:
    jobs = [job._replace(name=f"job-{number}") for number, job in enumerate(drawn)]
    jobs.sort(key=lambda job: job.submitted)
    policy = replace(find_policy(name), review_seconds=30.0)
    if preempting:
        policy = replace(policy, preempt=find_preempt("order"), preemption=True)
    result = play(*jobs, machines="2x4", policy=policy)
    assert sorted(job.name for job in result.jobs) == sorted(job.name for job in jobs)
    assert all(job.finished and job.ended - job.started >= job.seconds - 1e-3 for job in result.jobs)
    changes = sorted(
        change for begin, end, devices in result.held for change in ((begin, 1, devices), (end, 0, -devices))
    )
    held: int | float = 0
    for _, _, devices in changes:
        held += devices
        assert held <= 8


def test_the_same_simulation_has_the_same_digest_whatever_the_hash_seed(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"{number * 7},{100 + number * 13 % 90},{1 + number % 4},user-{number % 5}" for number in range(40)]
    trace.write_text("\n".join(["submitted,seconds,devices,user", *rows]))
    words = ["sim", "run", "--trace", str(trace), "--cluster", "2x4", "--policy", "fair", "--stragglers", "0.2"]
    digests = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "corral.cli.main", *words, "--seed", "7", "-o", "json"]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--restart-cost", "nan"], "is not a number"),
        (["--node-failures", "-1"], "not in the range"),
        (["--cluster", "nowhere.yaml"], "nowhere.yaml is neither NODESxDEVICES"),
        (["--cluster", "BINARY"], "BINARY"),
        (["--policy", "best"], "There is no policy 'best'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, more: list[str], said: str) -> None:
    (tmp_path / "trace.csv").write_text("submitted,seconds,devices\n0,10,1\n")
    (tmp_path / "BINARY").write_bytes(bytes(range(128, 256)))
    words = ["sim", "run", "--trace", "trace.csv", "--cluster", "1x4", *more]
    command = [sys.executable, "-m", "corral.cli.main", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (2, 3), done.stderr
    assert said in done.stderr and "CORRAL_DEBUG" not in done.stderr


def test_lines_that_were_left_out_are_counted(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submitted,seconds,devices\n0,10,1\nx\n0,-1,1\n")
    words = ["sim", "run", "--trace", str(trace), "--cluster", "1x4", "--skip-broken"]
    done = subprocess.run([sys.executable, "-m", "corral.cli.main", *words], capture_output=True, text=True, check=True)
    assert "Left out 2 broken lines; the first is line 3: a value cannot be read" in done.stderr


def test_policies_are_compared_side_by_side(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("submitted,seconds,devices\n0,1000,4\n1,10,4\n2,20,4\n")
    words = ["sim", "compare", "--trace", str(trace), "--cluster", "1x4", "--policy", "fifo", "--policy", "srtf+order"]
    command = [sys.executable, "-m", "corral.cli.main", *words, "--processes", "2", "-o", "json"]
    first, second = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (first["policy"], second["policy"]) == ("fifo", "srtf+order")
    assert second["mean_jct"] < first["mean_jct"]


def test_an_interrupted_comparison_ends_its_processes_and_prints_what_is_finished(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"{number},{50_000 + number * 37 % 900},{1 + number % 8}" for number in range(200)]
    trace.write_text("\n".join(["submitted,seconds,devices", *rows]))
    words = ["sim", "compare", "--trace", str(trace), "--cluster", "8x8", "--policy", "fifo", "--policy", "las+order"]
    command = [sys.executable, "-m", "corral.cli.main", *words, "--results", str(tmp_path / "runs"), "-o", "json"]
    running = subprocess.Popen([*command, "--processes", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while running.poll() is None and not (tmp_path / "runs" / "fifo.json").exists():
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert [row["policy"] for row in json.loads(printed)] == ["fifo"]


def test_parts_of_one_device_run_beside_each_other() -> None:
    result = play(
        TraceJob("a", 0.0, 100.0, 1, part=500), TraceJob("b", 0.0, 100.0, 1, part=460), TraceJob("c", 0.0, 100.0, 4),
        TraceJob("processors", 0.0, 300.0, 0, cpu_millis=2000),
    )  # fmt: skip
    ends = {job.name: job.ended for job in result.jobs}
    assert ends == {"a": 100.0, "b": 100.0, "c": 200.0, "processors": 300.0}
    assert sorted(devices for _, _, devices in result.held) == [0, 0.46, 0.5, 4]


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (TraceJob("a", 0.0, 1.0, 2, part=500), "a part of 2 devices cannot be had, only of one"),
        (TraceJob("a", 0.0, 1.0, 1, part=455), "455 thousandths of a device are no whole percents from 1 to 100"),
        (TraceJob("a", 0.0, 1.0, 0), "0 devices are not from 1 to 65536"),
        (TraceJob("a", 0.0, 1.0, 1, cpu_millis=-1), "its processors or its memory are out of range"),
    ],
)
def test_a_part_that_cannot_be_had_is_refused(job: TraceJob, problem: str) -> None:
    assert problem_of(job) == problem


def test_gangs_that_the_order_puts_behind_the_head_use_its_place_until_it_takes_it_back() -> None:
    jobs = (
        TraceJob("first", 0.0, 1000.0, 2),  # SRSF: 2,000 device-seconds
        TraceJob("wide", 1.0, 600.0, 4),  # 2,400: it waits for the first one
        TraceJob("behind", 2.0, 5000.0, 2),  # 10,000: it runs until the wide one can start
    )
    policy = replace(SHORTEST, order=find_policy("srsf").order)
    ends = {job.name: (job.started, job.ended, job.interruptions) for job in play(*jobs, policy=policy).jobs}
    assert ends["first"] == (0.0, 1000.0, 0)
    assert ends["wide"] == (1000.0, 1600.0, 0)
    started, ended, interruptions = ends["behind"]
    assert (started, interruptions) == (2.0, 1)
    assert ended == 5602.0
