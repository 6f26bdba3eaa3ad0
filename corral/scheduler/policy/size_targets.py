"""Apply the targets of a policy's *allot* part to the gangs of one cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf

from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.plan import Eviction, Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.policy.allot import Allot, ElasticGang, Target, prepares
from corral.scheduler.policy.faults import failed
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView
from corral.scheduler.queues.gang_resources import with_extra
from corral.scheduler.queues.waiting_queue import Queue


class SizeTargets:
    """The targets of the elastic gangs in one cycle."""

    def __init__(
        self, cluster: Cluster, queue: Queue, allot: Allot, now: float, last: SizeTargets | None = None
    ) -> None:
        """`last` are those of a plan before; what holds until the next event is taken from them.

        Raises PartFailed where the part raises an error.
        """
        self._cluster = cluster
        self._queue = queue
        self._at = (cluster.revision, queue.revision)
        follows = last is not None and last._cluster is cluster and last._queue is queue and last._at == self._at
        self.every_gang = bool(getattr(allot, "every_gang", False))
        """Whether the part decides for gangs that are not elastic, too."""
        gangs = _every(cluster, queue) if self.every_gang else _elastic(cluster, queue)
        self._prepared: object = None
        self.by_job: Mapping[JobId, Target]
        """The targets by job; a gang without one gets as many tasks as room and bounds allow."""
        try:
            if prepares(allot):
                self._prepared = last._prepared if last is not None and follows else allot.prepare(cluster, gangs)
                self.by_job = allot.targets_of(self._prepared, cluster, now)
            else:
                self.by_job = allot.targets(cluster, gangs, now)
        except Exception as error:
            raise failed("allot", allot, error) from error
        self.unchanged = last is not None and follows and self.by_job is last.by_job
        """Whether they are those of the plan before, in the same state of cluster and queue."""
        self.until = allot.targets_until(self._prepared) if hasattr(allot, "targets_until") else -inf
        """Until when they hold without an event, as far as it is known; in seconds since 1970."""
        same = last if self.unchanged else None
        self.surplus: list[list[Victim]] = self._surplus() if same is None else same.surplus
        """For each running gang with more tasks than its target, the tasks that it gives up."""
        self.ending: list[RunningGang] = self._ending() if same is None else same.ending
        """The running gangs that should not run now, or on another model."""

    def limited(self, request: GangRequest) -> GangRequest | None:
        """Return a waiting gang, or growth, with no more tasks than its target; None if it should not grow."""
        target = self.by_job.get(request.job)
        if target is None:
            return request
        gang = self._cluster.gangs.by_job.get(request.job)
        least = sum(role.minimum for role in request.roles)
        more = target.tasks - (_staying(gang) if gang is not None else 0) - least
        if more < 0 or not least + more:
            return None
        return of_model(with_extra(request, more), target.model)

    def whole(self, request: GangRequest) -> GangRequest:
        """Return all of an elastic gang, with no more tasks than its target, for a start elsewhere."""
        target = self.by_job.get(request.job)
        if target is None:
            return request
        least = sum(role.minimum for role in request.roles)
        return of_model(with_extra(request, target.tasks - least), target.model)

    @property
    def may_change(self) -> bool:
        """Return whether a gang runs for which there may be another target later."""
        gangs = self._cluster.gangs
        return bool(gangs.by_job if self.every_gang else gangs.elastic)

    def stopped(self, view: PreemptionView, policy: str) -> list[tuple[Victim, Eviction]]:
        """Return those of the `ending` gangs that may be evicted, with their evictions by the policy of this name."""
        found = []
        for gang in self.ending:
            model = self.by_job[gang.job].model
            what = (
                f"moves it to devices of the model {model}" if model else "gives its devices to other jobs for a time"
            )
            if (victim := view.evictable(gang, Rule.ORDER)) is not None:
                eviction = Eviction(
                    job=gang.job,
                    job_attempt=gang.attempt,
                    rule=Rule.ORDER,
                    message=f"The policy {policy} {what}.",
                    cost_device_seconds=victim.cost,
                )
                found.append((victim, eviction))
        return found

    def _surplus(self) -> list[list[Victim]]:
        return [victims for job in sorted(self.by_job) if (victims := self._beyond(job))]

    def _ending(self) -> list[RunningGang]:
        return [gang for job in sorted(self.by_job) if (gang := self._misplaced(job))] if self.every_gang else []

    def _misplaced(self, job: JobId) -> RunningGang | None:
        gang, target = self._cluster.gangs.by_job.get(job), self.by_job[job]
        if gang is None:
            return None
        return gang if not target.tasks or target.model not in ("", self._cluster.history.model(job)) else None

    def _beyond(self, job: JobId) -> list[Victim]:
        gang = self._cluster.gangs.by_job.get(job)
        if gang is None or not self.by_job[job].tasks:
            return []
        beyond = _staying(gang) - self.by_job[job].tasks
        if beyond <= 0:
            return []
        spare = islice(gang.spare(), beyond)
        return [Victim(gang, Rule.SHRINK, 0.0, (task,)) for task in spare]


def _elastic(cluster: Cluster, queue: Queue) -> Iterator[ElasticGang]:
    """Yield every elastic gang, running ones by queue, then waiting ones in no particular order."""
    for gangs in cluster.gangs.elastic.values():
        for gang in gangs.values():
            if gang.request is not None and gang.stays:
                yield ElasticGang(gang.request, _staying(gang))
    for group in queue.groups.values():
        if group.starts and group.elastic:
            for entry in group.entries.values():
                if entry.request.job not in cluster.gangs.by_job:
                    yield ElasticGang(entry.request, 0)


def _every(cluster: Cluster, queue: Queue) -> Iterator[ElasticGang]:
    """Yield every gang, running ones and then waiting ones; not those that end or grow, or start in several parts."""
    for running in cluster.gangs.by_job.values():
        if running.request is not None and not running.leaving:
            yield ElasticGang(running.request, len(running.charges))
    starting = [
        entry.request
        for group in queue.groups.values()
        if group.starts
        for entry in group.entries.values()
        if entry.request.job not in cluster.gangs.by_job
    ]
    parts = Counter(request.job for request in starting)
    yield from (ElasticGang(request, 0) for request in starting if parts[request.job] == 1)


def _staying(gang: RunningGang) -> int:
    return len(gang.charges) - len(gang.leaving)


def of_model(request: GangRequest, model: str) -> GangRequest:
    """Return the gang with devices of a model in each role that uses devices and names no other."""
    if not model:
        return request
    return structs.replace(
        request,
        roles=tuple(
            structs.replace(role, devices=structs.replace(role.devices, model=model))
            if role.devices.count and not role.devices.model
            else role
            for role in request.roles
        ),
    )
