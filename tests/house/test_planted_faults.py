"""The planted faults name lines as they are, so that a run of them plants each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = tomllib.loads((ROOT / "tests" / "suite" / "planted.toml").read_text())["fault"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["file"])
def test_a_planted_line_stands_once_in_its_file(fault: dict[str, Any]) -> None:
    assert (ROOT / fault["file"]).read_text().count(fault["was"]) == 1


def test_there_are_forty() -> None:
    assert len(FAULTS) == 40
