"""The verdicts of the benchmarks are right, and every bound has a reason."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from bench import __main__ as command
from bench.bounds import Figure, load_bounds
from bench.processes import cpu_seconds, pss, tree
from bench.stats import median, percentile


@pytest.mark.parametrize(
    ("better", "value", "verdict"),
    [
        ("less", 101.0, "missed"),
        ("less", 100.0, "met"),
        ("less", 31.0, "met"),
        ("less", 30.0, "aim"),
        ("more", 29.0, "missed"),
        ("more", 30.0, "met"),
        ("more", 100.0, "aim"),
    ],
)
def test_a_figure_is_judged_by_its_must_and_its_aim(better: str, value: float, verdict: str) -> None:
    must, aim = (100.0, 30.0) if better == "less" else (30.0, 100.0)
    assert Figure("p50", "ms", better, "a reason", must, aim).verdict(value) == verdict  # type: ignore[arg-type]


def test_every_bound_has_a_reason_and_an_aim_no_weaker_than_its_must() -> None:
    for benchmark in load_bounds().values():
        assert benchmark.figures and benchmark.what.endswith(".")
        for figure in benchmark.figures:
            assert len(figure.reason.split()) >= 5, f"{benchmark.name}.{figure.name} has no reason"
            assert figure.better in {"less", "more"}
            if figure.must is not None and figure.aim is not None:
                assert figure.reaches(figure.aim, figure.must)


def test_percentiles_take_the_nearest_rank() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (median(values), percentile(values, 0.99), percentile([7.0], 0.99)) == (50.0, 99.0, 7.0)
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_the_memory_and_work_of_this_very_process_are_seen() -> None:
    import os

    pids = tree(os.getpid())
    assert os.getpid() in pids
    assert pss(pids) > 1 and cpu_seconds(pids) > 0


def run_with(monkeypatch: pytest.MonkeyPatch, figures: dict[str, float]) -> int:
    """Run the benchmark `cli` with these figures instead of a measurement."""
    fake = SimpleNamespace(measure=lambda: figures)
    monkeypatch.setattr(command.importlib, "import_module", lambda name: fake)
    return command.main(["cli", "-o", "json"])


def test_a_missed_must_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with(monkeypatch, {"version": 500.0, "ls": 100.0}) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["missed"] == ["version"] and record["machine"]["cores"] >= 1


def test_reached_musts_are_exit_code_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with(monkeypatch, {"version": 70.0, "ls": 150.0, "ls p95": 160.0}) == 0
    record = json.loads(capsys.readouterr().out)
    assert [figure["verdict"] for figure in record["figures"]] == ["aim", "met"]
    assert record["also"] == {"ls p95": 160.0}


def test_a_figure_that_was_not_measured_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="did not report ls"):
        run_with(monkeypatch, {"version": 70.0})


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in load_bounds())


def test_an_unknown_name_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nonsense"]) == 2
    assert "submit-to-running" in capsys.readouterr().err
