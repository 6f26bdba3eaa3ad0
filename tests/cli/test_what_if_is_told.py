"""The words of `corral what-if`: its options, and an answer for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from corral.cli.what_if import answer_text, queue_changes, what_if_command


def spread(p10: float | None, p50: float | None, p90: float | None) -> dict[str, Any]:
    return {"p10": p10, "p50": p50, "p90": p90}


def figures(**more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("started", "ended", "preemptions", "waiting", "devices", "lent", "borrowed"), 0.0)
    return nothing | {"waitP50": None, "waitP95": None} | more


def answer(**more: Any) -> Any:
    jobs = [
        job("a", before=spread(60, 90, 120), after=spread(0, 0, 0)),
        job("b", before=spread(0, 0, 0), after=spread(30, 3600, None)),
        job("c", added=True, after=spread(None, None, None)),
    ]
    queue = {"name": "vision", "before": figures(waitP50=90.0, started=2.0), "after": figures(waitP50=0.0, started=2.0)}
    shown = {
        "at": "2026-01-31T12:00:00.000Z", "horizonSeconds": 86400.0, "seeds": 5, "changes": ["local/n2 drained"],
        "queues": [queue], "jobs": jobs, "gains": ["a"], "losses": ["b"], "assumptions": ["No task fails."],
        "jobsLeftOut": 0,
    }  # fmt: skip
    return shown | more


def job(name: str, **more: Any) -> dict[str, Any]:
    plain = {"id": name, "name": f"job-{name}", "user": "ann", "queue": "vision", "devices": 4.0, "waitedSeconds": 30.0}
    return plain | {"added": False, "before": spread(None, None, None), "after": spread(None, None, None)} | more


def test_a_job_that_no_node_can_hold_never_starts() -> None:
    held = job("d", before=spread(None, None, None), after=spread(60, 60, 60), neverBefore=True, neverAfter=False)
    lost = job("e", before=spread(60, 60, 60), after=spread(None, None, None), neverBefore=False, neverAfter=True)
    text = answer_text(answer(jobs=[held, lost], gains=[], losses=[]))
    assert "never → 1m" in text and "1m → never" in text and "later" not in text


def test_queues_and_jobs_are_shown_before_and_after() -> None:
    lines = answer_text(answer()).splitlines()
    assert lines[0] == "The next 1d from 2026-01-31T12:00:00.000Z, 5 courses."
    assert lines[1] == "Changes: local/n2 drained."
    row = next(line for line in lines if line.startswith("vision"))
    assert row.split()[1:5] == ["2", "1m30s", "→", "0s"]
    text = "\n".join(lines)
    assert "1m30s (1m to 2m) → 0s" in text
    assert "0s → 1h (30s to later)" in text
    assert "- → later" in text
    assert "Gain most: job-a (1m30s earlier)." in text and "Lose most: job-b (1h later)." in text
    assert text.endswith("- No task fails.")


def test_without_changes_one_time_is_shown() -> None:
    text = answer_text(answer(changes=[], gains=[], losses=[]))
    assert ">" not in text and "Gain most" not in text and "Changes" not in text


def test_of_many_jobs_those_that_move_come_first() -> None:
    more = [job(f"x{number}", after=spread(1, 1, 1)) for number in range(30)]
    shown = answer(jobs=[*more, job("a", before=spread(9, 9, 9), after=spread(1, 1, 1))])
    text = answer_text(shown)
    assert "job-a" in text and "11 more jobs (--all)." in text
    assert "more jobs" not in answer_text(shown, everything=True)


def test_queue_changes_are_read_by_path() -> None:
    assert queue_changes(["research=deserved.devices:16,weight:2", "vision=limit.cpu:4", "research=closed:true"]) == {
        "research": {"deserved": {"devices": 16}, "weight": 2, "closed": True},
        "vision": {"limit": {"cpu": 4}},
    }


@pytest.mark.parametrize("said", ["research", "research=", "=weight:2", "research=weight", "research=a..b:1", "q=:1"])
def test_other_words_are_refused(said: str) -> None:
    with pytest.raises(click.UsageError, match="is not of this form"):
        queue_changes([said])


def test_a_path_through_a_value_is_refused() -> None:
    with pytest.raises(click.UsageError, match="is not of this form"):
        queue_changes(["q=weight:2,weight.x:3"])


def test_nodes_to_add_go_with_a_node_that_they_are_like() -> None:
    done = CliRunner().invoke(what_if_command, ["--add-nodes", "2"])
    assert done.exit_code == 2 and "Each --add-nodes N goes with a --like NODE." in done.output


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(what_if_command, ["--submit", str(tmp_path / "none.yaml")])
    assert "none.yaml cannot be read" in str(cast(Any, done.exception))
    done = CliRunner().invoke(what_if_command, ["--documents", str(tmp_path)])
    assert "has no file of .yaml, .yml, .json" in str(cast(Any, done.exception))


def test_the_outcome_of_a_goal_stands_first() -> None:
    tries = [
        {"value": 0, "held": False, "measured": None, "wanted": 3600.0, "refused": ""},
        {"value": 2, "held": True, "measured": 1800.0, "wanted": 3600.0, "refused": ""},
        {"value": 4, "held": False, "measured": None, "wanted": None, "refused": "too many"},
    ]
    goal = {"goal": "wait.p95 <= 1h", "says": "The least that reaches it: 2.", "unit": "seconds", "reached": True}
    lines = answer_text(answer(goal=goal | {"tries": tries})).splitlines()
    assert lines[:2] == ["Goal: wait.p95 <= 1h", "The least that reaches it: 2."]
    assert [line.split() for line in lines[4:7]] == [
        ["0", "never", "no"],
        ["2", "30m", "yes"],
        ["4", "refused", "no"],
    ]


def test_a_goal_needs_something_to_vary() -> None:
    for words in (["--goal", "wait.p95 <= 1h"], ["--vary", "nodes-like=local/n1"]):
        done = CliRunner().invoke(what_if_command, words)
        assert done.exit_code == 2 and "--goal goes with --vary" in done.output
