"""Traces are read by format, and what is no job is named by its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.sim.trace import MOST_CHARACTERS, TraceJob, read_trace
from corral.sim.traces.formats import find_reader, format_of
from corral.sim.traces.muri import read_muri
from corral.sim.traces.philly import read_philly
from corral.sim.traces.plain import read_plain
from corral.sim.traces.slurm import read_slurm

MURI = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time"
SLURM = "JobID|User|Submit|ElapsedRaw|AllocTRES"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster"


def test_jobs_of_muri_are_in_seconds() -> None:
    trace = read_trace(read_muri, [MURI, "0,4,2000,1000,vgg16,128,500000,0,500", "1,1,1000,10,vgg16,128,5000,0,500"])
    assert trace.jobs == (TraceJob("job-1", 0.0, 5.0, 1), TraceJob("job-0", 1.0, 500.0, 4))


def test_a_virtual_cluster_of_philly_is_a_user_and_times_count_from_the_first_job() -> None:
    lines = [PHILLY, "2017-10-09 07:01:55,66.0,1,66.0,11cb48", "2017-10-09 07:00:55,10.0,8,80.0,6214e9"]
    trace = read_trace(read_philly, lines)
    assert [(job.submitted, job.user, job.devices) for job in trace.jobs] == [(0.0, "6214e9", 8), (60.0, "11cb48", 1)]


def test_jobs_of_slurm_have_the_gpus_that_they_held_and_their_steps_are_left_out() -> None:
    lines = [
        SLURM,
        "17|ada|2026-11-20T08:00:00|3600|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1",
        "17.batch||2026-11-20T08:00:05|3600|cpu=8,gres/gpu=4,mem=64G,node=1",
        "18_3|bo|2026-11-20T08:01:00|60|cpu=2,gres/gpu:a100=1,gres/gpu:v100=2,node=1",
    ]
    assert read_trace(read_slurm, lines).jobs == (
        TraceJob("job-17", 0.0, 3600.0, 4, "ada"),
        TraceJob("job-18_3", 60.0, 60.0, 3, "bo"),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("19|ada|2026-11-20T08:00:00|0|", "the job never started"),
        ("19|ada|2026-11-20T08:00:00|60|cpu=2,node=1", "the job held no GPU"),
        ("19|ada|Unknown|60|gres/gpu=1", "a value cannot be read: Invalid isoformat string: 'Unknown'"),
        ("19|ada|2026-11-20T08:00:00|60|gres/gpu=-1", "-1 devices are not from 1 to 65536"),
        ("19|ada|2026-11-20T08:00:00|60|gres/gpu", "a value cannot be read: invalid literal for int()"),
        ("19|ada|2026-11-20T08:00:00|nan|gres/gpu=1", "a time is no finite number"),
    ],
)
def test_a_line_of_slurm_that_is_no_job_on_gpus_is_named(line: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read_trace(read_slurm, [SLURM, "1|bo|2026-11-20T08:00:00|60|gres/gpu=1", line])
    assert error.value.message.startswith(f"Line 3 of the trace: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1,2", "Line 3 of the trace: a value cannot be read: invalid literal for int() with base 10: ''."),
        ("-1,nan,1", "Line 3 of the trace: a time is no finite number."),
        ("0,-5,1", "Line 3 of the trace: the duration -5 s is not from 0 to 3.16224e+08 s."),
        ("0,5,0", "Line 3 of the trace: 0 devices are not from 1 to 65536."),
        ("0,5,1e400", "Line 3 of the trace: a value cannot be read"),
        ("1e300,5,1", "Line 3 of the trace: the time of submission 1e+300 s is not within 1e+10 s of 1970."),
        ("0,5,many", "Line 3 of the trace: a value cannot be read"),
    ],
)
def test_a_broken_line_is_named_or_left_out_and_counted(line: str, problem: str) -> None:
    lines = ["submitted,seconds,devices", "0,10,1", line, "5,10,1"]
    with pytest.raises(InvalidInput) as error:
        read_trace(read_plain, lines)
    assert error.value.message.startswith(problem)
    trace = read_trace(read_plain, lines, skip_broken=True)
    assert (len(trace.jobs), [each.line for each in trace.skipped]) == (2, [3])


def test_a_missing_column_an_endless_line_and_a_trace_without_jobs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the column num_gpus is missing"):
        read_trace(read_philly, ["timestamp,duration", "2017-10-09 07:01:55,1"], skip_broken=True)
    with pytest.raises(InvalidInput, match="Line 2 of the trace has more than"):
        read_trace(read_plain, ["submitted,seconds,devices", "0" * (MOST_CHARACTERS + 1)], skip_broken=True)
    with pytest.raises(InvalidInput, match="no job that can be played"):
        read_trace(read_plain, ["submitted,seconds,devices", "x"], skip_broken=True)
    with pytest.raises(InvalidInput, match="choose one of gavel, journal, muri, openb, openpai, philly, plain"):
        find_reader("parquet")


def test_the_format_is_found_by_its_columns() -> None:
    assert [format_of(each) for each in (MURI, PHILLY, "devices,seconds,submitted", SLURM + "\n", "a,b")] == [
        "muri", "philly", "plain", "slurm", None,
    ]  # fmt: skip


@given(st.lists(st.text(max_size=40), max_size=20))
def test_any_text_is_jobs_or_broken_lines(lines: list[str]) -> None:
    try:
        trace = read_trace(read_plain, ["submitted,seconds,devices", *lines], skip_broken=True)
    except InvalidInput:
        return
    assert trace.jobs[0].submitted == 0.0
