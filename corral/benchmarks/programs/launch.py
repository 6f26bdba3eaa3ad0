"""The time that a process takes from its start to its end: an empty one, and a Python interpreter."""

from __future__ import annotations

import os
import sys

from corral.benchmarks.programs.given import Given, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return times in milliseconds."""
    repeat = given.parameters["repeat"]

    def start(*argv: str) -> None:
        pid = os.posix_spawn(argv[0], argv, os.environ)
        _, status = os.waitpid(pid, 0)
        if status:
            raise OSError(f"{argv[0]} ended with {os.waitstatus_to_exitcode(status)}")

    return {
        "spawn_time": 1000 * best_seconds(lambda: start("/bin/true"), repeat),
        "python_time": 1000 * best_seconds(lambda: start(sys.executable, "-S", "-c", ""), repeat),
    }
