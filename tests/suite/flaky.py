"""Flaky tests (failed, then passed alone): the known ones in docs/testing.md, and the suites that may have none."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from tests.suite.outcomes import file_of, suite_of

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "testing.md"
MOST: Final = 3
"""Most flaky tests with which a run may still be green."""
OLDEST: Final = timedelta(days=14)
STEADY: Final = frozenset({"kernel", "spec", "model", "scheduler", "launcher", "frameworks", "service", "store"})
"""Suites whose tests may never be flaky: the pure packages, the service and the store.

In `frameworks` that holds for the rendering of commands, not for files with tests that run a real library (marked
`frameworks`).
"""
_HEADING: Final = "## Known flaky tests"
_ROW: Final = re.compile(r"^\| `(?P<test>[^`]+)` \| (?P<since>\d{4}-\d{2}-\d{2}) \| (?P<known>.+?) \|$")


@dataclass(frozen=True)
class Entry:
    """A known flaky test: its id without parameters, the date of its entry, and the known cause."""

    test: str
    since: date
    known: str


class BadPage(ValueError):
    """The table of known flaky tests cannot be read."""


def entries(text: str) -> list[Entry]:
    """The rows under "Known flaky tests" in the text of docs/testing.md. Raises BadPage."""
    if text.count(_HEADING) != 1:
        raise BadPage(f"docs/testing.md has no section {_HEADING!r}")
    section = text.partition(_HEADING)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    found = []
    for row in rows:
        match = _ROW.match(row)
        if match is None:
            raise BadPage(f"docs/testing.md, known flaky tests: a row is `test` | YYYY-MM-DD | cause, not {row}")
        found.append(Entry(match["test"], date.fromisoformat(match["since"]), match["known"]))
    return found


def expired(known: list[Entry], today: date) -> list[Entry]:
    """The entries that are older than 14 days."""
    return [entry for entry in known if today - entry.since > OLDEST]


def entry_of(test: str, known: list[Entry]) -> Entry | None:
    """The entry of a test id, ignoring parameters."""
    return next((entry for entry in known if entry.test == test.partition("[")[0]), None)


def is_steady(test: str) -> bool:
    """Whether this test may never be flaky."""
    return suite_of(test) in STEADY and not _runs_a_library(ROOT / file_of(test))


@functools.cache
def _runs_a_library(file: Path) -> bool:
    return file.is_file() and "pytest.mark.frameworks" in file.read_text()


def objections(flaky: list[str], known: list[Entry]) -> list[str]:
    """The reasons why a run with these flaky tests is not green, one sentence each."""
    found = []
    if len(flaky) > MOST:
        found.append(f"{len(flaky)} tests are flaky; a green run has at most {MOST}.")
    for test in flaky:
        if is_steady(test):
            found.append(f"{test} is flaky; a test of {suite_of(test)} may never be.")
        elif entry_of(test, known) is None:
            found.append(f"{test} is flaky and not in docs/testing.md: enter it with the date and the cause, if known.")
    return found
