"""The two commands that the README promises, and the help that lists the others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_make_alone_lists_every_target_with_a_line_each() -> None:
    make = shutil.which("make")
    assert make
    listed = subprocess.run([make, "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = re.findall(r"^  make (\S+) +\S.+$", listed.stdout, re.MULTILINE)
    assert len(names) == len(listed.stdout.splitlines())
    assert {"setup", "demo", "up", "down", "test", "lint", "lock", "portal", "bench", "docs", "clean"} <= set(names)


def test_ci_calls_make_test_and_can_be_executed() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1].endswith("make --no-print-directory test")
