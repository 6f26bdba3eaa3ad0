"""A share of time for each job, by tickets: the order `gandiva-fair`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import OrderKey


@dataclass(frozen=True)
class GandivaFair:
    """Equal time for all jobs, whatever their sizes: the job that is most quanta behind its share is next.

    Gandiva-Fair (Chaudhary et al., EuroSys 2020) runs gangs by stride scheduling, with tickets. Here each job has one
    ticket: of the time since its submission it is due the devices over the jobs in the system, at most all of it. How far
    it is behind counts in whole quanta. Sizes do not count, as in the baseline of Shockwave (Zheng et al., NSDI 2023).
    O(log changes of the number of jobs) a gang.
    """

    quantum_seconds: float = 120.0
    """How far two jobs must be apart to take turns; Shockwave's round."""
    changes_with_time: ClassVar[bool] = True

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return the devices of all machines."""
        return devices

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the quanta by which the job is ahead of its share, then the submission time."""
        devices = history.prepared if isinstance(history.prepared, float) else 1.0
        crowd = max(1.0, history.contention.mean(gang.submitted_at, now))
        due = max(0.0, now - gang.submitted_at) * min(1.0, devices / crowd)
        return ((history.service_seconds(gang.job, now) - due) // self.quantum_seconds, gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return the end of the next quantum."""
        return now + self.quantum_seconds
