"""The order `shockwave`: future-aware fairness, by a market over the next rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import msgspec

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.policy.gavel.demand import MOST_SECONDS
from corral.scheduler.policy.grades import grade
from corral.scheduler.policy.history import History
from corral.scheduler.policy.market import Market, Trader
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.regime_estimate import predicted_seconds
from corral.scheduler.policy.service_orders import device_count

_FINE: Final = 2.0**46
"""A power of two: the grades of gains reach down to 2 ** -46."""
_MUST_RUN, _BY_GAIN, _NOT_SEEN = 0.0, 1.0, 2.0
"""Classes of jobs: those that the makespan waits for, the others, and those that came after the market."""


class Forecast(NamedTuple):
    """What is predicted of a job; times in seconds."""

    devices: int
    age: float
    """Since its submission."""
    left: float
    """The service that it still needs, above 0; at most ten years, as programs report any fraction as their progress."""
    fair: float
    """From its submission to its fair finish."""
    share: float
    """The part of the time for which an equal share lets it run, above 0 to 1."""
    done: float
    """The part of its work that is done, from 0 to 1: as reported, else by the service received."""

    @property
    def rho(self) -> float:
        """Return its finish time on an equal share from now on over its fair finish time."""
        return (self.age + self.left / self.share) / self.fair


class Schedule(msgspec.Struct, frozen=True):
    """What was decided about the next rounds; it is followed until the jobs change, at least for a round."""

    made_at: float
    ranks: Mapping[JobId, tuple[float, float]]
    """The class of each job, and its place in it, lowest first."""
    rounds: Mapping[JobId, int] = {}
    """The rounds in which each job is to run, as bits (`PlannedFairness`): bit r is round r. The market says none."""


@dataclass(frozen=True)
class FutureFairness:
    """Future-aware fairness (Shockwave, Zheng et al., NSDI 2023): the jobs that a market prefers in the next rounds.

    Jobs that need about half of the next `rounds`, or more, for the shortest makespan come first
    (`Market.needed_rounds`). The others follow by what a second of theirs adds to the Nash social welfare of all finish
    times (`Trader.gain`), the highest first, in steps of a quarter. A job counts rho ** `late_power` times. Rho is its
    finish time on an equal share from now on, over its fair one. The fair one is all its predicted service, divided by the
    equal share: the devices over the jobs in the system, at most 1. Of their number, the mean since the job's submission
    counts 0.9 and the present one 0.1. A job's rho grows while it waits, and its gain with it.

    The decision is followed for `followed` rounds, or until jobs come or go, but at least for one round. Remaining work is
    predicted from reports, by batch size (`predicted_seconds`). There are no random numbers and no solver:
    O(jobs x (roles + log rounds)) a decision.
    """

    rounds: int = 20
    """The horizon."""
    round_seconds: float = 120.0
    followed: int = 8
    """For how many rounds a decision is followed while no job comes or goes."""
    late_power: float = 2.0
    unknown_seconds: float = 600.0
    """The least service that a job without any estimate is taken to need; little, so that it is tried early and reports."""
    changes_with_time: ClassVar[bool] = True

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return the decision that is followed now: the one before, or a new one."""
        before = history.prepared
        if isinstance(before, Schedule) and not before.rounds and self.follows(before, gangs, now):
            return before
        forecasts = [self.forecast(gang, devices, len(gangs), history, now) for gang in gangs]
        ranks = self._market_ranks(forecasts, devices)
        return Schedule(now, {gang.job: rank for gang, rank in zip(gangs, ranks, strict=True)})

    def follows(self, before: Schedule, gangs: Sequence[GangRequest], now: float) -> bool:
        """Return whether a decision still holds: for `followed` rounds, or for one if jobs came or went since."""
        followed = self.followed if before.ranks.keys() == {gang.job for gang in gangs} else 1
        return 0 <= now - before.made_at < followed * self.round_seconds

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the job's class, its place in it, and the submission time."""
        prepared = history.prepared
        rank = prepared.ranks.get(gang.job) if isinstance(prepared, Schedule) else None
        return (*(rank or (_NOT_SEEN, 0.0)), gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return the end of the next round."""
        return now + self.round_seconds

    def forecast(self, gang: GangRequest, devices: float, count: int, history: History, now: float) -> Forecast:
        """Return what is predicted of a job, one of `count` in the system."""
        known = history.of(gang.job, now)
        left = min(MOST_SECONDS, predicted_seconds(gang, known, self.unknown_seconds))
        done = known.service_seconds / (known.service_seconds + left) if known.progress is None else known.progress
        crowd = 0.9 * history.contention.mean(gang.submitted_at, now) + 0.1 * count
        return Forecast(
            devices=int(device_count(gang)),
            age=max(0.0, now - gang.submitted_at),
            left=left,
            fair=(known.service_seconds + left) * max(1.0, crowd / max(1.0, devices)),
            share=min(1.0, max(1.0, devices) / count),
            done=min(1.0, done),
        )

    def _market_ranks(self, forecasts: Sequence[Forecast], devices: float) -> list[tuple[float, float]]:
        """Return the class of each job in the market, and its place in it, lowest first."""
        traders = [self._trader(each) for each in forecasts]
        needed = Market(devices, self.rounds, self.round_seconds).needed_rounds(traders)
        return [self._rank(trader, rounds, devices) for trader, rounds in zip(traders, needed, strict=True)]

    def _rank(self, trader: Trader, rounds: int, devices: float) -> tuple[float, float]:
        """Return the class of a job that needs so many rounds, and its place in it.

        Half of the horizon is kept as a reserve, less for a job that uses much of the machines: it leaves little idle when
        it runs alone at last.
        """
        if 2 * rounds >= self.rounds * (1 + trader.devices / max(1.0, devices)):
            return (_MUST_RUN, 0.0)
        return (_BY_GAIN, -float(grade(_FINE * trader.gain)))

    def _trader(self, forecast: Forecast) -> Trader:
        return Trader(forecast.devices, forecast.age, forecast.left, forecast.rho**self.late_power)
