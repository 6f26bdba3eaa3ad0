"""Plan a cycle and explain waits by a policy, as pure functions of cluster, queue, policy and time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import msgspec

from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.plan import PartFault, Plan, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.explain.other_bounds import with_other_bounds
from corral.scheduler.explain.shortage import never_allowed, why_not
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.cycle import Cycle
from corral.scheduler.planners.builtin.queue_head import LastHead, reservation_of_first
from corral.scheduler.planners.builtin.reason_reports import BEHIND
from corral.scheduler.planners.builtin.refusals import Verdict
from corral.scheduler.policy.call_guard import begin_plan
from corral.scheduler.policy.faults import PartFailed, failed, with_default
from corral.scheduler.policy.order import Order, joint
from corral.scheduler.policy.place import placing
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.question_places import QuestionPlaces
from corral.scheduler.policy.size_targets import SizeTargets
from corral.scheduler.queues.waiting_queue import Entry, Group, Queue

ALIKE = 64
"""The most gangs per shape kept in a queue fork that answers a question about one gang."""
_MANY_PLACES = 32
"""The most places with released resources checked one by one; above it every shape is retried."""
_MOST_REVIEWS = 1000
"""The most reviews that are left out where sizes stay as they are."""
_FEW_SHAPES = 16
_LOOKED_AT_AGAIN = 2


@dataclass
class Memory:
    """A cache between cycles; it saves work and never changes a decision."""

    cluster: Cluster
    policy: Policy
    machine_revision: int
    freed_count: int
    release_count: int
    last_head: LastHead = LastHead()  # noqa: RUF009
    """The head of the last plan, with its reservation."""
    refused: tuple[GangRequest, ...] = ()
    """Without a `reservation`: the gangs, first one first, of which one is the head, if no other gang would fit."""
    seen: tuple[int, int] = (-1, -1)
    """The revisions of cluster and queue at which nothing could be placed."""
    sizes: SizeTargets | None = None
    """The sizes of elastic gangs in the last plan, with what holds of them until the next event."""
    next_look_at: float = inf
    """The time from which a plan may differ even without an event."""
    again_at: float = inf
    """When the next plan is due without an event: `next_look_at`, or the first review after it."""

    @property
    def reservation(self) -> Reservation | None:
        """Return the reservation of the head of the last plan; None if that plan had no use for it."""
        return self.last_head.reservation

    def look_again(self, at: float, due: float = -inf) -> None:
        """Note from when a plan may differ without an event, and when one is due if that is later."""
        self.next_look_at, self.again_at = at, max(at, due)

    def head(self, queue: Queue, now: float) -> Reservation | None:
        """Return the reservation of the head of the last plan; searched now if that plan had no use for it.

        `queue` is the one of the plan.
        """
        if self.reservation is not None or not self.refused:
            return self.reservation
        places = QuestionPlaces(self.policy, self.cluster, queue, now)
        return places.find(lambda: reservation_of_first(Trial(self.cluster), self.refused, now))


def plan(cluster: Cluster, queue: Queue, policy: Policy, now: float) -> Plan:
    """Return the gangs to start now, the gangs to evict, and the reasons why others wait.

    `cluster` and `queue` are left bit for bit as they are. Gangs are handled in the policy's order. Only new reasons
    are returned; they hold whether or not the placements are committed. Default parts take the place of those that
    fail, and the plan says which. `now` is in seconds since 1970.
    """
    jobs = _job_count(cluster, queue)
    cluster.history.contention.note(jobs, now)
    return _plan_without_faults(cluster, queue, policy, now, jobs)


def _plan_without_faults(cluster: Cluster, queue: Queue, policy: Policy, now: float, jobs: int) -> Plan:
    faults: list[PartFault] = []
    begin_plan()
    cluster.history.share = cluster.queues.total[0] / DEVICE / max(1, jobs)
    while True:
        try:
            found = _plan(cluster, queue, policy, now)
        except PartFailed as found_failing:
            fault = found_failing.fault
            if any(fault.part == before.part for before in faults):
                raise  # the default part failed, too
            faults.append(fault)
            policy = with_default(policy, fault.part)
            queue.report_anew()
        else:
            return msgspec.structs.replace(found, faults=tuple(faults)) if faults else found


def _job_count(cluster: Cluster, queue: Queue) -> int:
    """Return how many jobs run or wait to start; O(growing shapes)."""
    return len(cluster.gangs.by_job) + queue.starting


def _prepare(cluster: Cluster, queue: Queue, order: Order, now: float) -> None:
    """Let an order that looks at all gangs together do so; raises PartFailed."""
    if not joint(order) or not (queue.groups or cluster.gangs.by_job):
        return
    found = {job: gang.request for job, gang in cluster.gangs.by_job.items() if gang.request is not None}
    for group in queue.groups.values():
        for entry in group.entries.values() if group.starts else ():
            found.setdefault(entry.request.job, entry.request)
    gangs = [found[job] for job in sorted(found)]
    try:
        cluster.history.prepared = order.prepare(gangs, cluster.queues.total[0] / DEVICE, cluster.history, now)
    except Exception as error:
        raise failed("order", order, error) from error


def _plan(cluster: Cluster, queue: Queue, policy: Policy, now: float) -> Plan:
    """Return the plan; raises PartFailed, without a change, if a part of the policy fails."""
    _prepare(cluster, queue, policy.order, now)
    queue.arrange(policy.order, cluster.history, now, by_user=policy.fair and policy.fair_users)
    memory = _recall(cluster, queue, policy)
    if memory.seen == (cluster.revision, queue.revision) and now < memory.next_look_at:
        return Plan(cluster.revision, again_at=_known(memory.again_at))
    if not queue.groups and not policy.reads_reports and not policy.changes_with_time:
        return _nothing_waits(cluster, queue, memory, inf)
    sizes = memory.sizes = SizeTargets(cluster, queue, policy.allot, now, memory.sizes)
    if sizes.unchanged and memory.seen == (cluster.revision, queue.revision) and _only_sizes_change(policy):
        _review(memory, now, sizes.until, policy.review_seconds)
        return Plan(cluster.revision, again_at=memory.again_at)
    trial = Trial(cluster)
    cycle = Cycle(trial, queue, policy, memory.last_head, now, sizes)
    if not queue.groups and not cycle.shrinks:
        _nothing_waits(cluster, queue, memory, cycle.next_look_at)
        _leave_out_reviews(memory, sizes, policy, now)
        return Plan(cluster.revision, again_at=_known(memory.again_at))
    _reconsider(trial, queue, memory)
    try:
        chosen = placing(policy.place, cluster, queue, now)
        for index in cluster.engines.values() if chosen else ():
            index.place_by(chosen)
        cycle.run()
    finally:
        trial.undo()
        for index in cluster.engines.values():
            if index.placing is not None:
                index.place_by(None)
        cycle.close()
        if memory.reservation is not None:
            memory.reservation.forget()
    queue.expected = {placed.job for placed in cycle.placed}
    memory.last_head, memory.refused = cycle.head.left, tuple(cycle.head.refused)
    memory.freed_count, memory.release_count = cluster.freed_count, cluster.release_count
    settled = not cycle.placed and not cycle.evictions and not cycle.lapsed
    memory.look_again(cycle.next_look_at)
    if settled:
        _leave_out_reviews(memory, sizes, policy, now)
    memory.seen = (cluster.revision, queue.revision) if settled else (-1, -1)
    again = _known(memory.again_at)
    lapsed = tuple(sorted(cycle.lapsed))
    return Plan(cluster.revision, tuple(cycle.placed), cycle.reasons, tuple(cycle.evictions), lapsed, again)


def _leave_out_reviews(memory: Memory, sizes: SizeTargets, policy: Policy, now: float) -> None:
    """Leave out, after a settled plan, the reviews at which sizes certainly stay as they are."""
    if memory.next_look_at < inf and _only_sizes_change(policy):
        _review(memory, now, sizes.until, policy.review_seconds)


def _review(memory: Memory, now: float, until: float, every: float) -> None:
    """Have the next plan be made at the first of the reviews after `now` that is not before `until`."""
    due = now + every
    if until > due:
        due = now + every * ceil(min((until - now) / every, _MOST_REVIEWS))
    memory.look_again(min(max(until, now + every), due), due)


def _only_sizes_change(policy: Policy) -> bool:
    """Return whether time alone can let a gang start or yield only by another size.

    A gang that would delay the head does so later as well, because the time until the head starts only shrinks.
    """
    others_change = policy.order.changes_with_time or policy.place.changes_with_time or policy.fair
    return not (others_change or policy.preemption or policy.consolidation or policy.move_seconds)


def _nothing_waits(cluster: Cluster, queue: Queue, memory: Memory, next_look_at: float) -> Plan:
    queue.expected, memory.last_head = set(), LastHead()
    memory.look_again(next_look_at)
    memory.refused = ()
    memory.freed_count, memory.release_count = cluster.freed_count, cluster.release_count
    memory.seen = (cluster.revision, queue.revision)
    return Plan(cluster.revision, again_at=_known(next_look_at))


def _known(time: float) -> float | None:
    return time if time < inf else None


def explain(cluster: Cluster, queue: Queue, policy: Policy, job: JobId, now: float) -> Reasons | None:
    """Return why a job waits, recomputed with current figures; None if it does not wait.

    A job that the next cycle would start has the code `starts-now`. Bounds beside the binding one are among `others`.
    """
    entry = queue.first(job)
    if entry is None:
        return None
    trial, ahead = Trial(cluster), queue.position(job) or 0
    places = QuestionPlaces(policy, cluster, queue, now)
    fits = places.find(lambda: _fits(trial, entry))
    yielding = policy.preemption and not fits
    if fits and entry.reported is not None and entry.reported.binding.code == BEHIND:
        return msgspec.structs.replace(entry.reported, ahead=ahead)
    if fits or yielding:
        found, reported = foresee(cluster, queue.fork_about(job, ALIKE), policy, job, now)
        if any(placed.job == job for placed in found.placements):
            return Reasons(Reason("starts-now", "It fits and starts in the next cycle."), ahead=ahead)
        if reported is not None:
            return msgspec.structs.replace(with_other_bounds(cluster, entry.request, reported), ahead=ahead)
    reasons = never_allowed(cluster, entry.request) or places.find(lambda: why_not(trial, entry.request, entry.shape))
    return msgspec.structs.replace(with_other_bounds(cluster, entry.request, reasons), ahead=ahead)


def _fits(trial: Trial, entry: Entry) -> bool:
    with trial.tentative():
        return trial.place(entry.request, entry.shape) is not None


def foresee(cluster: Cluster, twin: Queue, policy: Policy, job: JobId, now: float) -> tuple[Plan, Reasons | None]:
    """Return the next plan for a fork of the queue, and why the job waits then.

    The reasons have current figures, but do not say how many gangs are ahead. The fork must not be used afterwards.
    """
    twin.unexplained = False
    entry = twin.first(job)
    if isinstance(twin.memory, Memory):
        twin.memory.seen = (-1, -1)
    if entry is not None:
        group = twin.groups[entry.group]
        entry.reported = group.verdict = None
        group.fresh.add(entry.key)
    prepared = cluster.history.prepared
    try:
        found = _plan_without_faults(cluster, twin, policy, now, _job_count(cluster, twin))
    finally:
        cluster.history.prepared = prepared  # a question changes nothing that the next plan follows
    return found, entry.reported if entry is not None else None


def _recall(cluster: Cluster, queue: Queue, policy: Policy) -> Memory:
    """Return the cache of the last cycle, or a fresh one if machines changed or a placement was not committed."""
    memory = queue.memory
    if (
        not isinstance(memory, Memory)
        or memory.cluster is not cluster
        or memory.policy != policy
        or memory.machine_revision != cluster.machine_revision
        or queue.expected
    ):
        memory = queue.memory = Memory(
            cluster, policy, cluster.machine_revision, cluster.freed_count, cluster.release_count
        )
        for group in queue.groups.values():
            group.verdict = None
    return memory


def _reconsider(trial: Trial, queue: Queue, memory: Memory) -> None:
    """Drop the cached refusals of shapes that may fit where resources were released since the last cycle.

    Other shapes stay refused with the figures of their last check. If there are many of them, a few are rechecked in
    each cycle, oldest figures first.
    """
    cluster = trial.cluster
    firsts = queue.lists.firsts
    for finding in firsts:
        if isinstance(finding.verdict, Verdict) and finding.verdict.valid_for_cycle:
            finding.verdict = None
    if memory.freed_count == cluster.freed_count:
        return
    places = cluster.freed_since(memory.release_count)
    refused: list[tuple[int, Group]] = []
    for finding, group in firsts.items():
        verdict = finding.verdict
        if isinstance(verdict, Verdict) and verdict.reasons.possible:
            request = group.entries[group.keys[0]].request
            if places is None or len(places) > _MANY_PLACES or trial.reaches(request, group.shape, places):
                finding.verdict = None
            else:
                refused.append((verdict.freed_count, group))
    if len(refused) > _FEW_SHAPES:
        refused = sorted(refused, key=lambda found: found[0])[:_LOOKED_AT_AGAIN]
    for _, group in refused:
        group.verdict = None
