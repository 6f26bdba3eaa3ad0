"""Say when a waiting job starts, and state the assumptions: what is sure now, and what a simulated course found.

Control's forecast (`control/forecast`) plays the courses.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from corral.kernel.ids import JobId
from corral.kernel.units import counted
from corral.model.plan import Reasons
from corral.model.requests import GangRequest
from corral.model.start_estimates import Basis, Estimate
from corral.scheduler.cells.owned_placement import place_best
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.planning import Memory
from corral.scheduler.planners.builtin.reason_reports import BEHIND
from corral.scheduler.policy.question_places import QuestionPlaces
from corral.scheduler.queues.waiting_queue import Entry, Queue

_MOST_ENDLESS = 512
_MOST_NAMED = 3
_ASSUMED = "Assumes that every running job uses its full maxDuration"


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


def _shortest(
    gone: Sequence[Sequence[JobId]], trial: Trial, request: GangRequest, shape: Hashable | None
) -> int | None:
    """Return how many of the first entries must end for the gang to fit; None if all of them are not enough."""

    def fits(count: int) -> bool:
        with trial.tentative():
            for jobs in gone[:count]:
                for job in jobs:
                    for index, allocation in trial.cluster.allocations(job):
                        index.lift(allocation)
            return place_best(trial, request, shape) is not None

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
    memory = queue.memory
    if isinstance(memory, Memory):
        request = (memory.sizes.limited(entry.request) if memory.sizes else None) or entry.request
        places = QuestionPlaces(memory.policy, cluster, queue, now)
        culprits = places.find(lambda: _culprits(cluster, entry, request, reported))
    else:
        culprits = _culprits(cluster, entry, entry.request, reported)
    if culprits:
        before = " before it in the queue order" if all(each in started for each in culprits) else ""
        verb = "have" if len(culprits) > 1 else "has"
        message = f"Unknown: {who} waits for {_named(culprits)}{before}, which {verb} no maxDuration."
        return Estimate(Basis.UNKNOWN, message, after=culprits)
    return Estimate(Basis.UNKNOWN, "Unknown: no known end of a running job makes room for it.")


def _culprits(cluster: Cluster, entry: Entry, request: GangRequest, reported: Reasons | None) -> tuple[JobId, ...]:
    """Return jobs without a known end, oldest first, until their ends make room for the gang.

    `request` is what the gang may have: its own one, or as many tasks on the model that the policy allots it.
    """
    ending = {job for _, job in cluster.ends}
    endless = [gang for gang in cluster.gangs.by_job.values() if gang.job not in ending and gang.job != request.job]
    if reported is not None and reported.binding.code.endswith("-limit"):
        user = reported.binding.code == "user-limit"
        endless = [gang for gang in endless if gang.user == request.user or not user]
        return tuple(gang.job for gang in sorted(endless, key=_oldest) if gang.queue == request.queue)
    endless = sorted(endless, key=_oldest)[:_MOST_ENDLESS]
    trial = Trial(cluster)
    shape = entry.shape if request is entry.request else None
    shortest = _shortest([[gang.job] for gang in endless], trial, request, shape)
    if not shortest:
        return ()
    return tuple(_needed([gang.job for gang in endless[:shortest]], trial, request))


def _needed(jobs: list[JobId], trial: Trial, request: GangRequest) -> Iterator[JobId]:
    """Yield those of the jobs that share a node with the place that the gang would get."""
    with trial.tentative():
        for job in jobs:
            for index, allocation in trial.cluster.allocations(job):
                index.lift(allocation)
        allocations = trial.allocations(request, place_best) or []
    nodes = {index.tree.nodes[allocation.at].name for index, allocation in allocations}
    for job in jobs:
        if any(hold.node in nodes for hold in trial.cluster.holds(job).values()):
            yield job


def _oldest(gang: RunningGang) -> tuple[float, JobId]:
    return gang.placed_at, gang.job


def head_job(queue: Queue, now: float) -> JobId | None:
    """Return the job at the head of the queue, according to the last cycle."""
    memory = queue.memory
    head = memory.head(queue, now) if isinstance(memory, Memory) else None
    return None if head is None else head.job


def _named(jobs: Sequence[JobId]) -> str:
    """Name some jobs: `job a`, `jobs a and b`, `jobs a, b and 3 others`."""
    if not jobs:
        return ""
    rest = len(jobs) - _MOST_NAMED
    named = [*jobs[:_MOST_NAMED]] + ([counted(rest, "other")] if rest > 0 else [])
    listed = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"{'jobs' if len(jobs) > 1 else 'job'} {listed}"
