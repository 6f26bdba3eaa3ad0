"""The final report of a run: timings, flaky tests and the count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from tests.suite import outcomes
from tests.suite.flaky import Entry, entry_of
from tests.suite.outcomes import FAILED, PASSED, SKIPPED, Run, suite_of

SLOWEST: Final = 10


def times(run: Run, whole: float) -> str:
    """Seconds by suite and the slowest tests."""
    counted = Counter(suite_of(test) for test in run.outcomes)
    sums = outcomes.seconds_by(suite_of, run.outcomes.values())
    lines = ["suite                    tests   seconds"]
    lines += [f"{suite:<22} {counted[suite]:>7} {seconds:>9.1f}" for suite, seconds in sums.items()]
    lines += ["", "slowest tests"]
    lines += [f"{each.seconds:>7.1f} s  {each.test}" for each in outcomes.slowest(run.outcomes.values(), SLOWEST)]
    inside = minutes(sum(sums.values()))
    lines += ["", f"{minutes(whole)} in all; tests in their lanes {minutes(run.seconds)}, one by one {inside}"]
    return "\n".join(lines) + "\n"


def minutes(seconds: float) -> str:
    """Seconds as minutes and seconds."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest:02} s"


def flaky(first: Run, unsteady: Mapping[str, str], known: list[Entry]) -> str:
    """Each flaky test with its output in its lane, where it failed, and alone, where it passed (`unsteady`, by test)."""
    pieces = []
    for test, passed in unsteady.items():
        entry = entry_of(test, known)
        since = f"known since {entry.since}: {entry.known}" if entry else "not in docs/testing.md"
        failed = first.outcomes[test].said
        pieces.append(f"flaky: {test} ({since})\nfailed in its lane:\n{failed}\npassed alone:\n{passed}\n")
    return "\n".join(pieces)


def count(first: Run, flaky_ones: int) -> str:
    """The last line; flaky tests have passed in the end."""
    states = first.counts()
    failed = states[FAILED] - flaky_ones + len(first.broken)
    return f"{states[PASSED] + flaky_ones} passed, {failed} failed, {states[SKIPPED]} skipped"
