"""Under CI=true every skipped test fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPS = """
import pytest

def test_skips():
    pytest.skip("the testbed is not here")
"""
MODULE_SKIPS = """
import pytest

pytest.skip("the library is not here", allow_module_level=True)
"""


def run_pytest(folder: Path, text: str, *, ci: str) -> subprocess.CompletedProcess[str]:
    """Run one test file under this project's own conftest."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_one.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-q", str(folder)],
        cwd=folder,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("text", [SKIPS, MODULE_SKIPS], ids=["a test", "a module"])
def test_a_skip_fails_under_ci(tmp_path: Path, text: str) -> None:
    done = run_pytest(tmp_path, text, ci="true")
    assert done.returncode not in {0, 5}
    assert "CI=true forbids that" in done.stdout


@pytest.mark.parametrize("text", [SKIPS, MODULE_SKIPS], ids=["a test", "a module"])
def test_elsewhere_a_skip_is_named_and_passes(tmp_path: Path, text: str) -> None:
    done = run_pytest(tmp_path, text, ci="")
    assert done.returncode in {0, 5}
    assert "1 skipped" in done.stdout
