"""The runtime is one file that runs without Corral, and equal source gives an equal file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from corral.runtime.build import build_runtime


def test_it_runs_alone(tmp_path: Path) -> None:
    pyz = build_runtime(tmp_path / "runtime.pyz")
    asked = subprocess.run([sys.executable, "-I", "-S", str(pyz)], capture_output=True, text=True, check=False, cwd="/")
    assert asked.returncode == 2 and asked.stderr.startswith("usage: runtime run PLAN | ")


def test_the_same_source_gives_the_same_file(tmp_path: Path) -> None:
    first, second = build_runtime(tmp_path / "a.pyz"), build_runtime(tmp_path / "b.pyz")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pyz", "b.pyz"]
