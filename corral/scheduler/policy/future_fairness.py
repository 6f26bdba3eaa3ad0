"""The order `shockwave`: future-aware fairness, by a market over the next rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Final, NamedTuple

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.policy.grades import grade
from corral.scheduler.policy.history import History
from corral.scheduler.policy.market import Market, Trader
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.regime_estimate import predicted_seconds
from corral.scheduler.policy.service_orders import device_count

_MOST_JOBS: Final = 1000
"""The jobs of one market, which bounds the time of a plan; later submitted ones come after all of them."""
_FINE: Final = 2.0**40
"""A power of two: the grades of rho over seconds reach down to 2 ** -40."""
_HIGHEST_RATIO: Final = 10.0
"""Above this rho all jobs are equally late."""
_ALWAYS, _PLANNED, _SPARE, _LATER = 0.0, 1.0, 2.0, 3.0
"""Classes of jobs: every round of the horizon, some rounds that are not over yet, none left, and not in the market."""


class Forecast(NamedTuple):
    """What is predicted of a job; times in seconds."""

    devices: int
    age: float
    """Since its submission."""
    received: float
    """Its service so far."""
    left: float
    """The service that it still needs, above 0."""
    fair: float
    """From its submission to its fair finish."""
    share: float
    """The part of the time for which an equal share lets it run, above 0 to 1."""

    @property
    def rho(self) -> float:
        """Return its finish time on an equal share from now on over its fair finish time, at most 10."""
        return min(_HIGHEST_RATIO, (self.age + self.left / self.share) / self.fair)

    def rounds_to_be_fair(self, horizon: float, round_seconds: float) -> int:
        """Return the rounds that it needs within the horizon (seconds) to end in time on an equal share after it."""
        late = self.age + horizon + self.left / self.share - self.fair
        return max(0, ceil(late * self.share / round_seconds - 1e-9))


class _Turn(NamedTuple):
    """What a job got in the market."""

    level: float
    rank: float
    """Its place in its class, lowest first."""
    spare_rank: float
    """Its place among those that have no rounds left."""
    until: float
    """The service at which its rounds are over."""


class _Schedule(NamedTuple):
    """What the market decided; it is followed until the jobs change, at least for a round."""

    made_at: float
    jobs: frozenset[JobId]
    turns: Mapping[JobId, _Turn]


@dataclass(frozen=True)
class FutureFairness:
    """Future-aware fairness (Shockwave, Zheng et al., NSDI 2023): the jobs to which a market gives the next rounds.

    A market (`Market`) divides the next `rounds` among the jobs that run and wait. It maximises the sum of the logarithms
    of their progress, less a weight times the longest remaining time. All jobs must be able to end by their fair finish
    times. Where they cannot, a job whose predicted rho is above 1 counts `rho ** late_power` times. Rho is a job's finish
    time on an equal share from now on, over its fair one. The fair one is all its predicted service, divided by the equal
    share: the devices over the jobs in the system, at most 1. Of their number, the mean since the job's submission counts
    0.9 and the present one 0.1.

    Jobs with every round come first. Then come those that have rounds left, by the square of rho over the remaining time,
    the highest first (weighted shortest processing time, Smith 1956). The others come last, the longest first. The
    division is followed for `followed` rounds, or until jobs come or go, but at least for one round. Remaining work is
    predicted from reports, by batch size (`predicted_seconds`). There are no random numbers and no solver:
    O(jobs × rounds × (rounds + log jobs)) a division, with at most 1,000 jobs.
    """

    rounds: int = 20
    """The horizon."""
    round_seconds: float = 120.0
    followed: int = 8
    """For how many rounds a division is followed while no job comes or goes."""
    makespan_weight: float = 1e-3
    late_power: float = 12.0
    unknown_seconds: float = 600.0
    """The least service that a job without any estimate is taken to need; little, so that it is tried early and reports."""
    changes_with_time: ClassVar[bool] = True

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return the division that is followed now: the one before, or a new one."""
        before, jobs = history.prepared, frozenset(gang.job for gang in gangs)
        if isinstance(before, _Schedule):
            followed = self.followed if before.jobs == jobs else 1
            if 0 <= now - before.made_at < followed * self.round_seconds:
                return before
        chosen = sorted(gangs, key=lambda gang: (gang.submitted_at, gang.job))[:_MOST_JOBS]
        forecasts = [self.forecast(gang, devices, len(gangs), history, now) for gang in chosen]
        division = self.division(forecasts, devices)
        turns = {
            gang.job: self._turn(each, rounds) for gang, each, rounds in zip(chosen, forecasts, division, strict=True)
        }
        return _Schedule(now, jobs, turns)

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the job's class, its place in it, and the submission time."""
        turn = self._turn_of(gang, history)
        if turn is None:
            return (_LATER, 0.0, gang.submitted_at)
        if turn.level == _PLANNED and history.service_seconds(gang.job, now) >= turn.until:
            return (_SPARE, turn.spare_rank, gang.submitted_at)
        return (turn.level, turn.rank, gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return when the rounds of a running job are over, or the end of the next round."""
        turn = self._turn_of(gang, history)
        rest = turn.until - history.service_seconds(gang.job, now) if turn is not None else 0.0
        return now + (min(rest, self.round_seconds) if rest > 0 else self.round_seconds)

    def forecast(self, gang: GangRequest, devices: float, count: int, history: History, now: float) -> Forecast:
        """Return what is predicted of a job, one of `count` in the system."""
        known = history.of(gang.job, now)
        left = predicted_seconds(gang, known, self.unknown_seconds)
        crowd = 0.9 * history.contention.mean(gang.submitted_at, now) + 0.1 * count
        return Forecast(
            devices=int(device_count(gang)),
            age=max(0.0, now - gang.submitted_at),
            received=known.service_seconds,
            left=left,
            fair=(known.service_seconds + left) * max(1.0, crowd / max(1.0, devices)),
            share=min(1.0, max(1.0, devices) / count),
        )

    def division(self, forecasts: Sequence[Forecast], devices: float) -> list[int]:
        """Return the rounds of each job: with fair finish times for all, else with more weight on late jobs."""
        market = Market(devices, self.rounds, self.round_seconds, self.makespan_weight)
        horizon = self.rounds * self.round_seconds
        needs = [each.rounds_to_be_fair(horizon, self.round_seconds) for each in forecasts]
        fair = market.division([_trader(each, 1.0, least) for each, least in zip(forecasts, needs, strict=True)])
        if fair is not None:
            return fair
        weighted = [_trader(each, max(1.0, each.rho) ** self.late_power, 0) for each in forecasts]
        return market.division(weighted) or [0] * len(forecasts)

    def _turn(self, forecast: Forecast, rounds: int) -> _Turn:
        until = forecast.received + rounds * self.round_seconds
        spare_rank = -float(grade(forecast.left))
        if rounds >= self.rounds:
            return _Turn(_ALWAYS, 0.0, spare_rank, until)
        rank = -float(grade(_FINE * forecast.rho**2 / forecast.left))
        return _Turn(_PLANNED, rank, spare_rank, until)

    def _turn_of(self, gang: GangRequest, history: History) -> _Turn | None:
        prepared = history.prepared
        return prepared.turns.get(gang.job) if isinstance(prepared, _Schedule) else None


def _trader(forecast: Forecast, weight: float, least: int) -> Trader:
    done = forecast.received / (forecast.received + forecast.left)
    return Trader(forecast.devices, done, forecast.left, weight, least)
