"""Bounds on the length of source files, with reasons for the exceptions."""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES, MOST_TEST_LINES, MEDIAN = 600, 800, 200
# path: the reason why it may be longer
ALLOWED: dict[str, str] = {
    "corral/client/schema.py": "generated from the OpenAPI document, which nobody edits here",
    "web/src/api/schema.ts": "generated from the OpenAPI document, which nobody edits here",
}


def sources() -> list[str]:
    """The source files that git knows, new ones included."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.ts", "*.tsx", "*.css"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def lines(path: str) -> int:
    """How many lines a file has."""
    return len((ROOT / path).read_text().splitlines())


def is_test(path: str) -> bool:
    """Whether the larger bound for tests applies."""
    return path.startswith(("tests/", "web/tests/")) or ".test." in path


def test_no_file_is_longer_than_a_person_can_hold_in_mind() -> None:
    long = {
        path: lines(path)
        for path in sources()
        if path not in ALLOWED and lines(path) > (MOST_TEST_LINES if is_test(path) else MOST_LINES)
    }
    assert not long, f"split these, or give a reason in ALLOWED: {long}"


def test_most_files_fit_a_few_screens() -> None:
    counts = [lines(path) for path in sources() if path.startswith("corral/") and lines(path) > 5]
    assert statistics.median(counts) <= MEDIAN


@pytest.mark.parametrize("path", sorted(ALLOWED) or ["none"])
def test_every_exception_is_still_needed(path: str) -> None:
    if path == "none":
        assert not ALLOWED
        return
    assert len(ALLOWED[path].split()) >= 5, f"say why {path} must be so long"
    assert lines(path) > (MOST_TEST_LINES if is_test(path) else MOST_LINES), f"{path} fits now: take it off the list"
