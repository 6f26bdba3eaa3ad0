"""The list of jobs that OpenPAI's REST API answers is a trace, in every form that it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.kernel.errors import InvalidInput
from corral.sim.comparison import Question
from corral.sim.simulation import Knobs
from corral.sim.trace import MOST_CHARACTERS, TraceJob, read_trace
from corral.sim.traces.formats import find_format, find_reader, format_of


def listed(**fields: Any) -> dict[str, Any]:
    whole = {
        "name": "train", "username": "ada", "state": "SUCCEEDED", "submissionTime": 1_600_000_000_000,
        "launchedTime": 1_600_000_060_000, "completedTime": 1_600_000_160_500, "virtualCluster": "vc1",
        "totalGpuNumber": 4, "jobPriority": "prod",
    }  # fmt: skip
    return {**whole, **fields}


ADA = TraceJob("ada~train", 0.0, 100.5, 4, "ada", "vc1", 100)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([listed()]),
        json.dumps([listed()], indent=2),
        json.dumps({"totalCount": 1, "data": [listed(totalGpuNumber="4")]}),
        json.dumps({"data": [listed()], "totalCount": 1}) + "\n",
        "[]\n" + json.dumps([listed()]) + "\n[ ]\n",
    ],
)
def test_jobs_of_openpai_are_read_from_every_form_of_the_list(text: str) -> None:
    assert format_of(text[:4096]) == "openpai"
    assert read_trace(find_reader("openpai"), text.splitlines(keepends=True)).jobs == (ADA,)


def test_a_job_of_openpai_without_a_priority_class_counts_as_test() -> None:
    others = [listed(jobPriority=None, submissionTime=1_600_000_005_000), listed(jobPriority="oppo"), {**listed()}]
    del others[2]["jobPriority"]
    jobs = read_trace(find_reader("openpai"), [json.dumps(others)]).jobs
    assert [(job.priority, job.submitted) for job in jobs] == [(-1, 0.0), (10, 0.0), (10, 5.0)]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"launchedTime": None}, "it never started"),
        ({"completedTime": 0, "state": "RUNNING"}, "it has not ended"),
        ({"totalGpuNumber": 0}, "it held no GPU"),
        ({"totalGpuNumber": 1.5}, "totalGpuNumber is missing or no whole number"),
        ({"submissionTime": "today"}, "submissionTime is missing or no number"),
        ({"submissionTime": True}, "submissionTime is missing or no number"),
        ({"submissionTime": 10**400}, "submissionTime is out of range"),
        ({"username": 7}, "username is no text"),
        ({"jobPriority": "high"}, "jobPriority is none of crit, prod, test, oppo"),
    ],
)
def test_a_job_of_openpai_that_cannot_be_played_is_named_by_line_and_number(
    fields: dict[str, Any], problem: str
) -> None:
    text = f"[\n{json.dumps(listed())},\n{json.dumps(listed(**fields))}]"
    trace = read_trace(find_reader("openpai"), text.splitlines(keepends=True), skip_broken=True)
    assert trace.skipped == ((3, f"job 2 of the list: {problem}"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"message": "no"}', "Line 1 of the trace: character 1: here no list of jobs begins."),
        ("[\n{} {}]", "Line 2 of the trace: character 3: a comma or the end of the list is missing."),
        ("[{},\n oops]", "Line 2 of the trace: character 2: here begins no JSON value that can be read."),
        ("[" * 200_000, "Line 1 of the trace: character 2: here begins no JSON value that can be read."),
        ("[1" + "0" * 5000 + "]", "Line 1 of the trace: character 2: here begins no JSON value that can be read."),
        ("[{}", "Line 1 of the trace: character 4: a comma or the end of the list is missing."),
    ],
)
def test_text_that_is_no_list_of_openpai_is_refused_at_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read_trace(find_reader("openpai"), text.splitlines(keepends=True), skip_broken=True, most_characters=10**6)
    assert error.value.message == message


def test_an_export_of_openpai_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.compat.openpai.trace_format.MOST_CHARACTERS", 1 << 20)
    with pytest.raises(InvalidInput, match="Line 2 of the trace: an export of more than 1 MiB is not read"):
        read_trace(find_reader("openpai"), ["[\n", " " * (1 << 20)], most_characters=1 << 21)
    assert find_format("openpai").most_characters == 256 << 20


def test_a_long_answer_on_one_line_is_read(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps([listed(name=f"job-{number}") for number in range(500)]))
    assert file.stat().st_size > MOST_CHARACTERS
    assert len(Question(file, "8x8", "fifo", Knobs()).read().jobs) == 500
