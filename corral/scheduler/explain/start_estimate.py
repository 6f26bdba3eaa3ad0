"""Estimate when a waiting job starts, and state the assumptions behind the estimate.

With few jobs the scheduler is simulated forward (`Forecast`). With many, only known facts are used: the head's
reservation (`backfill`) or the known ends of running jobs. No estimate is given where it would take too long to
compute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from corral.kernel.ids import JobId
from corral.kernel.units import counted
from corral.model.plan import Reasons
from corral.model.start_estimates import Basis, Estimate
from corral.scheduler.backfill import Reservation
from corral.scheduler.cells.owned_placement import place_best
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.events import FOREVER
from corral.scheduler.explain.question import GracePeriods, at_once
from corral.scheduler.forecast import Forecast
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.planning import Memory
from corral.scheduler.planners.builtin.reason_reports import BEHIND
from corral.scheduler.planners.planner import Planner
from corral.scheduler.queues.waiting_queue import Entry, Queue

MOST_WAITING = 512
"""The most waiting gangs for which the future is simulated."""
MOST_RUNNING = 2048
"""The most running gangs for which the future is simulated."""
_LOOKS_COST = 131_072
_FEWEST_LOOKS, _MOST_LOOKS = 640, 8192
"""Bounds on the waiting shapes examined over all cycles of a simulation; larger clusters get fewer."""
_MOST_ENDS = 64
_MOST_ENDLESS = 512
_MOST_NAMED = 3
_ASSUMED = "Assumes that every running job uses its full maxDuration"


def estimate(
    planner: Planner, job: JobId, reasons: Reasons, now: float, grace_periods: GracePeriods = at_once
) -> Estimate | None:
    """Return when a waiting job is likely to start and the assumptions; None if it does not wait.

    `reasons` are why it waits; `grace_periods` gives the grace period of an evicted job in seconds. Nothing is changed.
    """
    cluster, queue = planner.cluster, planner.queue
    entry = queue.first(job)
    if entry is None:
        return None
    sure = sure_estimate(entry, reasons, now)
    if sure is not None:
        return sure
    if len(queue) <= MOST_WAITING and len(cluster.gangs.by_job) <= MOST_RUNNING:
        found = _played(Forecast(planner, now, grace_periods), job, now)
        if found.basis is not Basis.NOT_BEFORE or head_job(queue, now) != job:
            return found
    return _certain(cluster, queue, entry, now)


def sure_estimate(entry: Entry, reasons: Reasons, now: float) -> Estimate | None:
    """Return the estimate for a gang that needs no look into the future; None if its start depends on others."""
    settled = settled_estimate(reasons, now)
    if settled is not None:
        return settled
    if not any(role.minimum for role in entry.request.roles):
        said = "Not estimated: the job runs, and it grows only after every waiting job has started."
        return Estimate(Basis.NOT_ESTIMATED, said)
    if reasons.binding.code in ("bad-hardware", "cordoned", "engine-unknown"):
        return Estimate(Basis.UNKNOWN, "Unknown: the nodes that it needs are cordoned or out of order.")
    return None


def settled_estimate(reasons: Reasons, now: float) -> Estimate | None:
    """Return the estimate for a job that starts now or never; None if its start depends on others."""
    code = reasons.binding.code
    if code == "starts-now":
        return Estimate(Basis.NOW, "It fits and starts in the next cycle.", now)
    if not reasons.possible:
        return Estimate(Basis.NEVER, f"It can never start: {_never(code)}.")
    return None


def _never(code: str) -> str:
    """Say which bound or machine limit keeps a gang from ever starting."""
    if code == "queue-limit":
        return "a limit is below what it needs; ask for less, use another queue, or have the limit raised"
    if code == "no-nodes":
        return "there are no machines yet"
    return "the machines cannot hold it even when empty; ask for less, or have machines added"


def _played(forecast: Forecast, job: JobId, now: float) -> Estimate:
    """Simulate cycles until one starts the job, within the bound on the work."""
    first = head_job(forecast.queue, now) in (None, job)
    nodes = sum(len(index.tree.nodes) for index in forecast.cluster.engines.values())
    looks, begun = max(_FEWEST_LOOKS, min(_MOST_LOOKS, _LOOKS_COST // (1 + nodes))), False
    while looks > 0:
        looks -= 1 + len(forecast.queue.groups)
        found = forecast.cycle()
        if any(placed.job == job for placed in found.placements):
            return placed_estimate(forecast.now, forecast.ended, first=first, now=now)
        if not begun:
            begun, first = True, head_job(forecast.queue, forecast.now) == job
        if not found.placements and not found.evictions and not forecast.advance():
            entry = forecast.queue.first(job)
            assert entry is not None
            cluster, queue = forecast.cluster, forecast.queue
            return endless_estimate(cluster, queue, entry, entry.reported, forecast.now, forecast.started)
    return cut_estimate(forecast.now)


def placed_estimate(at: float, ended: Sequence[JobId], *, first: bool, now: float) -> Estimate:
    """Return the estimate of a gang that the simulation starts `at` a time, when those jobs have `ended`.

    `first`: nobody else is at the head of the queue.
    """
    if at <= now:
        return Estimate(Basis.EXPECTED, "It starts as soon as the jobs before it are placed.", now)
    named = _named(ended)
    whose = f"when {named} {'end' if len(ended) > 1 else 'ends'}" if named else "when protections end"
    if first:
        message = f"It is first in the queue order and starts {whose}. {_ASSUMED}."
        return Estimate(Basis.AT_LATEST, message, at, tuple(ended))
    message = f"It starts {whose}. {_ASSUMED} and no new job arrives."
    return Estimate(Basis.EXPECTED, message, at, tuple(ended))


def cut_estimate(at: float) -> Estimate:
    """Return the estimate of a gang that still waits where the simulation ends."""
    return Estimate(Basis.NOT_BEFORE, f"The forecast ends at this time, and the job still waits. {_ASSUMED}.", at)


def _certain(cluster: Cluster, queue: Queue, entry: Entry, now: float) -> Estimate:
    """Estimate the start of one gang among many from known ends alone."""
    memory = queue.memory
    head = memory.head(now) if isinstance(memory, Memory) and memory.cluster is cluster else None
    if head is not None and head.job == entry.request.job:
        return _of_head(cluster, head)
    many = f"{counted(len(queue), 'job')} wait and {len(cluster.gangs.by_job)} run, too many for a forecast"
    found = _alone(cluster, entry, now)
    if found is None:
        message = f"Not estimated: {many}. No known end of a running job makes room for it."
        return Estimate(Basis.NOT_ESTIMATED, message)
    at, after = found
    if at <= now:
        return Estimate(Basis.NOT_ESTIMATED, f"Not estimated: {many}.")
    ended = f"{_named(after)} {'end' if len(after) > 1 else 'ends'}"
    message = f"It starts after {ended} at the earliest: {many}. {_ASSUMED} and no job is preempted for it."
    return Estimate(Basis.NOT_BEFORE, message, at, after)


def _of_head(cluster: Cluster, head: Reservation) -> Estimate:
    if head.start >= FOREVER:
        holders = _holding(cluster, head)
        named = _named(holders)
        who = f"{named} in its place" if named else "the holder of its place"
        verb = "have" if len(holders) > 1 else "has"
        return Estimate(Basis.UNKNOWN, f"Unknown: {who} {verb} no maxDuration.", after=holders)
    last = tuple(job for at, job in cluster.ends if at == head.start)
    named = _named(last) or "the job in its place"
    message = (
        f"It is first in the queue order and starts when {named} {'end' if len(last) > 1 else 'ends'}. {_ASSUMED}."
    )
    return Estimate(Basis.AT_LATEST, message, head.start, last)


def _holding(cluster: Cluster, head: Reservation) -> tuple[JobId, ...]:
    """Return the jobs without a known end on the nodes of the head's reserved place."""
    ending = {job for _, job in cluster.ends}
    nodes = {cluster.engines[need.engine].tree.nodes[need.wanted.at].name for need in head.needs}
    return tuple(
        job
        for job in sorted(cluster.gangs.by_job)
        if job not in ending and any(hold.node in nodes for hold in cluster.holds(job).values())
    )


def _alone(cluster: Cluster, entry: Entry, now: float) -> tuple[float, tuple[JobId, ...]] | None:
    """Return when the gang would fit if it were first, and the last job that must end before.

    None if the next known ends do not make room.
    """
    ends, trial = cluster.ends[:_MOST_ENDS], Trial(cluster)
    found = _shortest([[job] for _, job in ends], trial, entry)
    if found is None:
        return None
    if not found:
        return now, ()
    return max(now, ends[found - 1][0]), (ends[found - 1][1],)


def _shortest(gone: Sequence[Sequence[JobId]], trial: Trial, entry: Entry) -> int | None:
    """Return how many of the first entries must end for the gang to fit; None if all of them are not enough."""

    def fits(count: int) -> bool:
        with trial.tentative():
            for jobs in gone[:count]:
                for job in jobs:
                    for index, allocation in trial.cluster.allocations(job):
                        index.lift(allocation)
            return place_best(trial, entry.request, entry.shape) is not None

    low, high = -1, len(gone)
    if not fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def endless_estimate(
    cluster: Cluster, queue: Queue, entry: Entry, reported: Reasons | None, now: float, started: Collection[str]
) -> Estimate:
    """Report that no further event is known, and name the jobs without a known end that are in a gang's way.

    `reported` is why it waits at that time, `now`; `started` are the jobs that started before in the simulation.
    """
    job, who, head = entry.request.job, "it", head_job(queue, now)
    if reported is not None and reported.binding.code == BEHIND and head is not None:
        first = queue.first(head)
        if first is not None and head != job:
            entry, reported, who = first, first.reported, f"it is behind job {head}, which"
    culprits = _culprits(cluster, entry, reported)
    if culprits:
        before = " before it in the queue order" if all(each in started for each in culprits) else ""
        verb = "have" if len(culprits) > 1 else "has"
        message = f"Unknown: {who} waits for {_named(culprits)}{before}, which {verb} no maxDuration."
        return Estimate(Basis.UNKNOWN, message, after=culprits)
    return Estimate(Basis.UNKNOWN, "Unknown: no known end of a running job makes room for it.")


def _culprits(cluster: Cluster, entry: Entry, reported: Reasons | None) -> tuple[JobId, ...]:
    """Return jobs without a known end, oldest first, until their ends make room for the gang."""
    ending = {job for _, job in cluster.ends}
    request = entry.request
    endless = [gang for gang in cluster.gangs.by_job.values() if gang.job not in ending and gang.job != request.job]
    if reported is not None and reported.binding.code.endswith("-limit"):
        user = reported.binding.code == "user-limit"
        endless = [gang for gang in endless if gang.user == request.user or not user]
        return tuple(gang.job for gang in sorted(endless, key=_oldest) if gang.queue == request.queue)
    endless = sorted(endless, key=_oldest)[:_MOST_ENDLESS]
    trial = Trial(cluster)
    shortest = _shortest([[gang.job] for gang in endless], trial, entry)
    if not shortest:
        return ()
    return tuple(_needed([gang.job for gang in endless[:shortest]], trial, entry))


def _needed(jobs: list[JobId], trial: Trial, entry: Entry) -> Iterator[JobId]:
    """Yield those of the jobs that share a node with the place that the gang would get."""
    with trial.tentative():
        for job in jobs:
            for index, allocation in trial.cluster.allocations(job):
                index.lift(allocation)
        allocations = trial.allocations(entry.request, place_best) or []
    nodes = {index.tree.nodes[allocation.at].name for index, allocation in allocations}
    for job in jobs:
        if any(hold.node in nodes for hold in trial.cluster.holds(job).values()):
            yield job


def _oldest(gang: RunningGang) -> tuple[float, JobId]:
    return gang.placed_at, gang.job


def head_job(queue: Queue, now: float) -> JobId | None:
    """Return the job at the head of the queue, according to the last cycle."""
    memory = queue.memory
    head = memory.head(now) if isinstance(memory, Memory) else None
    return None if head is None else head.job


def _named(jobs: Sequence[JobId]) -> str:
    """Name some jobs: `job a`, `jobs a and b`, `jobs a, b and 3 others`."""
    if not jobs:
        return ""
    rest = len(jobs) - _MOST_NAMED
    named = [*jobs[:_MOST_NAMED]] + ([counted(rest, "other")] if rest > 0 else [])
    listed = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"{'jobs' if len(jobs) > 1 else 'job'} {listed}"
