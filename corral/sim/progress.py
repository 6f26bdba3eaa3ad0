"""How far the work of each job has come: what its runs did, what interruptions lost, and what a start costs.

A job has work for `TraceJob.seconds`. A run does one second of it in a second if its nodes are as few as can be, and
slower by `Costs.scatter` for each level of the topology by which it is spread wider. An interruption loses what was done
since the last checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Costs:
    """What interruptions and placements cost, in seconds unless said otherwise."""

    restart: float = 0.0
    """From a start after an interruption to the first second of work."""
    checkpoint: float = 0.0
    """Between two checkpoints; 0: nothing is ever lost."""
    scatter: float = 0.1
    """By what part of itself work takes longer for each level: more nodes than needed, more than one rack."""

    def longest(self, seconds: float) -> float:
        """Return how long one run of a whole job may take."""
        return self.restart + seconds * (1 + 2 * self.scatter)


class Run(NamedTuple):
    """One run of a job on its devices."""

    begun: float
    work_begins: float
    slowdown: float
    """Seconds that a second of work takes."""


@dataclass(slots=True)
class Progress:
    """The work of one job."""

    seconds: float
    """All of its work."""
    done: float = 0.0
    runs: int = 0
    lost: float = 0.0
    """Seconds of work that were done and have to be done again."""
    running: Run | None = None

    def begin(self, now: float, slowdown: float, costs: Costs) -> float:
        """Begin a run; return when it ends if nothing interrupts it."""
        waits = costs.restart if self.runs else 0.0
        self.runs += 1
        self.running = Run(now, now + waits, slowdown)
        return now + waits + self._remaining(slowdown)

    def interrupt(self, now: float, costs: Costs) -> None:
        """End a run before its time; an equal second call changes nothing."""
        run, self.running = self.running, None
        if run is None:
            return
        reached = self._reached(run, now)
        kept = reached if not costs.checkpoint else max(self.done, reached // costs.checkpoint * costs.checkpoint)
        self.lost += reached - kept
        self.done = min(kept, self.seconds)

    def finish(self, now: float) -> None:
        """End a run that was not interrupted."""
        run, self.running = self.running, None
        if run is not None:
            self.done = min(self.seconds, self._reached(run, now))

    def part(self, now: float) -> float:
        """Return the part of its work that is done, from 0 to 1, with what the present run has done until now."""
        reached = self.done if self.running is None else self._reached(self.running, now)
        return min(1.0, reached / self.seconds) if self.seconds else 1.0

    def _remaining(self, slowdown: float) -> float:
        """Return the seconds that the rest of the work takes."""
        return (self.seconds - self.done) * slowdown

    def _reached(self, run: Run, now: float) -> float:
        return self.done + max(0.0, now - run.work_begins) / run.slowdown

    @property
    def complete(self) -> bool:
        """Whether all of the work is done, but for a rounding error."""
        return self.seconds - self.done <= 1e-6 * max(1.0, self.seconds)


def slowdown(nodes: int, fewest: int, racks: int, costs: Costs) -> float:
    """Return the seconds that a second of work takes on this many nodes and racks, where `fewest` nodes would do."""
    return 1 + costs.scatter * ((nodes > fewest) + (racks > 1))
