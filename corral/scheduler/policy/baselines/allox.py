"""AlloX as an *allot* part: the jobs and models of device at which the mean completion time is least."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import ClassVar, NamedTuple

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.policy.allot import ElasticGang, Target
from corral.scheduler.policy.gavel.demand import LEAST_SPEED, Demand, capacity, demands, held_by_others
from corral.scheduler.policy.size_targets import of_model
from corral.scheduler.queues.gang_resources import asked


@dataclass(frozen=True)
class AlloX:
    """Waiting jobs are matched to places on all devices so that their mean completion time is least.

    After AlloX (Le et al., EuroSys 2020, sections 3.1 and 3.2). The cost of a job in a place is the time until the device
    is free, plus its own time there times its position from the end of that device's queue. The cheapest matching says on
    which model each job should run, and in which order; a job may wait for a fast device while a slow one is idle. Jobs
    that run keep their devices until they end. The fairness among users of section 3.3 is not part of it: queues and
    their bounds have that. A long job may wait for ever while shorter ones come.

    The paper's jobs use one device. Here a job of s devices counts as s times as long on one. On each model jobs start in
    the order of the matching. The first one that does not fit has a reservation: those behind it start if they end before
    it can start, or leave its devices free (EASY; Lifka, 1995).

    A job that the bounds of its queue refuse now gets no target, and no job waits for devices that it may not have.

    Inputs are the speeds by model and the estimated work that is left, in seconds of the fastest model, as for `gavel`.
    Of the waiting jobs the `most` oldest ones are matched, in O(most³ models log(most)).
    """

    most: int = 256
    """The number of waiting jobs that are matched; the others wait."""
    changes_with_time: ClassVar[bool] = True
    every_gang: ClassVar[bool] = True

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the models of the gangs that run or start now; the others get no task."""
        models, gangs = capacity(cluster), list(gangs)
        found = demands(cluster, gangs, models, inf, now)
        counted = {each.job: each for each in found if each.on >= 0 or not each.stays}
        others = held_by_others(cluster, counted)
        room = [max(0, count - others[model]) for model, count in models.items()]
        names = [*models, ""]
        targets = {each.job: Target(each.tasks, names[each.on]) if _runs(each) else Target(0) for each in found}
        running = [each for each in found if each.on >= 0]
        bounds = _Bounds(cluster, gangs, list(models))
        waiting = [each for each in found if not _runs(each)]
        refused = {each.job for each in waiting if bounds.refuse(each)}
        could = (bounds.within(each) for each in waiting if each.job not in refused)
        matched = list(islice((each for each in could if any(_times(each, room))), self.most))
        targets = {job: target for job, target in targets.items() if job not in refused}
        for job, model in chosen(matched, running, room).items():
            targets[job] = Target(counted[job].tasks, names[model])
        return targets


class _Bounds:
    """What the bounds of queues let waiting gangs have, each of them alone, beside what runs now."""

    def __init__(self, cluster: Cluster, gangs: Iterable[ElasticGang], models: Sequence[str]) -> None:
        self._queues = cluster.queues
        self._models = models
        self._requests = {} if self._queues.plain else {gang.request.job: gang.request for gang in gangs}
        self._known: dict[Hashable, bool] = {}

    def refuse(self, demand: Demand) -> bool:
        """Return whether they refuse a gang on every model; equal gangs are asked about once."""
        request = self._requests.get(demand.job)
        return request is not None and self._refused(request)

    def within(self, demand: Demand) -> Demand:
        """Return a gang that can run only on those models on which they do not refuse it."""
        request = self._requests.get(demand.job)
        if request is None or not self._queues.models:
            return demand
        on = (of_model(request, model) for model in self._models)
        speeds = [0.0 if self._refused(each) else speed for each, speed in zip(on, demand.speeds, strict=True)]
        return demand._replace(speeds=tuple(speeds))

    def _refused(self, request: GangRequest) -> bool:
        ask = asked(request, self._queues)
        key = (request.queue, request.user, request.groups, *ask)
        if key not in self._known:
            self._known[key] = self._queues.refusal(request.queue, request.user, request.groups, ask) is not None
        return self._known[key]


class Release(NamedTuple):
    """Devices of one model that become free."""

    seconds: float
    """From now on."""
    devices: int


def chosen(waiting: Sequence[Demand], running: Sequence[Demand], room: Sequence[int]) -> dict[JobId, int]:
    """Return the position of the model on which each waiting job starts now; jobs that are not in it wait.

    `room` are the devices of each model that these jobs may use, and the `running` ones do.
    """
    releases = [
        [Release(_seconds(each, model), each.devices) for each in running if each.on == model]
        for model in range(len(room))
    ]
    free = [max(0, count - sum(each.devices for each in busy)) for count, busy in zip(room, releases, strict=True)]
    if not any(_fits(each, free) for each in waiting):
        return {}  # whatever the matching is: none starts now
    free_in = [
        [0.0] * count + [each.seconds for each in busy for _ in range(each.devices)]
        for count, busy in zip(free, releases, strict=True)
    ]
    from corral.scheduler.policy.baselines.matching import least_total

    work = [[(time or inf) * each.devices for time in _times(each, room)] for each in waiting]
    by_model: list[list[Demand]] = [[] for _ in room]
    for planned in least_total(work, free_in):
        by_model[planned.model].append(waiting[planned.job])
    return {
        each.job: model
        for model, order in enumerate(by_model)
        for each in _starting(order, model, free[model], releases[model])
    }


def _starting(order: Iterable[Demand], model: int, free: int, busy: Iterable[Release]) -> list[Demand]:
    """Return the jobs that start now on a model with so many free devices, in this order, with EASY backfill."""
    releases, found = list(busy), list[Demand]()
    reserved_at, beside = inf, -1
    for each in order:
        seconds = _seconds(each, model)
        if beside < 0 and each.devices > free:
            reserved_at, beside = _reservation(each.devices, free, releases)
        elif each.devices <= free and (beside < 0 or seconds <= reserved_at or each.devices <= beside):
            if beside >= 0 and seconds > reserved_at:
                beside -= each.devices
            free -= each.devices
            releases.append(Release(seconds, each.devices))
            found.append(each)
    return found


def _reservation(devices: int, free: int, releases: Iterable[Release]) -> tuple[float, int]:
    """Return the seconds until so many devices are free, and how many more there are then."""
    for seconds, count in sorted(releases):
        free += count
        if free >= devices:
            return seconds, free - devices
    return inf, 0


def _runs(demand: Demand) -> bool:
    return demand.on >= 0 or demand.stays


def _fits(demand: Demand, free: Sequence[int]) -> bool:
    return any(speed > 0 and count >= demand.devices for speed, count in zip(demand.speeds, free, strict=True))


def _seconds(demand: Demand, model: int) -> float:
    """Return the seconds that a job needs on a model.

    One may run where it could not start: its program reports no work there, or a device of its node has failed.
    """
    return demand.left / (demand.speeds[model] or LEAST_SPEED)


def _times(demand: Demand, room: Sequence[int]) -> list[float]:
    """Return the seconds that a job needs on each model; 0 where it cannot run."""
    return [
        demand.left / speed if speed > 0 and count >= demand.devices else 0.0
        for speed, count in zip(demand.speeds, room, strict=True)
    ]
