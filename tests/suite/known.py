"""`python -m tests.suite.known`: exits with 1 when an entry of "Known flaky tests" in docs/testing.md is too old."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from tests.suite import flaky


def main() -> int:
    """Name the entries that are too old; returns the exit code."""
    old = flaky.expired(flaky.entries(flaky.PAGE.read_text()), datetime.now(UTC).date())
    for entry in old:
        print(f"docs/testing.md: {entry.test} is known to be flaky since {entry.since}; mend it and remove the entry.")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
