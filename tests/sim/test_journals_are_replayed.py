"""Simulations write journals, and `corral replay run` decides the same in another process, whatever its hash seed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from corral.cli.replay import replay_command
from corral.cli.sim import sim_command
from corral.control.journal.living_on import live_on
from corral.control.journal.replay import replay
from corral.scheduler.policy.order import PriorityOrder

ROWS = [f"{number * 7},{100 + number * 13 % 90},{1 + number % 4},user-{number % 5}" for number in range(60)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small trace that keeps two nodes busy."""
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(["submitted,seconds,devices,user", *ROWS]))
    return file


def simulated(trace: Path, *words: str) -> Path:
    """The journal of a simulation."""
    file = trace.with_suffix(".journal")
    told = ["run", "--trace", str(trace), "--cluster", "2x4", "--journal", str(file), "-o", "json", *words]
    done = CliRunner().invoke(sim_command, told, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0
    return file


def replayed(*words: object) -> Result:
    return CliRunner().invoke(replay_command, ["run", *map(str, words)], standalone_mode=False)


@pytest.mark.parametrize("policy", ["", "fair", "las+order", "deadline"])
def test_a_simulation_is_replayed(trace: Path, policy: str) -> None:
    done = replayed(simulated(trace, "--policy", policy, "--node-failures", "50", "--reports", "60"))
    assert (done.return_value, done.exception) == (0, None)
    assert "every decision is equal." in done.output


def test_a_journal_changes_nothing_of_the_simulation(trace: Path) -> None:
    words = ["run", "--trace", str(trace), "--cluster", "2x4", "-o", "json"]
    digests = set()
    for more in ([], ["--journal", str(trace.with_suffix(".journal"))]):
        done = CliRunner().invoke(sim_command, words + more, standalone_mode=False, catch_exceptions=False)
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1


def test_it_is_replayed_under_any_hash_seed(trace: Path) -> None:
    file = simulated(trace, "--policy", "fair")
    root = str(Path(__file__).resolve().parents[2])
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "corral.cli.main", "replay", "run", str(file), "-o", "json"]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        found = json.loads(done.stdout)
        assert (found["equal"], found["whole"]) == (True, True) and found["events"] >= 180


@pytest.mark.parametrize("words", [("fair",), ("fifo", "--node-failures", "1000"), ("shockwave",)])
def test_a_replay_may_begin_at_each_checkpoint(trace: Path, words: tuple[str, ...]) -> None:
    """It knows of timers that are over, and of the decision of a market that is followed."""
    file = simulated(trace, "--policy", *words)
    with file.open("rb") as opened:
        whole = replay(opened).steps
    steps = []
    for part in range(1, 10):
        with file.open("rb") as opened:
            found = replay(opened, since=1_000_000_000.0 + part * 59 * 7 / 10 + 8)
            assert found.difference is None
            steps.append(found.steps)
    assert steps == sorted(steps, reverse=True) and len(set(steps)) > 5 and steps[0] < whole


def test_an_hour_of_philly_keeps_below_200_bytes_an_event_and_is_replayed(trace: Path, data_folder: Path) -> None:
    philly = data_folder / "philly" / "philly.csv"
    words = ["--trace", str(philly), "--cluster", "40x8x12", "--jobs", "400", "--skip-broken"]
    file = simulated(trace, *words)
    with file.open("rb") as opened:
        found = replay(opened)
    assert found.difference is None and found.problem == ""
    assert file.stat().st_size / found.events < 200


def test_the_first_decision_that_differs_is_shown(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = simulated(trace, "--policy", "priority")
    plain = PriorityOrder.key
    monkeypatch.setattr(PriorityOrder, "key", lambda *told: tuple(-each for each in plain(*told)))
    done = replayed(file)
    assert done.return_value == 1
    assert "decided otherwise.\n\nIn the journal:\n  start job-" in done.output
    assert "\nNow:\n  start job-" in done.output and "\nThe events of the step now:\n  job-" in done.output
    said = json.loads(replayed(file, "-o", "json").stdout)
    there = said["difference"]
    assert not said["equal"] and there["recorded"] != there["replayed"]
    assert there["recorded"][0]["verb"] == "start" and there["recorded"][0]["node"].startswith("local/node")
    for side in ("recorded", "replayed"):
        (reason,) = there[f"{side}Reasons"]
        assert reason.startswith(there[side][0]["node"]) and reason.endswith(" of 4 devices free")


def test_a_file_that_was_cut_off_is_replayed_as_far_as_it_goes_and_refused(trace: Path) -> None:
    file = simulated(trace)
    file.write_bytes(file.read_bytes()[:-10])
    done = replayed(file)
    assert done.return_value == 2
    assert "every decision is equal." in done.output
    assert "was cut off; it was read up to the last whole block before." in done.output


def test_what_is_no_journal_or_not_there_is_refused(trace: Path) -> None:
    assert "is not a journal of Corral" in str(replayed(trace).exception)
    assert "nowhere is not there" in str(replayed(trace.parent / "nowhere").exception)
    assert "--from 'noon' is not a time" in str(replayed(trace, "--from", "noon").exception)


def test_a_failed_simulation_leaves_the_journal_as_it_was(trace: Path) -> None:
    file = trace.with_suffix(".journal")
    file.write_text("before")
    words = ["run", "--trace", str(trace), "--cluster", "1x2", "--journal", str(file)]
    assert CliRunner().invoke(sim_command, words, standalone_mode=False).exception is not None
    assert file.read_text() == "before" and sorted(each.name for each in trace.parent.iterdir()) == [
        "trace.csv", "trace.journal",
    ]  # fmt: skip


@pytest.mark.parametrize("policy", ["srtf", "largest-first", "fair"])
def test_jobs_that_live_on_under_a_policy_start_when_they_start_in_a_simulation_of_it(trace: Path, policy: str) -> None:
    told = simulated(trace, "--policy", "fifo").read_bytes()
    lived = live_on(io.BytesIO(told), policy=policy).courses.after[0].starts
    recorded = simulated(trace, "--policy", policy).read_bytes()
    was = live_on(io.BytesIO(recorded), policy=policy).courses.before[0].starts
    assert len(lived) == len(ROWS)
    assert lived == pytest.approx(was, abs=0.01)
