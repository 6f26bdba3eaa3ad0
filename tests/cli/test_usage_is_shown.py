"""What `corral usage` prints of devices: used, lost, idle and wasted ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from corral.cli import usage_report
from corral.model.usage import UsageReport, UsageRow

HOUR = 3600.0
ANN = UsageRow(
    "ann", "", 10 * HOUR, 2 * HOUR, 10 * HOUR, measured_task_seconds=10 * HOUR, measured_device_seconds=8 * HOUR,
    used_device_seconds=4 * HOUR, idle_device_seconds=HOUR,
)  # fmt: skip
BOB = UsageRow("bob", "", 4 * HOUR, 0.0, 4 * HOUR, measured_task_seconds=4 * HOUR)


class Client:
    """Answers with one report."""

    def __init__(self, row: UsageRow) -> None:
        self.row = row

    def usage(self, **_: str) -> Any:
        return msgspec.to_builtins(UsageReport("B", "E", "user", self.row, (self.row,)))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None: ...


def printed(monkeypatch: pytest.MonkeyPatch, row: UsageRow, *words: str) -> str:
    monkeypatch.setattr(usage_report, "connect", lambda: Client(row))
    found = CliRunner().invoke(usage_report.usage_command, words)
    assert found.exit_code == 0, found.output
    return found.output


def test_used_lost_idle_and_wasted_device_hours_are_told_with_the_part_that_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = printed(monkeypatch, ANN)
    head, line = text.splitlines()[:2]
    assert head.split()[:8] == ["USER", "DEVICE-HOURS", "USED", "%", "LOST", "IDLE", "WASTED", "%"]
    assert line.split()[:6] == ["ann", "10.00", "50", "2.00", "1.00", "30"]
    assert "The use of devices was measured for 80 % of theirs" in text
    assert "7200.0" in printed(monkeypatch, ANN, "-o", "csv")


def test_devices_whose_use_nobody_measured_have_a_dash_in_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, BOB)
    assert text.splitlines()[1].split()[:4] == ["bob", "4.00", "-", "0.00"]
    assert "measured for" not in text
