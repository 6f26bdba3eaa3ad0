"""A journal of a simulation that several commands read."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.main import run

TRACE = "submitted,seconds,devices\n0,3600,8\n10,3600,8\n20,600,8\n"


@pytest.fixture(scope="package")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three jobs that need all devices, under `fifo`."""
    folder = tmp_path_factory.mktemp("journal")
    (folder / "trace.csv").write_text(TRACE)
    made = folder / "made.journal"
    words = ["sim", "run", "--trace", str(folder / "trace.csv"), "--cluster", "1x8", "--policy", "fifo"]
    assert run([*words, "--journal", str(made)]) == 0
    return made
