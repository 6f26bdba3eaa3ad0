"""Jobs of a trace have a speed on each model of device, and simulated runs take the time of the model they are on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput
from corral.scheduler import find_policy
from corral.sim.machines import plain_site
from corral.sim.results import Result
from corral.sim.simulation import Simulation
from corral.sim.trace import TraceJob, TraceProblem, read_trace
from corral.sim.traces.formats import find_reader

HEADER = "submitted,seconds,devices,name,speed:v100,speed:k80"
ONE_OF_EACH = "1x1:v100,1x1:k80"


def play(*jobs: TraceJob, machines: str = ONE_OF_EACH, policy: str = "gavel") -> Result:
    site = plain_site(machines)
    assert site is not None
    return Simulation(jobs, site, find_policy(policy)).run()


def job(name: str, seconds: float, at: float = 0.0, devices: int = 1, **speeds: float) -> TraceJob:
    return TraceJob(name, at, seconds, devices, speeds=tuple(sorted(speeds.items())))


def ends(result: Result) -> dict[str, float]:
    assert all(each.finished for each in result.jobs)
    return {each.name: each.ended for each in result.jobs}


def test_columns_of_a_plain_trace_say_how_fast_a_job_is() -> None:
    trace = read_trace(find_reader("plain"), [HEADER, "0,100,1,a,1,0.25", "5,100,1,b,,0"])
    assert [each.speeds for each in trace.jobs] == [(("k80", 0.25), ("v100", 1.0)), (("k80", 0.0),)]


@pytest.mark.parametrize(
    ("row", "problem"), [("0,9,1,a,x,0", "a value cannot be read"), ("0,9,1,a,-1,1", "a speed is not")]
)
def test_a_speed_that_cannot_be_is_named_by_its_line(row: str, problem: str) -> None:
    with pytest.raises(TraceProblem, match=f"Line 2 of the trace: {problem}"):
        read_trace(find_reader("plain"), [HEADER, row])


def test_a_model_without_end_in_its_name_is_refused() -> None:
    header = f"submitted,seconds,devices,speed:{'x' * 64}"
    with pytest.raises(
        TraceProblem, match="Line 2 of the trace: speeds are for at most 100 models with names of 1 to 63"
    ):
        read_trace(find_reader("plain"), [header, "0,9,1,2"])


def test_gavels_profiles_give_the_speed_on_every_type_of_gpu(tmp_path: Path) -> None:
    speeds = {"v100": 4.0, "k80": 0.0, "p100": 1.0, "v100_unconsolidated": 2.0}
    table = {kind: {"('A', 1)": {"null": speed}} for kind, speed in speeds.items()}
    file = tmp_path / "throughputs.json"
    file.write_text(json.dumps(table))
    line = "\t".join(["A", "main.py", "folder", "--steps", "1", "100", "1", "1", "-1.0", "0"])
    (found,) = read_trace(find_reader("gavel", file), [line]).jobs
    assert (found.seconds, found.speeds) == (25.0, (("k80", 0.0), ("p100", 0.25), ("v100", 1.0)))


@pytest.mark.parametrize(("machines", "seconds"), [("1x2:v100", 100.0), ("1x2:k80", 400.0), ("1x2", 100.0)])
def test_a_run_takes_the_time_of_its_model(machines: str, seconds: float) -> None:
    assert ends(play(job("a", 100.0, devices=2, v100=1, k80=0.25), machines=machines, policy="fifo"))["a"] == seconds


def test_a_gang_on_two_models_is_as_slow_as_the_slower_one() -> None:
    result = play(job("a", 100.0, devices=2, v100=1, k80=0.25), policy="fifo")
    assert ends(result)["a"] == pytest.approx(100 / 0.25 * 1.1), "and it is on more racks than one"


def test_the_job_that_gains_most_gets_the_fast_model() -> None:
    found = ends(play(job("same", 100.0, v100=1, k80=1), job("gains", 100.0, at=0.0, v100=1, k80=0.1)))
    assert found == {"same": 100.0, "gains": 100.0}


def test_a_job_never_runs_where_it_cannot() -> None:
    found = ends(play(job("a", 100.0, v100=1, k80=0), job("b", 100.0, v100=1, k80=0), policy="fifo"))
    assert sorted(found.values()) == [100.0, 200.0]


def test_a_job_that_fits_no_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a needs 2 devices, and can run on 1"):
        play(job("a", 100.0, devices=2, v100=1, k80=0))


@pytest.mark.parametrize("policy", ["gavel", "gavel-makespan", "gavel-finish-time", "gavel-cost", "allox"])
def test_every_policy_of_models_plays_a_trace_to_its_end_and_again_alike(policy: str) -> None:
    jobs = [
        job(f"j{at}", 300.0 + 100 * at, at=100.0 * at, devices=1 + at % 2, v100=1, k80=0.2 + at % 3 * 0.3)
        for at in range(6)
    ]
    first, second = (play(*jobs, machines="2x1:v100,2x1:k80", policy=policy) for _ in range(2))
    assert len(ends(first)) == 6 and first.digest == second.digest


@pytest.mark.parametrize("machines", ["1x1:v100,", "1x1:", "1x1:v100,0x1:k80", "x1:k80"])
def test_machines_that_cannot_be_are_refused(machines: str) -> None:
    try:
        assert plain_site(machines) is None
    except InvalidInput as error:
        assert error.code == "no-machines"
