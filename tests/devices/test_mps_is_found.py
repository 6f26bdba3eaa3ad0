"""A Multi-Process Service counts only while its control daemon is alive."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.devices.mps import daemon_runs

MPS = "nvidia-cuda-mps"


def daemon(root: Path, pid: str = "41", name: str = "nvidia-cuda-mps\n", *, pipe: bool = True) -> bool:
    """Whether a daemon that leaves these files counts as running."""
    (root / "mps").mkdir()
    (root / "mps" / "nvidia-cuda-mps-control.pid").write_text(pid)
    (root / "proc" / "41").mkdir(parents=True)
    (root / "proc" / "41" / "comm").write_text(name)
    if pipe:
        (root / "mps" / "control").touch()
    return daemon_runs(root / "mps", root / "proc")


def test_a_living_daemon_with_its_pipe_is_found(tmp_path: Path) -> None:
    assert daemon(tmp_path)


@pytest.mark.parametrize(
    ("pid", "name", "pipe"),
    [("42", MPS, True), ("41", "bash", True), ("x", MPS, True), ("41", MPS, False)],
)
def test_what_a_daemon_left_behind_does_not_count(tmp_path: Path, pid: str, name: str, pipe: bool) -> None:
    assert not daemon(tmp_path, pid, name, pipe=pipe)


def test_no_folder_is_no_daemon(tmp_path: Path) -> None:
    assert not daemon_runs(tmp_path / "nothing")
