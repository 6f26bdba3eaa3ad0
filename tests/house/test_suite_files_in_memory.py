"""`make check` keeps the files of its tests in memory: how much room there must be, and what killed runs left there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.suite.__main__ import available_memory, forget_killed_runs


def test_files_that_killed_runs_left_in_memory_are_removed(tmp_path: Path) -> None:
    for name, pid in (("crl-gone", "4194999"), ("crl-here", str(os.getpid())), ("crl-odd", "x")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pid").write_text(pid)
    forget_killed_runs(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["crl-here", "crl-odd"]


@pytest.mark.parametrize(
    ("text", "free"), [("MemTotal: 9 kB\nMemAvailable:  3 kB\n", 3072), ("MemTotal: 9 kB\n", 0), ("", 0)]
)
def test_memory_that_programs_can_take_is_read_from_the_kernel(text: str, free: int, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert available_memory(tmp_path / "meminfo") == free
    assert available_memory(tmp_path / "none") == 0
