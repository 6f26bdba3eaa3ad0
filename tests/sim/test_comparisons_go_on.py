"""A comparison goes on: only what has no result of the same question in the folder is played."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.sim.comparison import Question, answer
from corral.sim.progress import Costs
from corral.sim.simulation import Knobs
from corral.sim.stored_results import StoredResults

TRACE = "submitted,seconds,devices\n0,1000,4\n1,10,4\n2,20,4\n"


@pytest.fixture
def question(tmp_path: Path) -> Question:
    (tmp_path / "trace.csv").write_text(TRACE)
    return Question(tmp_path / "trace.csv", "1x4", "fifo", Knobs())


@pytest.fixture
def folder(tmp_path: Path, question: Question) -> Path:
    """A folder with the result of the question."""
    StoredResults(tmp_path / "runs", [question]).keep(question, answer(question))
    return tmp_path / "runs"


def is_found(folder: Path, question: Question) -> bool:
    return [found for found, _ in StoredResults(folder, [question]).found()] == [question]


def test_a_result_that_is_used_again_equals_the_one_that_was_played(folder: Path, question: Question) -> None:
    ((_, result),) = StoredResults(folder, [question]).found()
    assert result.figures() == answer(question).figures()


def test_the_same_files_elsewhere_are_the_same_question(folder: Path, question: Question, tmp_path: Path) -> None:
    moved = question.trace.rename(tmp_path / "renamed.csv")
    assert is_found(folder, replace(question, trace=moved))


@pytest.mark.parametrize(
    "changed",
    [
        {"knobs": Knobs(seed=1)},
        {"knobs": Knobs(told=False)},
        {"knobs": Knobs(Costs(restart=5.0))},
        {"machines": "2x4"},
        {"review_seconds": 30.0},
        {"skip_broken": True},
        {"most": 2},
    ],
    ids=str,
)
def test_a_result_of_another_question_is_not_used(folder: Path, question: Question, changed: Mapping[str, Any]) -> None:
    assert is_found(folder, question) and not is_found(folder, replace(question, **changed))


def test_a_result_of_another_trace_is_not_used(folder: Path, question: Question) -> None:
    question.trace.write_text(TRACE + "3,10,1\n")
    assert not is_found(folder, question)


def test_a_result_of_other_machines_in_a_file_of_the_same_name_is_not_used(question: Question, tmp_path: Path) -> None:
    machines = tmp_path / "cluster.yaml"
    machines.write_text("kind: Cluster\nnode: {cpu: 8, memory: 8Gi, devices: 4}\nnodes: [one]\n")
    question = replace(question, machines=str(machines))
    StoredResults(tmp_path / "runs", [question]).keep(question, answer(question))
    assert is_found(tmp_path / "runs", question)
    machines.write_text(machines.read_text().replace("[one]", "[one, two]"))
    assert not is_found(tmp_path / "runs", question)


@pytest.mark.parametrize("content", [b"", b"[1", b"{}", b"\xff\x00", b"[" * 100_000], ids=lambda each: str(each[:9]))
def test_a_file_that_holds_no_result_is_written_again(folder: Path, question: Question, content: bytes) -> None:
    (folder / "fifo.json").write_bytes(content)
    assert not is_found(folder, question)
    StoredResults(folder, [question]).keep(question, answer(question))
    assert is_found(folder, question)
    assert [file.name for file in folder.iterdir()] == ["fifo.json"]


def compare(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ("sim", "compare", "--trace", "trace.csv", "--cluster", "1x4", "-o", "json", "--policy", "fifo", *options)
    command = [sys.executable, "-m", "corral.cli.main", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_command_plays_only_the_policies_that_are_missing(folder: Path, question: Question) -> None:
    before = (folder / "fifo.json").stat().st_mtime_ns
    done = compare(folder.parent, "--policy", "las", "--results", "runs", "--resume")
    assert done.returncode == 0 and "Used 1 result of runs." in done.stderr
    assert [row["policy"] for row in json.loads(done.stdout)] == ["fifo", "las"]
    assert (folder / "fifo.json").stat().st_mtime_ns == before
    assert is_found(folder, replace(question, policy="las"))


def test_resume_without_a_folder_is_refused(question: Question) -> None:
    done = compare(question.trace.parent, "--resume")
    assert done.returncode == 2 and "--resume needs --results FOLDER." in done.stderr
