"""The outcome of each test of a run, and its time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"


@dataclass
class Outcome:
    """One test: its state, the seconds of set-up, call and tear-down together, and its output when it did not pass.

    `lane` is the worker that ran it, to see which tests ran beside each other.
    """

    test: str
    state: str = PASSED
    seconds: float = 0.0
    said: str = ""
    lane: str = ""


@dataclass
class Run:
    """One run of pytest: outcomes by test id, errors of collecting, pytest's exit code, seconds from begin to end."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    code: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> list[str]:
        """The ids of tests that failed, in the order in which they ran."""
        return [outcome.test for outcome in self.outcomes.values() if outcome.state == FAILED]

    def counts(self) -> Counter[str]:
        """The number of tests in each state."""
        return Counter(outcome.state for outcome in self.outcomes.values())


def write(path: Path, run: Run) -> None:
    """Store a run as JSON."""
    path.write_text(json.dumps(asdict(run)))


def read(path: Path) -> Run:
    """A stored run. Raises FileNotFoundError when pytest ended before it could write it."""
    kept = json.loads(path.read_text())
    outcomes = {test: Outcome(**outcome) for test, outcome in kept.pop("outcomes").items()}
    return Run(outcomes, **kept)


def suite_of(test: str) -> str:
    """The suite of a test id: its folder below `tests/`, with `engines/kubernetes` apart from `engines`."""
    folders = test.partition("::")[0].split("/")[1:-1]
    return "/".join(folders) or "tests"


def file_of(test: str) -> str:
    """The path of the file that a test id is in."""
    return test.partition("::")[0]


def seconds_by(key: Callable[[str], str], outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Sums of seconds by what `key` gives for each test id, the largest first."""
    sums: dict[str, float] = {}
    for outcome in outcomes:
        name = key(outcome.test)
        sums[name] = sums.get(name, 0.0) + outcome.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def slowest(outcomes: Iterable[Outcome], count: int) -> Sequence[Outcome]:
    """The tests that took longest."""
    return sorted(outcomes, key=lambda outcome: -outcome.seconds)[:count]
