"""Measure the metrics of assertions on a simulation that was played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf, nan
from typing import Final, NamedTuple

from corral.sim.fairness import ratio_of_each
from corral.sim.results import JobResult
from corral.sim.simulation import Life
from corral.spec.assertions.evaluation import statistic_of
from corral.spec.assertions.syntax import Metric, Size


class Figures(NamedTuple):
    """The figures of some jobs. Times are in seconds; infinite: never; not a number: there are none."""

    jobs: int
    wait_p50: float
    wait_p95: float
    run_mean: float
    utilisation: float
    preemptions: float


class Measurement:
    """The jobs of a simulation that was played to its end.

    A job that never started waits for ever, and one that never ended takes for ever.
    """

    def __init__(self, lives: Sequence[Life], devices: int) -> None:
        """`devices` are those of all machines."""
        self._lives = lives
        self._devices = devices
        self._selections: dict[tuple[str, str, Size | None], list[tuple[int, Life]]] = {}

    @cached_property
    def queues(self) -> list[str]:
        """The queues of the jobs."""
        return sorted({life.job.queue for life in self._lives})

    @cached_property
    def users(self) -> set[str]:
        """The users of the jobs."""
        return {life.job.user for life in self._lives}

    @cached_property
    def never_ended(self) -> int:
        """How many jobs have not ended."""
        return sum(life.result is None for life in self._lives)

    def count(self, metric: Metric) -> int:
        """How many jobs the filters leave."""
        return len(self._selected(metric.queue, metric.user, metric.size))

    def measure(self, metric: Metric) -> float:
        """Return a metric; not a number if no job has it. O(jobs log jobs)."""
        lives = self._selected(metric.queue, metric.user, metric.size)
        if metric.name == "utilisation":
            total = self._devices * self._makespan
            return sum(life.held for _, life in lives) / total if total else nan
        if metric.name == "rho":
            found = [self._rho[number] for number, _ in lives]
        else:
            found = [_VALUES[metric.name](life) for _, life in lives]
        return statistic_of(metric.statistic, sorted(each for each in found if each is not None))

    def figures(self, queue: str) -> Figures:
        """The figures of a queue; "": of all jobs."""
        measured = (
            Metric("wait", "p50", queue), Metric("wait", "p95", queue), Metric("run", "mean", queue),
            Metric("utilisation", "", queue), Metric("preemptions", "sum", queue),
        )  # fmt: skip
        return Figures(self.count(measured[0]), *map(self.measure, measured))

    def _selected(self, queue: str, user: str, size: Size | None) -> list[tuple[int, Life]]:
        """Return the jobs that the filters leave, with their numbers."""
        key = (queue, user, size)
        if key not in self._selections:
            self._selections[key] = [
                (number, life)
                for number, life in enumerate(self._lives)
                if queue in ("", life.job.queue) and user in ("", life.job.user)
                if size is None or life.job.devices in size
            ]
        return self._selections[key]

    @cached_property
    def _ended(self) -> list[JobResult]:
        return [life.result for life in self._lives if life.result is not None]

    @cached_property
    def _makespan(self) -> float:
        return max((result.ended for result in self._ended), default=0.0)

    @cached_property
    def _rho(self) -> list[float | None]:
        ratios = iter(ratio_of_each(self._ended, self._devices))
        return [inf if life.result is None else next(ratios) for life in self._lives]


def _wait(life: Life) -> float:
    return inf if life.started is None else life.started - life.job.submitted


def _run(life: Life) -> float:
    return inf if life.result is None else life.result.ended - life.result.started


def _completion(life: Life) -> float:
    return inf if life.result is None else life.result.completion_seconds


def _slowdown(life: Life) -> float | None:
    return _completion(life) / life.job.seconds if life.job.seconds else None


_VALUES: Final[dict[str, Callable[[Life], float | None]]] = {
    "wait": _wait,
    "run": _run,
    "completion": _completion,
    "slowdown": _slowdown,
    "preemptions": lambda life: float(life.interruptions),
    "lost": lambda life: life.lost * max(1, life.job.devices),
}
