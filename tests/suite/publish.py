"""`python -m tests.suite.publish BEFORE AFTER`: write the tests' timings into docs/testing.md and `seconds.json`.

Both are files of `python -m tests.suite --outcomes FILE`, or pytest's `--junitxml` of a run without lanes. A test's
seconds are its set-up, call and tear-down; fixtures that many tests share count for the first that needs them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.suite import outcomes
from tests.suite.flaky import PAGE
from tests.suite.lanes import SECONDS
from tests.suite.outcomes import Outcome, Run, file_of, suite_of

_BEGIN: Final = "<!-- written by python -m tests.suite.publish -->"
_END: Final = "<!-- end -->"
_SLOWEST: Final = 50


def main(words: Sequence[str]) -> int:
    """Write both; returns the exit code."""
    before, after = (read(Path(word)) for word in words)
    page = PAGE.read_text()
    head, _, rest = page.partition(_BEGIN)
    tail = rest.partition(_END)[2]
    PAGE.write_text(f"{head}{_BEGIN}\n\n{tables(before, after)}\n{_END}{tail}")
    seconds = outcomes.seconds_by(file_of, after.outcomes.values())
    kept = {file: round(value, 1) for file, value in sorted(seconds.items())}
    SECONDS.write_text(json.dumps(kept, indent=0) + "\n")
    return 0


def read(path: Path) -> Run:
    """A run from either kind of file."""
    return _from_junit(path) if path.suffix == ".xml" else outcomes.read(path)


def tables(before: Run, after: Run) -> str:
    """The sums by suite and the slowest tests of both runs, as Markdown."""
    sums = [_by_suite(run) for run in (before, after)]
    counts = [Counter(suite_of(test) for test in run.outcomes) for run in (before, after)]
    rows = ["| suite | tests before | seconds before | tests | seconds |", "|---|---|---|---|---|"]
    for suite in sorted(set(sums[0]) | set(sums[1]), key=lambda suite: -sums[1].get(suite, 0.0)):
        then, now = (f"{count[suite]} | {each.get(suite, 0.0):.1f}" for count, each in zip(counts, sums, strict=True))
        rows.append(f"| {suite} | {then} | {now} |")
    then, now = (
        f"{len(run.outcomes)} | {sum(each.values()):.1f}" for run, each in zip((before, after), sums, strict=True)
    )
    rows.append(f"| **all, one by one** | {then} | {now} |")
    pieces = ["\n".join(rows)]
    for title, run in (("now", after), ("before", before)):
        slow = outcomes.slowest(run.outcomes.values(), _SLOWEST)
        pieces.append(f"The slowest {_SLOWEST} tests {title}:\n\n" + "\n".join(_rows_of(slow)))
    return "\n\n".join(pieces) + "\n"


def _by_suite(run: Run) -> dict[str, float]:
    return outcomes.seconds_by(suite_of, run.outcomes.values())


def _rows_of(slow: Iterable[Outcome]) -> Iterable[str]:
    yield from ("| seconds | test |", "|---|---|")
    for each in slow:
        name = each.test.removeprefix("tests/").replace("|", "\\|")
        yield f"| {each.seconds:.1f} | `{name[:150]}` |"


def _from_junit(path: Path) -> Run:
    run = Run()
    for case in ElementTree.parse(path).iter("testcase"):
        words = case.get("classname", "").split(".")
        length = next(at for at, word in enumerate(words) if word.startswith("test_")) + 1
        test = "::".join([f"{'/'.join(words[:length])}.py", *words[length:], case.get("name", "")])
        run.outcomes[test] = Outcome(test, seconds=float(case.get("time", "0")))
    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
