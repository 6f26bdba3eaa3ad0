"""A sweep plays every combination of policies, assumptions and seeds, and tells means with their intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corral.cli.sim import sim_command
from corral.kernel.errors import InvalidInput
from corral.sim import comparison
from corral.sim.comparison import Question, answer
from corral.sim.confidence import estimate, student_t
from corral.sim.groups import grouped
from corral.sim.results import Result as SimResult
from corral.sim.results import read_result
from corral.sim.sweep import MOST_COMBINATIONS, combinations

TRACE = "submitted,seconds,devices\n" + "".join(f"{at},{1000 + at},2\n" for at in range(12))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace; simulations are played in this process."""

    def in_turn(questions: Sequence[Question], processes: int) -> Iterator[tuple[Question, SimResult]]:
        for question in questions:
            yield question, answer(question)

    monkeypatch.setattr(comparison, "answers", in_turn)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text(TRACE)
    return tmp_path


def sweep(*options: str) -> Result:
    words = ["sweep", "--trace", "trace.csv", "--cluster", "1x4", "--policy", "fifo", *options]
    return CliRunner().invoke(sim_command, words, standalone_mode=False)


def test_students_t_agrees_with_scipy() -> None:
    for degrees in (*range(1, 40), 100, 999):
        assert student_t(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-8)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20))
def test_an_interval_agrees_with_scipy(values: list[float]) -> None:
    found = estimate(values)
    assert found.n == len(values) and found.half_width is not None
    if (error := stats.sem(values)) > 1e-6:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=found.mean, scale=error)
        assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high), rel=1e-6)


def test_one_value_has_no_interval() -> None:
    assert estimate([3.0]) == (3.0, None, 1)


def test_combinations_are_complete_and_bounded() -> None:
    planned = combinations(["fifo", "las"], {"scatter": [0.0, 0.1], "review": [60.0]}, [1, 2, 3])
    assert len(planned) == len(set(planned)) == 12
    assert planned[1].file_name == "fifo_scatter=0_review=60_seed=2"
    assert len({each.file_name for each in planned}) == 12
    with pytest.raises(InvalidInput, match=f"{MOST_COMBINATIONS} are the most"):
        combinations(["fifo"], {"scatter": [0.0, 0.1]}, range(MOST_COMBINATIONS))


class Run(NamedTuple):
    policy: str
    knobs: dict[str, float]


def test_runs_that_differ_by_their_seed_are_one_group() -> None:
    runs = [Run("fifo", {"seed": seed, "scatter": scatter}) for scatter in (0.0, 0.1) for seed in (1, 2)]
    groups = grouped([*runs, runs[0], Run("las", {"seed": 1, "scatter": 0.1})])
    assert [(group.name, group.seeds) for group in groups] == [
        ("fifo, scatter 0", [1, 2]), ("fifo, scatter 0.1", [1, 2]), ("fifo, scatter 0 (2)", [1]), ("las, scatter 0.1", [1]),
    ]  # fmt: skip


def test_the_command_tells_means_and_intervals_over_seeds(folder: Path) -> None:
    done = sweep("--knob", "stragglers=0,0.5", "--seeds", "1..3", "--results", "runs", "-o", "json")
    still, random = json.loads(done.stdout)
    assert (still["knobs"], still["n"], still["seeds"]) == ({"stragglers": 0.0}, 3, [1, 2, 3])
    assert still["estimates"]["mean_jct"]["half_width"] == 0.0
    values = [run["mean_jct"] for run in random["runs"]]
    found = random["estimates"]["mean_jct"]
    assert (found["mean"], found["half_width"]) == estimate(values)[:2] and found["half_width"] > 0.0
    assert read_result(folder / "runs" / "fifo_stragglers=0.5_seed=2.json").knobs["seed"] == 2


def test_the_table_shows_n_and_says_where_nothing_is_random(folder: Path) -> None:
    done = sweep("--knob", "stragglers=0", "--seeds", "1,2")
    heads, row = done.stdout.splitlines()
    assert heads.split()[:4] == ["POLICY", "STRAGGLERS", "N", "ENDED"]
    assert row.split()[:4] == ["fifo", "0", "2", "24/24"] and "±" in row
    assert "Every seed gave the same result" in done.stderr
    assert "±" not in sweep().stdout


def test_a_sweep_goes_on_where_results_are_missing(folder: Path) -> None:
    options = ("--knob", "restart-cost=0,30", "--seeds", "1,2", "--results", "runs", "--resume", "-o", "json")
    first = sweep(*options)
    (folder / "runs" / "fifo_restart-cost=30_seed=1.json").unlink()
    second = sweep(*options)
    assert "Used 0 results of runs." in first.stderr and "Used 3 results of runs." in second.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)


def test_an_interrupt_keeps_what_is_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(questions: Sequence[Question], processes: int) -> Iterator[tuple[Question, SimResult]]:
        yield questions[0], answer(questions[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "answers", one)
    done = sweep("--seeds", "1..5", "--results", "runs", "-o", "json")
    assert done.return_value == 130
    assert [group["seeds"] for group in json.loads(done.stdout)] == [[1]]
    assert [file.name for file in (folder / "runs").iterdir()] == ["fifo_seed=1.json"]


def test_a_dry_run_prints_the_combinations_and_plays_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "answers", None)
    done = sweep("--policy", "las", "--knob", "checkpoint=0,60", "--seeds", "1..5", "--dry-run", "--results", "runs")
    assert "20 simulations." in done.stderr and len(done.stdout.splitlines()) == 5
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--knob", "best=1"], "There is no knob 'best'; the knobs are overestimate,"),
        (["--knob", "scatter=0,x"], "'x' is not a valid float range"),
        (["--knob", "scatter"], "'' is not a valid float range"),
        (["--knob", "scatter=-1"], "-1.0 is not in the range"),
        (["--knob", "scatter=nan"], "'nan' is not a number."),
        (["--knob", "scatter=0", "--knob", "scatter=1"], "The knob scatter is given twice"),
        (["--seeds", "5..1"], "5..1 ends before it begins."),
        (["--seeds", f"1..{10**18}"], f"The sweep has {10**18} combinations"),
        (["--seeds", "-1"], "-1 is not in the range"),
        (["--seeds", "0..9999", "--knob", "scatter=0,1"], "The sweep has 20000 combinations"),
        (["--resume"], "--resume needs --results FOLDER."),
    ],
)
def test_what_cannot_be_swept_is_refused_in_a_sentence(folder: Path, options: list[str], said: str) -> None:
    done = sweep(*options)
    assert said in str(done.exception)
