"""What `corral usage fairness` prints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from corral.cli import fairness_report
from corral.model.fairness import FairnessReport, FairnessRow, JobFairness, UserFairness

REPORT = FairnessReport(
    "2023-11-06T00:00:00.000Z",
    "2023-11-13T00:00:00.000Z",
    (FairnessRow("lab", 7200.0, 3600.0, 0.5, 1, 60.0, 60.0, 3.0, "j2"),),
    jain=1.0,
    users=(UserFairness("ann", 2, 0.5, 1.8, "j2"),),
    jobs=(JobFairness("j2", "late", "ann", "lab", 4.0, 21_600.0, 7200.0, 1.8),),
    unknown=("Weights are those of now.",),
)


class Client:
    """Answers with the report, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []

    def fairness(self, **asked: str) -> Any:
        self.asked.append(asked)
        return msgspec.to_builtins(REPORT)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()
    monkeypatch.setattr(fairness_report, "connect", lambda: made)
    return made


def printed(*words: str) -> list[list[str]]:
    done = CliRunner().invoke(fairness_report.fairness_command, words, catch_exceptions=False)
    assert done.exit_code == 0
    return [line.split() for line in done.stdout.splitlines() if line]


def test_queues_and_then_users_are_listed(client: Client) -> None:
    lines = printed("--week", "2023-W45")
    assert lines[1] == ["lab", "2.00", "1.00", "0.50", "1", "0:01:00", "0:01:00", "3.00"]
    assert lines[2] == ["USER", "JOBS", "RHO", "P50", "WORST", "RHO", "WORST", "JOB"]
    assert lines[3] == ["ann", "2", "0.50", "1.80", "j2"]
    assert client.asked == [{"week": "2023-W45", "user": ""}]


def test_the_jobs_of_a_user_are_listed_with_theirs(client: Client) -> None:
    lines = printed("--user", "ann")
    assert lines[0] == ["JOB", "NAME", "DEVICES", "TOOK", "NEEDED", "RHO"]
    assert lines[1] == ["j2", "late", "4", "6:00:00", "2:00:00", "1.80"]
    assert client.asked == [{"week": "", "user": "ann"}]
