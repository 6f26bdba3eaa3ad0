"""A node that is lost, or fails, in the middle of a suite is told and marked, and the others go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import pytest

from corral.benchmarks.suite.document import read_suite
from corral.benchmarks.suite.jobs import Machine, Programs, runs_of
from corral.cli.benchmark_run import Outcome, SuiteRun
from corral.kernel.errors import Unavailable
from corral.model.exits import ATTEMPT_COMPLETED, DEADLINE_EXCEEDED, STOP_REQUESTED, SUCCEEDED, USER_ERROR

NAMES = ("local/node1", "local/node2", "local/node3")
MACHINES = [Machine(name, 1000, 2**30, 0) for name in NAMES]


class Ends(NamedTuple):
    """How a job ends in which one task ends otherwise than the others."""

    job: int = DEADLINE_EXCEEDED
    one: int = ATTEMPT_COMPLETED
    others: int = SUCCEEDED
    lost: bool = True
    """The one task waits for its node, and has no place, until the job is over."""


LOST, HANGS = Ends(), Ends(others=ATTEMPT_COMPLETED)
FAILED = Ends(USER_ERROR, USER_ERROR, ATTEMPT_COMPLETED, lost=False)


class Server:
    """Accepts jobs that have ended when they are looked at; the tasks on one node told nothing before they ended."""

    def __init__(self, figures: dict[str, Any], bad: str, ends: Ends) -> None:
        self.figures, self.bad, self.ends = figures, bad, ends
        self.documents: dict[str, Any] = {}
        self.away = 0
        """Logs that do not answer, of the next ones that are asked for."""

    def submit(self, text: str, *, code: str, idempotency_key: str) -> dict[str, str]:
        """Accept a job."""
        self.documents[idempotency_key] = json.loads(text)
        return {"id": idempotency_key}

    def _nodes(self, job: str) -> list[str]:
        return list(self.documents[job]["nodes"]["include"])

    def job(self, job: str) -> dict[str, Any]:
        """Return a job that has ended."""
        failed = self.bad in self._nodes(job)
        ended = _exit(self.ends.job, "it is over.") if failed else None
        return {"id": job, "name": job, "state": "failed" if failed else "succeeded", "exit": ended}

    def tasks(self, job: str, *, limit: int) -> dict[str, Any]:
        """Return the tasks of a job."""
        nodes, ends = self._nodes(job), self.ends if self.bad in self._nodes(job) else Ends(one=SUCCEEDED)
        return {
            "items": [
                {
                    "index": index,
                    "node": "" if node == self.bad and ends.lost else node,
                    "exit": _exit(ends.one if node == self.bad else ends.others),
                }
                for index, node in enumerate(nodes)
            ]
        }

    def log(self, job: str) -> Iterator[bytes]:
        """Yield the lines of the other tasks."""
        if self.away:
            self.away -= 1
            raise Unavailable("archive-away", "The archive of logs does not answer.")
        for node in self._nodes(job):
            if node != self.bad:
                told = {"metrics": self.figures, "problems": []}
                yield b"CORRAL-BENCHMARK " + json.dumps(told).encode() + b"\n"


def outcome(
    benchmarks: str,
    figures: dict[str, Any],
    *,
    bad: str = NAMES[1],
    ends: Ends = LOST,
    away: int = 0,
    wait: float = 60,
) -> Outcome:
    runs = runs_of(read_suite(f"superbench: {{benchmarks: {{{benchmarks}}}}}".encode()), MACHINES)
    server = Server(figures, bad, ends)
    server.away = away
    suite = SuiteRun(cast(Any, server), Programs(), "", queue="", most=8, wait_seconds=wait, tell=lambda line: None)
    return suite.run(runs)


def test_the_other_nodes_of_a_suite_go_on() -> None:
    found = outcome("matmul: {}", {"matmul/fp32_flops:0": 7.0, "matmul/return_code": 0})
    assert found.problems == [f"matmul on local/node2: its job {_job(found)} failed and told no figures: it is over."]
    assert found.metrics["local/node2"] == {"matmul/return_code": 1}
    for name in ("local/node1", "local/node3"):
        assert found.metrics[name] == {"matmul/fp32_flops:0": 7.0, "matmul/return_code": 0}
    assert [each.node for each in found.results(MACHINES)] == list(NAMES)


@pytest.mark.parametrize("bad", NAMES)
@pytest.mark.parametrize("ends", [LOST, HANGS, FAILED], ids=["lost", "others-wait-for-it", "failed"])
def test_a_gang_of_which_a_part_told_its_figures_is_no_success(bad: str, ends: Ends) -> None:
    figures = {"all-reduce/largest_bw:0": 3.0, "all-reduce/return_code": 0}
    found = outcome("all-reduce: {}", figures, bad=bad, ends=ends)
    assert found.problems == [
        f"all-reduce on 3 nodes from local/node1 on: its job {_job(found)} failed, so figures are missing: it is over."
    ]
    assert _codes(found) == {name: int(name == bad) for name in NAMES}


def test_a_gang_of_which_no_task_failed_by_itself_is_marked_whole() -> None:
    figures = {"all-reduce/largest_bw:0": 3.0, "all-reduce/return_code": 0}
    found = outcome("all-reduce: {}", figures, ends=Ends(STOP_REQUESTED, others=ATTEMPT_COMPLETED, lost=False))
    assert _codes(found) == dict.fromkeys(NAMES, 1)


def test_a_log_that_cannot_be_read_now_is_asked_for_again_and_at_last_its_node_is_not_measured() -> None:
    figures = {"matmul/fp32_flops:0": 7.0, "matmul/return_code": 0}
    later = outcome("matmul: {}", figures, bad="", away=2)
    assert later.problems == []
    assert [later.metrics[name] for name in NAMES] == [figures] * 3
    never = outcome("matmul: {}", figures, bad="", away=1, wait=-1e6)
    assert never.problems == [
        "matmul on local/node1: its job succeeded, and its log cannot be read: The archive of logs does not answer."
    ]
    assert [never.metrics[name] for name in NAMES] == [{"matmul/return_code": 1}, figures, figures]


def test_a_gang_without_a_loss_has_no_problem() -> None:
    found = outcome("all-reduce: {}", {"all-reduce/largest_bw:0": 3.0, "all-reduce/return_code": 0}, bad="")
    assert found.problems == []
    assert _codes(found) == dict.fromkeys(NAMES, 0)


def _exit(code: int, message: str = "") -> dict[str, Any]:
    return {"code": code, "phrase": "", "class": "", "message": message}


def _codes(found: Outcome) -> dict[str, float]:
    return {name: found.metrics[name]["all-reduce/return_code"] for name in NAMES}


def _job(found: Outcome) -> str:
    """The random name of the job that the one problem tells of."""
    (problem,) = found.problems
    return problem.partition("its job ")[2].partition(" ")[0]
