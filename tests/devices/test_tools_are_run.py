"""A vendor's tool is run rarely, for a bounded time, and what it writes is bounded."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.reader import ToolReader, find_reader
from corral.devices.figures.tool_output import output_of


def test_what_a_tool_writes_is_read_up_to_a_bound() -> None:
    assert output_of(["echo", "a b", "$c"]) == b"a b $c\n"
    assert len(output_of(["yes"])) == 4 * 2**20 + 1


def test_a_tool_that_hangs_is_killed_with_its_children() -> None:
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        output_of(["sleep", "300"], seconds=0.2)
    assert time.monotonic() - begun < 60


def test_a_tool_runs_once_in_half_a_minute_and_its_failure_leaves_nothing(tmp_path: Path) -> None:
    now, runs = [0.0], tmp_path / "runs"

    def parse(text: bytes) -> tuple[DeviceFigures, ...]:
        if text != b"1\n":
            raise ValueError("the tool has run twice")
        return (DeviceFigures("amd", 0, use=float(text)),)

    script = f'echo x >> {runs}; wc -l < {runs} | tr -d " "'
    reader = ToolReader(["sh", "-c", script], parse, monotonic=lambda: now[0])
    assert [each.use for each in reader.read()] == [1.0]
    now[0] = 29.0
    assert [each.use for each in reader.read()] == [1.0]
    now[0] = 31.0
    with pytest.raises(ValueError, match="twice"):
        reader.read()
    assert reader.read() == ()


def test_a_machine_without_devices_has_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("corral.devices.figures.nvml.has_driver", lambda: False)
    assert find_reader(tmp_path) is None
