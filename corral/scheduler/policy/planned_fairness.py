"""The order `shockwave-program`: future-aware fairness, by the integer programs of Shockwave over the next rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Final

from corral.model.requests import GangRequest
from corral.scheduler.policy.future_fairness import FutureFairness, Schedule
from corral.scheduler.policy.grades import grade
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import OrderKey

_PLANNED, _BESIDE, _OUTSIDE, _NOT_SEEN = 0.0, 1.0, 2.0, 4.0
"""Classes of jobs: planned for this round, beside the plan, not in the program (two classes), and come after it."""
_MOST_DONE: Final = 0.999
"""The most that is taken to be done of a job that runs: nothing more of it would be worth anything."""


@dataclass(frozen=True)
class PlannedFairness(FutureFairness):
    """Future-aware fairness (Shockwave, Zheng et al., NSDI 2023) by its integer programs, solved by HiGHS (scipy).

    Of the next `rounds` rounds each job gets so many that the Nash social welfare of all progress is highest, less a
    price for the longest remaining time. All jobs should end fairly. If they cannot, a late one counts rho ** 12 times
    (rho ** 100 if it ends within a round), at most 10,000 times. A second program has the rounds of each job early
    (`round_program.planned_rounds`). In each round the planned jobs come first. Devices that they leave go to the job
    that needs the longest, in steps of a quarter.

    Of the jobs the `most` ones take part that the market of `shockwave` prefers. The others follow in its order, after
    all that take part. Forecasts, and how long a plan is followed, are those of `FutureFairness`. There are at most
    eight searches of at most 500 nodes, of programs with `most` x `rounds` binary variables.
    """

    most: int = 64

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return the plan that is followed now: the one before, or a new one."""
        before = history.prepared
        if isinstance(before, Schedule) and before.rounds and self.follows(before, gangs, now):
            return before
        from corral.scheduler.policy.round_program import Bidder, Window, planned_rounds

        forecasts = [self.forecast(gang, devices, len(gangs), history, now) for gang in gangs]
        behind = self._market_ranks(forecasts, devices)
        inside = [at for at, each in enumerate(forecasts) if each.devices <= devices]
        inside = sorted(sorted(inside, key=lambda at: (behind[at], gangs[at].submitted_at, at))[: self.most])
        bidders = [
            Bidder(
                each.devices,
                min(each.done, _MOST_DONE),
                each.left,
                each.rho,
                each.fair - each.age,
                each.share,
            )
            for each in (forecasts[at] for at in inside)
        ]
        found = planned_rounds(bidders, Window(int(devices), self.rounds, self.round_seconds))
        rounds = {gangs[at].job: bits for at, bits in zip(inside, found, strict=True)}
        ranks = {
            gang.job: (_BESIDE, -float(grade(forecast.left))) if gang.job in rounds else (_OUTSIDE + kind, place)
            for gang, forecast, (kind, place) in zip(gangs, forecasts, behind, strict=True)
        }
        return Schedule(now, ranks, rounds)

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the job's class in this round, its place in it, and the submission time."""
        prepared = history.prepared
        rank = prepared.ranks.get(gang.job) if isinstance(prepared, Schedule) else None
        if rank is None or not isinstance(prepared, Schedule):
            return (_NOT_SEEN, 0.0, gang.submitted_at)
        if prepared.rounds.get(gang.job, 0) >> self._round(prepared, now) & 1:
            return (_PLANNED, 0.0, gang.submitted_at)
        return (*rank, gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return the end of this round."""
        prepared = history.prepared
        if not isinstance(prepared, Schedule):
            return now + self.round_seconds
        return prepared.made_at + (self._round(prepared, now) + 1) * self.round_seconds

    def _round(self, plan: Schedule, now: float) -> int:
        return max(0, floor((now - plan.made_at) / self.round_seconds + 1e-6))
