"""What a measurement is told, and how it is timed."""

from __future__ import annotations

import time
from typing import Any, NamedTuple


class NotMeasurable(Exception):
    """What is to be measured is not there, which is no fault; the message is a sentence."""


ALONE = "Bandwidth between processes is not measured: there is only one."
"""Why a collective of one process is not measured."""


class Given(NamedTuple):
    """What a measurement is told."""

    rank: int
    size: int
    """How many processes there are in all tasks."""
    local_rank: int
    addresses: tuple[str, ...]
    """HOST:PORT of each task, in the order of ranks."""
    parameters: dict[str, int]
    models: tuple[str, ...]

    @property
    def first(self) -> bool:
        """Whether it is the process that tells the results of all."""
        return self.rank == 0


def best_seconds(run: Any, times: int) -> float:
    """Seconds of the fastest of some runs, after one that does not count."""
    run()
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
    return max(best, 1e-9)
