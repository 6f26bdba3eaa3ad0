"""Jobs whose speed follows from their placement and their batch size, as measured profiles give it.

A job with a profile may be elastic: it then runs with any number of tasks of one device, and takes the batch size that
brings it on fastest where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from corral.model.runs import WorkReport
from corral.sim.progress import Costs, Progress, Run


class Leg(NamedTuple):
    """A part of a job's work that it does at one speed, on one placement."""

    work: float
    """Seconds that this part takes as the trace has the job."""
    seconds: float
    """Seconds that it takes on this placement; above 0."""
    batch_size: float
    """Examples of one step, of all replicas together."""
    throughput: float
    """Examples per second."""
    gradient_noise: float
    """The gradient noise scale, in examples."""


class Profile(Protocol):
    """How fast one job is by its placement."""

    @property
    def most(self) -> int:
        """Return the most devices that the job can use where it is elastic."""
        ...

    def legs(self, devices: Sequence[int], *, adapts: bool) -> Sequence[Leg]:
        """Return the whole work on so many devices of each node, in order; all `work` is that of the trace's `seconds`.

        A job that `adapts` chooses its batch size; another one keeps that of the trace.
        """
        ...


@dataclass(slots=True)
class ProfiledProgress(Progress):
    """The work of one job with a profile; `legs` are those of the present run."""

    legs: Sequence[Leg] = ()

    def resize(self, now: float, legs: Sequence[Leg], costs: Costs) -> float:
        """Go on at another speed after a change of the placement, which costs as much as a restart.

        Returns when the job ends if nothing else changes.
        """
        if self.running is not None:
            self.done = min(self.seconds, self._reached(self.running, now))
        self.legs = legs
        self.running = Run(now, now + costs.restart, 1.0)
        return now + costs.restart + self._remaining(1.0)

    def report(self, now: float) -> WorkReport:
        """Return what the job says of its work; of its speed only while it does some."""
        part = self.part(now)
        if self.running is None or now <= self.running.work_begins:
            return WorkReport(now, progress=part)
        leg = next(leg for leg, left in self._left(part * self.seconds) if left or leg is self.legs[-1])
        return WorkReport(
            now,
            progress=part,
            throughput=leg.throughput,
            gradient_noise=leg.gradient_noise,
            batch_size=leg.batch_size,
        )

    def _remaining(self, slowdown: float) -> float:
        return slowdown * sum(left * leg.seconds for leg, left in self._left(self.done))

    def _reached(self, run: Run, now: float) -> float:
        passed, reached = max(0.0, now - run.work_begins) / run.slowdown, self.done
        for leg, left in self._left(self.done):
            if passed < left * leg.seconds:
                return reached + leg.work * passed / leg.seconds
            passed -= left * leg.seconds
            reached += left * leg.work
        return self.seconds

    def _left(self, done: float) -> Iterator[tuple[Leg, float]]:
        """Yield each leg with the part of it that is left, when so many seconds of work are done."""
        for leg in self.legs:
            spent = min(leg.work, done)
            done -= spent
            yield leg, 1 - spent / leg.work if leg.work > 0 else 0.0
