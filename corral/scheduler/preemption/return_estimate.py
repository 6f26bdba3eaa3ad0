"""Estimate when an evicted gang fits again.

Known facts are the bounded ends of running gangs, of gangs started in this cycle and of the gangs given room. Waiting
gangs ahead of it are ignored, although they may come first. The estimate is part of the plan, so little work is spent
on it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Ending, after_endings
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Trial
from corral.scheduler.preemption.victim_search import Preemption

_MOST_ENDS = 64
"""The most ends considered; later ones count as unknown."""
_MOST_SHAPES = 4
"""The most shapes of evicted gangs searched per cycle."""
_MOVES = (Rule.CONSOLIDATION, Rule.GROW)


class ReturnEstimates:
    """When gangs evicted in one cycle fit again."""

    def __init__(self, preemption: Preemption, now: float) -> None:
        self._preemption = preemption
        self._now = now
        self._known: dict[Hashable, float | None] = {}

    def back_at(self, gang: RunningGang, tasks: Collection[TaskKey], rule: Rule, by: GangRequest) -> float | None:
        """Return the time by which the gang, or these tasks of it, fit again; None if unknown.

        A moved gang already has a place, so it gets the current time. Gangs of one shape get the same answer in a
        cycle.
        """
        if rule in _MOVES:
            return self._now
        request = _asks_again(gang, tasks)
        if request is None:
            return None
        key = (gang_shape(request), by.max_duration_seconds)
        if key not in self._known:
            self._known[key] = self._search(request) if len(self._known) < _MOST_SHAPES else _end_of(by, self._now)
        return self._known[key]

    def _search(self, request: GangRequest) -> float | None:
        trial = self._preemption.trial
        with self._preemption.future():
            ends = _ends(trial.cluster, self._preemption.view.evicted)
            return _soonest(trial, request, self._now, ends + trial.placed_endings() + self._preemption.endings())


def likely_back(cluster: Cluster, job: JobId, tasks: Collection[TaskKey], now: float) -> float | None:
    """Return when a gang that must leave these tasks' nodes fits there again or elsewhere; None if unknown.

    Only the tasks are considered if the gang can spare them, else the whole gang. Nothing is changed.
    """
    gang = cluster.gangs.by_job.get(job)
    if gang is None:
        return None
    spared = tasks if set(tasks) <= set(gang.spare()) else ()
    request, gone = _asks_again(gang, spared), set(spared or gang.charges)
    if request is None:
        return None
    trial = Trial(cluster)
    with trial.tentative():
        trial.lift_leaving()
        trial.lift({job: gone})
        return _soonest(trial, request, now, _ends(cluster, {job: gone}))


def _soonest(trial: Trial, request: GangRequest, now: float, endings: list[tuple[float, list[Ending]]]) -> float | None:
    with trial.tentative():
        if trial.place(request) is not None:
            return now
    known = sorted((ending for ending in endings if ending[1]), key=lambda ending: ending[0])
    found = after_endings(trial, request, now, known[:_MOST_ENDS])
    return None if found is None else found.start


def _ends(cluster: Cluster, evicted: Mapping[JobId, set[TaskKey]]) -> list[tuple[float, list[Ending]]]:
    """Return the known ends, soonest first, without tasks that are terminating already."""
    nothing: set[TaskKey] = set()
    return [
        (at, cluster.allocations(job, without=cluster.gangs.by_job[job].leaving | evicted.get(job, nothing)))
        for at, job in cluster.ends[:_MOST_ENDS]
    ]


def _end_of(by: GangRequest, now: float) -> float | None:
    return now + by.max_duration_seconds if by.max_duration_seconds else None


def _asks_again(gang: RunningGang, tasks: Collection[TaskKey]) -> GangRequest | None:
    """Return the request of a gang after its eviction: everything it asked for, or only these tasks."""
    request = gang.request
    if request is None or not tasks:
        return None if request is None else structs.replace(request, beside=())
    gone = set(tasks)
    roles = []
    for role in request.roles:
        indexes = tuple(index for index in role.indexes if TaskKey(role.role, index) in gone)
        if indexes:
            roles.append(structs.replace(role, indexes=indexes, minimum=len(indexes)))
    return structs.replace(request, roles=tuple(roles)) if roles else None
