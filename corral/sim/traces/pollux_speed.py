"""The speed of Pollux' jobs by placement and batch size, with the throughput and gradient noise that they can report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.sim.profiled import Leg
from corral.sim.traces.pollux_profiles import KINDS, MOST_NODES, Application, Placement
from corral.sim.traces.pollux_split import NODE_GPUS, filled, split

MOST_GPUS: Final = MOST_NODES * NODE_GPUS


class Pace(NamedTuple):
    """How fast an application is in one epoch."""

    progress: float
    """Progress a second, in steps at the smallest batch size."""
    size: int
    """The batch size of all replicas."""
    throughput: float
    """Examples a second."""
    noise: float
    """The gradient noise scale, in examples: that of the smallest batch size times variance over squared norm."""


class Paces:
    """The paces of one application on all placements, each computed once."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.of = cache(self._of)

    def _of(self, placement: Placement, size: int) -> tuple[Pace, ...] | None:
        """Return the pace of each epoch with a batch size, or with the fastest one for 0; None where nothing is profiled.

        O(epochs x batch sizes).
        """
        timed = [
            found
            for each in ([size] if size else self.application.kind.sizes())
            if (found := self._step(placement, each))
        ]
        if not timed:
            return None
        epochs = range(self.application.kind.epochs)
        return tuple(max(self._pace(epoch, *each) for each in timed) for epoch in epochs)

    def _step(self, placement: Placement, size: int) -> tuple[int, float] | None:
        """Return the batch size that the replicas really have, and the seconds of its step."""
        replicas = sum(placement)
        accumulate = size > self.application.kind.smallest
        atomic, passes = split(size, replicas, self.application, accumulate=accumulate)
        try:
            step, sync = self.application.step_times(placement, atomic)
        except InvalidInput as error:
            if error.code != "pollux-profile":
                raise
            return None
        seconds = step + (step - sync) * passes
        return (replicas * atomic * (passes + 1), seconds) if seconds > 0 and isfinite(seconds) else None

    def _pace(self, epoch: int, size: int, seconds: float) -> Pace:
        smallest = self.application.kind.smallest
        sqr, var = self.application.gradient(size, epoch)
        gain = (var + sqr) / (var / (size / smallest) + sqr)
        return Pace(gain / seconds, size, size / seconds, smallest * var / sqr if sqr > 0 else 0.0)


@dataclass(frozen=True)
class PolluxProfile:
    """How fast one job of a workload is by its placement: a `Profile`."""

    paces: Paces
    size: int
    """The batch size that the workload gives it."""
    replicas: int

    @property
    def most(self) -> int:
        """Return the most devices: as many as the largest batch size feeds; one for `ncf`, as in Pollux' simulator."""
        application = self.paces.application
        if application.kind is KINDS["ncf"]:
            return 1
        return min(MOST_GPUS, application.kind.largest // application.least_local)

    def legs(self, devices: Sequence[int], *, adapts: bool) -> Sequence[Leg]:
        """Return the epochs on so many devices of each node; what is more than 4 on a node counts as on further nodes.

        Of devices that were not profiled together, the last ones are idle. Raises InvalidInput where not even one is known.
        """
        usual = self.paces.of(filled(self.replicas), self.size)
        here = next(
            (found for each in _ever_fewer(devices) if (found := self.paces.of(each, 0 if adapts else self.size))),
            usual,
        )
        if here is None or usual is None:
            raise InvalidInput("pollux-profile", f"On {self.replicas} replicas the profile gives no time.")
        application, legs = self.paces.application, []
        for epoch, (pace, alone) in enumerate(zip(here, usual, strict=True)):
            work = max(0.0, application.progress(epoch + 1) - application.progress(epoch))
            legs.append(Leg(work / alone.progress, work / pace.progress, pace.size, pace.throughput, pace.noise))
        return legs


def _ever_fewer(devices: Sequence[int]) -> Iterator[Placement]:
    """Yield the placement on so many devices of each node, then without its last device, and so on."""
    parts = [part for count in devices for part in filled(count)]
    while parts:
        yield tuple(sorted(parts))
        parts[-1] -= 1
        if not parts[-1]:
            parts.pop()
