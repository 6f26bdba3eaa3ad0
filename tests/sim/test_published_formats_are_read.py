"""Traces of Gavel, Shockwave, Pollux and openb are read: durations, sizes and priorities."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.scheduler import find_policy
from corral.sim.comparison import Question
from corral.sim.compat.pollux import PolluxJob
from corral.sim.files import hash_of_all
from corral.sim.machines import plain_site
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import TraceJob, read_trace
from corral.sim.traces.formats import FORMATS, find_reader, format_of
from corral.sim.traces.pollux import seconds_alone
from corral.sim.traces.pollux_profiles import KINDS, read_application
from tests.sim.compat.published import lines_of

GAVEL = "job_id,arrival_s,job_type,scale_factor,total_steps,duration_s,priority_weight"
POLLUX = "name,time,application,num_replicas,batch_size"
OPENB = "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def physical(kind: str, steps: str, gpus: str, arrival: str) -> str:
    return "\t".join([kind, "python3 main.py", "folder", "--steps", "1", steps, gpus, "1", "-1.0", arrival])


def dynamic(kind: str, steps: str, gpus: str, duration: str, arrival: str) -> str:
    return "\t".join([kind, "main.py", "folder", "--steps", "1", steps, gpus, "gns", "1", "-1.0", duration, arrival])


def throughputs(folder: Path, **speeds: float) -> Path:
    table = {"v100": {f"('{kind}', {gpus})": {"null": speed} for gpus in (1, 2) for kind, speed in speeds.items()}}
    file = folder / "throughputs.json"
    file.write_text(json.dumps(table))
    return file


def problems(name: str, lines: Iterable[str], profiles: Path | None = None) -> list[tuple[int, str]]:
    trace = read_trace(find_reader(name, profiles), lines, skip_broken=True)
    return [(each.line, each.problem) for each in trace.skipped]


def test_jobs_of_gavel_take_their_steps_at_the_throughput_of_a_v100(tmp_path: Path) -> None:
    file = throughputs(tmp_path, A=4.0, B=0.0)
    lines = [physical("A", "100", "2", "60"), physical("A", "8", "1", "0.5"), physical("B", "8", "1", "1")]
    trace = read_trace(find_reader("gavel", file), lines, skip_broken=True)
    assert trace.jobs == (TraceJob("job-1", 0.0, 2.0, 1), TraceJob("job-0", 59.5, 25.0, 2))
    assert trace.skipped[0] == (3, "no throughput is known for B on 1 GPUs")


def test_arrivals_of_gavel_have_durations_of_their_own_that_a_table_replaces(tmp_path: Path) -> None:
    lines = [GAVEL, "7,1.5,A,2,100.5,300.25,1.0", "8,2.5,A,1,8,16,1.0"]
    assert read_trace(find_reader("gavel"), lines).jobs == (
        TraceJob("job-7", 0.0, 300.25, 2),
        TraceJob("job-8", 1.0, 16.0, 1),
    )
    exact = read_trace(find_reader("gavel", throughputs(tmp_path, A=4.0)), lines)
    assert [job.seconds for job in exact.jobs] == [100.5 / 4, 2.0]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("9,0,A,1,5,,1", "the line has no duration; give a table of throughputs (--profiles FILE)"),
        ("9,0,A,1,5,long,1", "a value cannot be read: could not convert string to float: 'long'"),
        ("9,0,A,many,5,10,1", "GPUs, steps or arrival is no number"),
        ("9,-1,A,1,5,10,1", "steps or arrival is out of range"),
        ("9,0,A,0,5,10,1", "0 devices are not from 1 to 65536"),
        ("9", "GPUs, steps or arrival is no number"),
    ],
)
def test_a_broken_line_of_gavel_is_named(line: str, problem: str) -> None:
    assert problems("gavel", [GAVEL, "7,1.5,A,2,100,300,1.0", line]) == [(3, problem)]


def test_jobs_of_shockwave_keep_their_batch_size(tmp_path: Path) -> None:
    lines = [dynamic("LM", "100", "1", "26", "0"), dynamic("LM", "200", "2", "50", "55"), "a\tb"]
    said = read_trace(find_reader("shockwave"), lines, skip_broken=True)
    assert said.jobs == (TraceJob("job-0", 0.0, 26.0, 1), TraceJob("job-1", 55.0, 50.0, 2))
    assert said.skipped[0] == (3, "it has 2 fields instead of 12")
    exact = read_trace(find_reader("shockwave", throughputs(tmp_path, LM=4.0)), lines[:2])
    assert [job.seconds for job in exact.jobs] == [25.0, 50.0]


def test_a_file_that_is_no_table_of_throughputs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "speeds.json"
    for text in ("x", "[1]", '{"v100": {"(\'A\', 1)": {}}}', "[" * 100_000):
        file.write_text(text)
        with pytest.raises(InvalidInput, match="is not a table of throughputs"):
            find_reader("gavel", file)
    with pytest.raises(NotFound):
        find_reader("gavel", tmp_path / "absent.json")
    with pytest.raises(InvalidInput, match="philly are read without profiles"):
        find_reader("philly", file)


def profiles_of_bert(folder: Path) -> Path:
    """Two epochs of 10 and 20 steps on 1 to 4 GPUs; a step takes 2 s, and no gradient is wasted by a larger batch."""
    (folder / "bert").mkdir()
    for size in KINDS["bert"].sizes():
        rows = "progress,iteration,grad_sqr,grad_var\n10,10,0,1\n30,30,0,1\n"
        (folder / "bert" / f"validation-{size}.csv").write_text(rows)
    times = [f"{gpus},{local},2,1" for gpus in (1, 2, 3, 4) for local in (4, 12)]
    (folder / "bert" / "placements.csv").write_text("\n".join(["placement,local_bsz,step_time,sync_time", *times]))
    (folder / "bert" / "scalability.csv").write_text("num_nodes,num_replicas,local_bsz,step_time,sync_time\n")
    return folder


def test_a_job_of_pollux_takes_its_epochs_at_the_speed_of_its_profile(tmp_path: Path) -> None:
    lines = [POLLUX, "bert-0,107,bert,1,12", "bert-1,110,bert,4,48"]
    jobs = read_trace(find_reader("pollux", profiles_of_bert(tmp_path)), lines).jobs
    assert tuple(job._replace(profile=None) for job in jobs) == (
        TraceJob("bert-0", 0.0, 30 * 2.0, 1),
        TraceJob("bert-1", 3.0, 30 * 2.0 / 4, 4),
    )


def test_a_job_of_pollux_has_its_speed_and_gradient_noise_by_placement_and_batch_size(tmp_path: Path) -> None:
    """Larger batches waste no gradient, and passes before the last one take 1 s of 2: a job that adapts takes the largest.

    A fifth replica on a second node was not profiled, and is idle.
    """
    lines = [POLLUX, "bert-0,107,bert,2,24"]
    (job,) = read_trace(find_reader("pollux", profiles_of_bert(tmp_path)), lines).jobs
    assert job.profile is not None and job.profile.most == 64
    usual, wide, wider = (job.profile.legs(each, adapts=True) for each in ([2], [4], [4, 1]))
    assert sum(leg.work for leg in usual) == pytest.approx(job.seconds)
    assert [leg.batch_size for leg in wide] == [384.0, 384.0] and wider == wide
    kept = job.profile.legs([4], adapts=False)
    assert [(leg.batch_size, leg.throughput) for leg in kept] == [(24.0, 12.0)] * 2
    assert sum(leg.seconds for leg in kept) == pytest.approx(job.seconds)
    assert {leg.gradient_noise for leg in kept} == {0.0}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,0,lamp,1,12", "lamp is no known application"),
        ("x,0,bert,many,12", "a number is missing or no whole number"),
        ("x,0,bert,65,12", "time, replicas or batch size is out of range"),
        ("x,0,bert,1,8", "time, replicas or batch size is out of range"),
        ("x,0,bert,4,12", "Local batch size 3 was not profiled on (4,)"),
    ],
)
def test_a_broken_line_of_pollux_is_named(tmp_path: Path, line: str, problem: str) -> None:
    lines = [POLLUX, "bert-0,107,bert,1,12", line]
    assert problems("pollux", lines, profiles_of_bert(tmp_path)) == [(3, problem)]


def test_profiles_of_pollux_must_be_given_and_whole(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="give the folder of profiles"):
        read_trace(find_reader("pollux"), [POLLUX, "a,0,bert,1,12"])
    with pytest.raises(NotFound, match=r"validation-12\.csv is not there"):
        read_trace(find_reader("pollux", tmp_path), [POLLUX, "a,0,bert,1,12"])
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "validation-12.csv").write_text("progress,iteration,grad_sqr,grad_var\n1,1,1,1\n2,2,x,2\n")
    with pytest.raises(InvalidInput, match=r"validation-12\.csv, line 3: one of progress"):
        read_trace(find_reader("pollux", tmp_path), [POLLUX, "a,0,bert,1,12"])


def test_a_pod_of_openb_needs_its_part_of_a_gpu_and_best_effort_is_opportunistic() -> None:
    lines = [OPENB, "a,1,460,,BE,Running,100,700,160", "b,8,1000,V100M32,LS,Succeeded,90,120,90"]
    assert read_trace(find_reader("openb"), lines).jobs == (
        TraceJob("b", 0.0, 30.0, 8),
        TraceJob("a", 10.0, 540.0, 1, priority=-1, part=460),
    )


def test_a_pod_of_openb_needs_its_processors_and_memory_and_perhaps_no_gpu() -> None:
    lines = ["cpu_milli,memory_mib," + OPENB, "3152,16,a,0,0,,LS,Running,0,70,10"]
    (job,) = read_trace(find_reader("openb"), lines).jobs
    assert (job.devices, job.part, job.cpu_millis, job.memory_bytes) == (0, 1000, 3152, 16 << 20)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("c,0,0,,LS,Running,1,9,1", "the pod held no GPU"),
        ("c,1,500,,LS,Pending,1,9,", "the pod never started"),
        ("c,1,500,,LS,Running,1,,1", "the pod has not ended"),
        ("c,9,1000,,LS,Running,1,9,1", "num_gpu is 9, not within 0 to 8"),
        ("c,2,500,,LS,Running,1,9,1", "a pod of several GPUs must ask for whole ones"),
        ("c,1,500,,LS,Running,1,1,9", "the duration -8 s is not from 0 to 3.16224e+08 s"),
        ("c,1,500,,LS,Running,soon,9,1", "a value cannot be read: could not convert string to float: 'soon'"),
    ],
)
def test_a_pod_that_is_no_job_on_gpus_is_named(line: str, problem: str) -> None:
    assert problems("openb", [OPENB, "a,1,460,,BE,Running,100,700,160", line]) == [(3, problem)]


def test_the_format_of_published_traces_is_found_by_their_first_line() -> None:
    firsts = [physical("A", "1", "1", "0"), GAVEL, dynamic("A", "1", "1", "1", "0"), POLLUX, OPENB, " [", "a\tb"]
    assert [format_of(first) for first in firsts] == [
        "gavel", "gavel", "shockwave", "pollux", "openb", "openpai", None,
    ]  # fmt: skip


@given(name=st.sampled_from(sorted(FORMATS)), lines=st.lists(st.text(max_size=40), max_size=8), begun=st.booleans())
def test_any_text_is_jobs_or_broken_lines_or_one_refusal(name: str, lines: list[str], begun: bool) -> None:
    heads = {"gavel": GAVEL, "pollux": POLLUX, "openb": OPENB, "openpai": "["}
    try:
        read_trace(find_reader(name), [heads.get(name, ""), *lines] if begun else lines, skip_broken=True)
    except CorralError as error:
        assert error.message.endswith(".")


def test_a_question_reads_its_profiles_and_is_another_one_when_they_change(tmp_path: Path) -> None:
    trace = tmp_path / "some.trace"
    trace.write_text(dynamic("LM", "100", "1", "26", "0") + "\n")
    question = Question(trace, "1x1", "fifo", Knobs(), profiles=throughputs(tmp_path, LM=4.0))
    assert question.read().jobs == (TraceJob("job-0", 0.0, 25.0, 1),)
    before = question.digest()
    throughputs(tmp_path, LM=5.0)
    assert (question.digest() == before, question.read().jobs[0].seconds) == (False, 20.0)


def test_a_change_of_any_profile_changes_the_hash_of_the_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text(name)
    before = hash_of_all(tmp_path)
    assert before == hash_of_all(tmp_path)
    (tmp_path / "b" / "x.csv").write_text("c")
    assert before != hash_of_all(tmp_path)


@pytest.mark.parametrize(
    ("name", "profiles", "machines", "jobs", "skipped", "gpu_hours"),
    [
        ("gavel/max_min_fairness.trace", "gavel/physical_cluster_throughputs.json", "12x4", 96, 0, 379.17),
        ("gavel/published_continuous_seed0_rate4.0.csv.gz", None, "27x4", 16_000, 0, 267_608.46),
        ("shockwave/120_multigpu_dynamic.trace", None, "8x4", 120, 0, 197.60),
        ("shockwave/120_multigpu_dynamic.trace", "shockwave/tacc_throughputs.json", "8x4", 120, 0, 197.60),
        ("pollux/workloads/workload-1.csv", "pollux/profiles", "16x4", 160, 0, 1245.61),
        ("openb/openb_pod_list_default.csv", None, "776x8", 7255, 897, 51_470.67),
    ],
)
def test_a_published_trace_is_read_and_played(
    data_folder: Path, name: str, profiles: str | None, machines: str, jobs: int, skipped: int, gpu_hours: float
) -> None:
    if name.startswith("pollux"):
        pytest.importorskip("scipy")
    lines = list(lines_of(data_folder)(name))
    found = format_of(lines[0])
    assert found == name.partition("/")[0]
    given = None if profiles is None else data_folder / profiles
    trace = read_trace(find_reader(found, given), lines, skip_broken=True)
    assert (len(trace.jobs), len(trace.skipped)) == (jobs, skipped)
    assert sum(job.seconds * job.devices * job.part for job in trace.jobs) / 3.6e6 == pytest.approx(gpu_hours, abs=0.01)
    site = plain_site(machines)
    assert site is not None
    assert all(job.finished for job in Simulation(trace.jobs[:40], site, find_policy("fifo")).run().jobs)


def test_a_job_alone_takes_what_the_published_simulator_gives_it(data_folder: Path) -> None:
    pytest.importorskip("scipy")
    lines = lines_of(data_folder)
    application = read_application("cifar10", lambda file: lines(f"pollux/profiles/{file}"))
    job = PolluxJob(0, application, 0, 6, 2048)
    job.place([0, 0, 0, 0, 1, 1])
    job.advance(10**6)
    assert job.completed is not None
    assert seconds_alone(application, 6, 2048) == pytest.approx(job.completed - 30, abs=application.kind.epochs / 2)
