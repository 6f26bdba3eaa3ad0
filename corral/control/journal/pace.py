"""How fast an elastic job does its work by its size, as its own reports in a journal tell it, or its declared profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from corral.model.runs import WorkReport
from corral.scheduler.policy.goodput import Goodput, fit, with_profile
from corral.scheduler.policy.history import SETTLING_SECONDS, JobHistory


class Size(NamedTuple):
    """What a job holds."""

    devices: int
    """Of a job without devices the tasks."""
    nodes: int


NOTHING = Size(0, 0)
Profile = Sequence[tuple[int, int, float]]
"""Devices, nodes and work per second in any unit, as a job file declares them (`scaling`)."""


class Grounds(Enum):
    """What the speed of a job by size follows from."""

    REPORTS = "reports"
    PROFILE = "profile"
    DEVICES = "devices"
    """It is in proportion to them, as nothing else is known."""


class Pace:
    """The work of a job in a second at each size; only its ratios between sizes mean anything."""

    def __init__(
        self,
        throughput: dict[Size, float] | None = None,
        history: JobHistory | None = None,
        grounds: Grounds = Grounds.REPORTS,
    ) -> None:
        """Without measurements at several sizes, the work is in proportion to the devices."""
        known = throughput if len(throughput or ()) > 1 else None
        self.grounds = Grounds.DEVICES if known is None else grounds
        """What it follows from."""
        self._step = (
            None if known is None else fit({(size.devices, size.nodes): speed for size, speed in known.items()})
        )
        self._goodput = None if history is None or self._step is None else Goodput.of(history, 1, 1)

    def of(self, size: Size) -> float:
        """The work in a second at a size; above 0 where there are devices."""
        if self._goodput is not None:
            return self._goodput.on(size.devices, size.nodes)
        return self.throughput(size)

    def throughput(self, size: Size) -> float:
        """The examples in a second at a size, whatever each is worth."""
        if self._step is None or not size.devices:
            return float(size.devices)
        return size.devices / self._step.at(size.devices, size.nodes)


class FixedPace(Pace):
    """A job that is not elastic: it does as much work in a second as it did, wherever it is."""

    def of(self, size: Size) -> float:
        """1 while anything of it runs."""
        return 1.0 if size.devices else 0.0


@dataclass(slots=True)
class _Mean:
    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.total += value
        self.weight += weight

    @property
    def value(self) -> float | None:
        return self.total / self.weight if self.weight > 0 else None


@dataclass(slots=True)
class Measured:
    """What the reports of a job tell of its speed by size; its memory grows with the sizes alone."""

    _throughput: dict[Size, _Mean] = field(default_factory=dict)
    _progress: dict[Size, _Mean] = field(default_factory=dict)
    """The progress, and the seconds that it took."""
    _noise: _Mean = field(default_factory=_Mean)
    _batch: _Mean = field(default_factory=_Mean)
    """The batch of one device."""
    _last: tuple[float, float, float] | None = None
    """Of the last report of progress: since when the job had its size, when it was, and what it was."""

    def take(self, report: WorkReport, at: float, size: Size, since: float) -> None:
        """Take a report that was made at a size, which the job has since a time.

        As for policies, what is said soon after a change of the size is of no size.
        """
        if not size.devices:
            return
        if report.gradient_noise is not None:
            self._noise.add(report.gradient_noise)
        if report.batch_size is not None:
            self._batch.add(report.batch_size / size.devices)
        if at < since + SETTLING_SECONDS:
            return
        if report.throughput is not None and report.throughput > 0:
            self._throughput.setdefault(size, _Mean()).add(report.throughput)
        if report.progress is not None:
            last, self._last = self._last, (since, at, report.progress)
            if last is not None and last[0] == since and at > last[1] and report.progress > last[2]:
                self._progress.setdefault(size, _Mean()).add(report.progress - last[2], at - last[1])

    def pace(self, profile: Profile = ()) -> Pace:
        """How fast the job is by size: by its goodput, its progress, its declared profile, or in proportion to devices.

        What it reported at one size puts the profile right there, as for policies.
        """
        if len(self._throughput) > 1:
            return Pace(_values(self._throughput), self._history())
        if len(self._progress) > 1 or not profile:
            return Pace(_values(self._progress))
        history = with_profile(self._history(), profile)
        return Pace({Size(*size): speed for size, speed in history.throughput.items()}, history, Grounds.PROFILE)

    def _history(self) -> JobHistory:
        """Return what it reported, as policies see it."""
        known, batch = _values(self._throughput), self._batch.value
        return JobHistory(
            throughput={(size.devices, size.nodes): speed for size, speed in known.items()},
            gradient_noise=self._noise.value,
            batch_size=batch * list(known)[-1].devices if known and batch is not None else None,
        )


def _values(means: dict[Size, _Mean]) -> dict[Size, float]:
    return {size: value for size, mean in means.items() if (value := mean.value) is not None}
