"""The page's table of another system's metrics agrees with the table of metrics in code."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from corral.model.metrics.families import FAMILIES

PAGE = Path(__file__).resolve().parents[2] / "docs/monitoring.md"


def rows() -> list[tuple[list[str], str]]:
    text = PAGE.read_text().partition("| OpenPAI's metrics | in Corral |\n")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()[1:]]
    return [(re.findall(r"`([a-z0-9_*]+)`", names), where) for names, where in cells]


def matching(pattern: str) -> list[str]:
    return fnmatch.filter(FAMILIES, pattern)


def test_what_is_said_to_have_its_name_is_told_and_what_is_said_not_to_be_told_is_not() -> None:
    said = rows()
    assert len(said) > 25
    for names, where in said:
        for name in names:
            if "under the same name" in where:
                assert matching(name), name
            elif not name.startswith("node_"):
                assert not matching(name), name


def test_what_stands_for_another_name_is_in_the_table() -> None:
    for _, where in rows():
        for name in re.findall(r"`((?:corral|node|pai|gpu|rocmsmi|DCGM)_[A-Za-z0-9_*]+)[`{]", where):
            assert matching(name), name


def test_every_borrowed_name_is_on_the_page() -> None:
    told = [name for names, _ in rows() for name in names] + ["DCGM_FI_DEV_*"]
    borrowed = [name for name, family in FAMILIES.items() if family.named_by != "Corral"]
    assert [name for name in borrowed if not any(fnmatch.fnmatch(name, each) for each in told)] == []
