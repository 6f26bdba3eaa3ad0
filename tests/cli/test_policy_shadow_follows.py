"""`corral policy shadow --follow`: each hour is shown once, when it is over, and the report at the end."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from corral.cli import policy_shadow
from corral.cli.policy_shadow import Run
from corral.cli.progress import StatusLine
from corral.control.core.driver import Work
from corral.control.journal.folder import JournalFolder
from corral.control.journal.records import encoded
from corral.control.shadow.comparison import Question
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FolderSource
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.shadow.shadows import FIFO, records_of

HOUR = 3600.0


def test_each_hour_is_shown_once_and_then_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Journaled(FIFO, nodes=1)
    for number in range(12):
        seconds = 2000 - 150 * number
        played.submit(f"job-{number}", 0.0, devices=4, work=Work(float(seconds)), maxDuration=seconds + 1)
    played.run(4 * HOUR)
    written = JournalFolder(tmp_path / "journal", most_bytes=10**9, most_seconds=1e9)
    for each in records_of(played):
        written.add(encoded(each), BEGIN)
    written.close()
    said: list[str] = []
    stopped = Event()
    clock = [BEGIN]

    def later() -> float:
        """Each look at the clock is twenty minutes after the one before; Ctrl-C comes after four hours."""
        clock[0] += 1200.0
        if BEGIN + 4 * HOUR < clock[0] <= BEGIN + 4 * HOUR + 1200.0:
            stopped.set()
        return clock[0]

    monkeypatch.setattr(policy_shadow, "time", SimpleNamespace(time=later))
    monkeypatch.setattr(policy_shadow, "say", said.append)
    monkeypatch.setattr(stopped, "wait", lambda seconds: None)
    monkeypatch.setattr("os.nice", lambda more: 0)
    question = Question(CandidateRules("srtf"), "srtf", BEGIN)
    report = Run(FolderSource(tmp_path / "journal"), question, BEGIN + 1e9).followed(stopped, StatusLine())
    hours = [each.split()[1].rstrip(":,") for each in said]
    assert len(hours) == len(set(hours)) >= 3, said
    assert report.total.in_force.started == report.total.candidate.started == 12
    assert report.total.decisions.otherwise and len(report.hours) >= len(said)
