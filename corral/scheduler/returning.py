"""Why: whoever has to yield is told when it is likely back: when known ends make room for it, or that nobody knows.

What is known are the bounds of what runs, of what starts in this cycle and of whoever it makes room for; who waits in
line before it may come first. The answer is part of the plan, so little work is spent on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Ending, after_endings
from corral.scheduler.gangs import Running
from corral.scheduler.preempting import Preemption
from corral.scheduler.shapes import gang_shape

_MOST_ENDS = 64
"""Later ends are as good as unknown."""
_MOST_SHAPES = 4
"""So many shapes of gangs that yield are looked at in a cycle."""
_MOVES = (Rule.CONSOLIDATION, Rule.GROW)


class Returns:
    """When gangs that yield in one cycle find room again."""

    def __init__(self, preemption: Preemption, now: float) -> None:
        self._preemption = preemption
        self._now = now
        self._known: dict[Hashable, float | None] = {}

    def back_at(self, gang: Running, tasks: Sequence[TaskKey], rule: Rule, by: GangRequest) -> float | None:
        """When the gang, or these tasks of it, fit again at the latest that is known; None: nobody knows.

        A gang that moves has a place already; others of the same shape are told the same in one cycle.
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
            with trial.supposing():
                if trial.place(request) is not None:
                    return self._now
            found = after_endings(trial, request, self._now, self._endings())
        return None if found is None else found.start

    def _endings(self) -> list[tuple[float, list[Ending]]]:
        """What ends at a known time and was not told to end before, soonest first."""
        trial, told = self._preemption.trial, self._preemption.rules.told
        cluster = trial.cluster
        ends = [(at, self._staying(job, told.get(job, set()))) for at, job in cluster.ends[:_MOST_ENDS]]
        ends += trial.placed_endings() + self._preemption.endings()
        return sorted((ending for ending in ends if ending[1]), key=lambda ending: ending[0])[:_MOST_ENDS]

    def _staying(self, job: JobId, told: set[TaskKey]) -> list[Ending]:
        cluster = self._preemption.trial.cluster
        return cluster.takes(job, without=cluster.gangs.by_job[job].leaving | told)


def _end_of(by: GangRequest, now: float) -> float | None:
    return now + by.max_duration_seconds if by.max_duration_seconds else None


def _asks_again(gang: Running, tasks: Sequence[TaskKey]) -> GangRequest | None:
    """What a gang waits for once it has yielded: all that it asked for, or just these tasks."""
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
