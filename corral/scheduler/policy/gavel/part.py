"""Gavel's policies as *allot* parts: they say which gangs run now, and on which model of device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

from corral.kernel.ids import JobId
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.policy.allot import ElasticGang, Target
from corral.scheduler.policy.gavel.choice import Choice, Running
from corral.scheduler.policy.gavel.demand import (
    Asking,
    Demand,
    as_columns,
    asking,
    capacity,
    demands_at,
    held_by_others,
)

ROUND_SECONDS: Final = 360.0
"""The length of a round in the paper's evaluation."""
PRICES: Final[Mapping[str, float]] = MappingProxyType({"v100": 2.48, "p100": 1.46, "k80": 0.45})
"""Dollars for an hour of a device at Google Cloud, as in Gavel's evaluation."""


class Objective(Protocol):
    """What fractions of time should achieve."""

    @property
    def changes_with_time(self) -> bool:
        """Whether the fractions follow from the age of jobs and their work, and not from speeds and devices alone."""
        ...

    def fractions(self, found: Sequence[Demand], models: Mapping[str, int]) -> Sequence[Sequence[float]]:
        """Return the fractions of time by demand and model; `models` has the devices of each."""
        ...


@dataclass(frozen=True)
class MaxMin:
    """The smallest normalised throughput is largest: least attained service, by what a model is worth to each job."""

    changes_with_time: ClassVar[bool] = False

    def fractions(self, found: Sequence[Demand], models: Mapping[str, int]) -> Sequence[Sequence[float]]:
        """Return the fractions of time by demand and model."""
        from corral.scheduler.policy.gavel.programs import max_min

        speeds, devices = as_columns(found)
        return max_min(speeds, devices, [each.weight for each in found], list(models.values())).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ShortestMakespan:
    """The last of the jobs ends as soon as possible, by the estimates of their work."""

    changes_with_time: ClassVar[bool] = True

    def fractions(self, found: Sequence[Demand], models: Mapping[str, int]) -> Sequence[Sequence[float]]:
        """Return the fractions of time by demand and model."""
        from corral.scheduler.policy.gavel.programs import shortest_makespan

        speeds, devices = as_columns(found)
        return shortest_makespan(speeds, devices, [each.left for each in found], list(models.values())).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class FairFinish:
    """The worst finish-time fairness is best: Themis' measure, by what a model is worth to each job."""

    changes_with_time: ClassVar[bool] = True

    def fractions(self, found: Sequence[Demand], models: Mapping[str, int]) -> Sequence[Sequence[float]]:
        """Return the fractions of time by demand and model."""
        from corral.scheduler.policy.gavel.programs import finish_time_fairness

        speeds, devices = as_columns(found)
        ages, done, left = ([getattr(each, name) for each in found] for name in ("age", "done", "left"))
        return finish_time_fairness(speeds, devices, ages, done, left, list(models.values())).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LowestCost:
    """The most work for the money; devices that are left over are used all the same."""

    prices: Mapping[str, float] = field(default_factory=lambda: PRICES, hash=False)
    """Money for a device and time, by model in lower case; the price of another model is 1."""
    changes_with_time: ClassVar[bool] = False

    def fractions(self, found: Sequence[Demand], models: Mapping[str, int]) -> Sequence[Sequence[float]]:
        """Return the fractions of time by demand and model."""
        from corral.scheduler.policy.gavel.programs import cheapest

        speeds, devices = as_columns(found)
        prices = [self.prices.get(model.lower(), 1.0) for model in models]
        return cheapest(speeds, devices, prices, list(models.values())).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TimeShares:
    """Fractions of time on each model of device, kept by giving and taking devices in rounds (Gavel, OSDI 2020).

    The objective gives the fractions, by the speeds of the jobs on each model. At each plan the jobs that lag most behind
    their fractions are chosen. A job that is not chosen, or chosen for another model, ends as preempted and waits; it
    keeps its devices for a round after its start at least. Elastic gangs run at their smallest size. Gangs without
    devices, with parts of devices, or with several models get no target. O(n m) variables for n jobs on m models in each
    program, and O(n m log(n m)) for the choice.
    """

    objective: Objective = field(default_factory=MaxMin)
    round_seconds: float = ROUND_SECONDS
    """How long a job keeps its devices at least."""
    changes_with_time: ClassVar[bool] = True
    every_gang: ClassVar[bool] = True

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return which gangs run now, on which model; the others get no task."""
        return self.targets_of(self.prepare(cluster, gangs), cluster, now)

    def prepare(self, cluster: Cluster, gangs: Iterable[ElasticGang]) -> TimeSharing:
        """Return the gangs with what they ask for, as far as it changes with events only."""
        models = capacity(cluster)
        found = asking(cluster, gangs, models, self.round_seconds)
        others = held_by_others(cluster, {each.request.job: each for each in found})
        room = {model: max(0, count - others[model]) for model, count in models.items()}
        return TimeSharing(self, found, models, room)

    def targets_of(self, prepared: object, cluster: Cluster, now: float) -> Mapping[JobId, Target]:
        """Return the targets of prepared gangs; the very same mapping while they do not change."""
        assert isinstance(prepared, TimeSharing)
        return prepared.targets(cluster, now)

    def targets_until(self, prepared: object) -> float:
        """Return until when the targets that were given last hold, as far as it is known; in seconds since 1970."""
        assert isinstance(prepared, TimeSharing)
        return prepared.until


class TimeSharing:
    """The gangs between two events: who is chosen changes only by what they receive meanwhile."""

    def __init__(
        self, part: TimeShares, found: Sequence[Asking], models: Mapping[str, int], room: Mapping[str, int]
    ) -> None:
        self._part = part
        self._found = found
        self._models = models
        self._room = room
        self._names = list(models)
        self._choice: Choice | None = None
        """The choice, where the fractions do not change with time."""
        self._chosen: Mapping[JobId, int] = {}
        self._targets: Mapping[JobId, Target] = {}

    def targets(self, cluster: Cluster, now: float) -> Mapping[JobId, Target]:
        """Return which gangs run now, on which model; the very same mapping while that does not change."""
        if not self._found:
            return self._targets
        chosen = self._choice_at(cluster, now).at(now)
        if not self._targets or chosen != self._chosen:
            self._chosen, names = chosen, self._names
            self._targets = {
                job: Target(each.tasks, names[chosen[job]]) if job in chosen else Target(0)
                for each in self._found
                for job in (each.request.job,)
            }
        return self._targets

    @property
    def until(self) -> float:
        """Return until when the targets that were given last hold; below 0 if that is not known."""
        return -inf if self._choice is None else self._choice.until

    def _choice_at(self, cluster: Cluster, now: float) -> Choice:
        if self._choice is not None:
            return self._choice
        part, room = self._part, list(self._room.values())
        if part.objective.changes_with_time:
            demands = demands_at(cluster, self._found, self._models, now)
            return Choice(demands, part.objective.fractions(demands, self._room), room, part.round_seconds)
        begun = demands_at(cluster, self._found, self._models, -inf, with_work=False)
        running = [
            Running(number, each.accrues, inf if each.since is None else each.since, each.leased_until)
            for number, each in enumerate(self._found)
            if each.since is not None or each.leased_until > -inf
        ]
        fractions = part.objective.fractions(begun, self._room)
        self._choice = Choice(begun, fractions, room, part.round_seconds, running)
        return self._choice
