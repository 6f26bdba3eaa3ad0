"""A random order that is the same each time: by a hash of the job's id."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from corral.kernel.draw import draw
from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import OrderKey


@dataclass(frozen=True)
class RandomOrder:
    """A random order of jobs: by a number from 0 to 1 that is a hash of the job's id and the seed, and never changes.

    The same jobs have the same order on every machine. O(1) a gang.
    """

    seed: int = 0
    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the job's number, then the submission time."""
        return (draw(self.seed, gang.job), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf
