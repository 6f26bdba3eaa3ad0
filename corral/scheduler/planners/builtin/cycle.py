"""One scheduling cycle: each waiting gang gets a place, victims that make room for it, or the reason why it waits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from math import inf

from corral.kernel.ids import JobId
from corral.kernel.units import counted
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Reason, Reasons, Rule
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation
from corral.scheduler.cells.owned_placement import owner_of, place_best, place_owned
from corral.scheduler.explain.shortage import only_whether_possible, why_not
from corral.scheduler.placement.bulk import place_alike
from corral.scheduler.placement.room_check import has_room
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Placer, Trial
from corral.scheduler.planners.builtin.eviction_message import evictions
from corral.scheduler.planners.builtin.group_walk import Run, Walk
from corral.scheduler.planners.builtin.queue_head import LastHead, QueueHead
from corral.scheduler.planners.builtin.reason_reports import BEHIND, YIELDING, Reports
from corral.scheduler.planners.builtin.refusals import Refusals, RefusedGang, Verdict
from corral.scheduler.policy.order import QueueKey
from corral.scheduler.policy.place import Tightest
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.size_targets import SizeTargets
from corral.scheduler.preemption.consolidation import Migrations
from corral.scheduler.preemption.return_estimate import ReturnEstimates
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.victim_search import Preemption
from corral.scheduler.queues.gang_resources import asked, placed_amounts, smallest, starts_anew, with_extra
from corral.scheduler.queues.group_lists import GroupList
from corral.scheduler.queues.queue_order import QueueOrder
from corral.scheduler.queues.queue_tree import Refusal
from corral.scheduler.queues.waiting_queue import Entry, Group, Queue

ALLOTTED = "allotted"
"""The reason code of an elastic gang that has as many tasks as the policy allots it."""


class Cycle:
    """One pass over the queue: nominated gangs first, then all others in order, opportunistic ones and growth last."""

    def __init__(
        self,
        trial: Trial,
        queue: Queue,
        policy: Policy,
        last: LastHead,
        now: float,
        targets: SizeTargets,
    ) -> None:
        self.trial = trial
        self.queue = queue
        self.policy = policy
        self.now = now
        self.placed: list[GangPlacement] = []
        self.evictions: list[Eviction] = []
        self.reasons: dict[str, Reasons] = {}
        self._charged: list[tuple[GangRequest, Sequence[int]]] = []
        self._preemption = Preemption(trial, queue.lists.queues, policy, now)
        placed_until = partial(_placed_until, self._preemption, self._charged, now)
        self.head = QueueHead(
            trial, now, last, cluster_decides=isinstance(policy.place, Tightest), placed_until=placed_until
        )
        self.lapsed: set[JobId] = set()
        """The nominated gangs that lost their nomination because others came first."""
        self._targets = targets
        self._queues = trial.cluster.queues
        self._plain = self._queues.plain and not policy.preemption and not targets.by_job
        """Whether nothing but room decides which gangs start: no bound of a queue, no target, no preemption."""
        self._done: set[QueueKey] = set()
        self._claimed = False
        """Whether gangs have a result of their own before the walk through the queue."""
        self._order: QueueOrder | None = None
        self._refusals = Refusals()
        self._explain = only_whether_possible if queue.unexplained else why_not
        self._reports = Reports(queue, self._done, self.reasons)
        self._estimates = ReturnEstimates(self._preemption, now)

    @property
    def next_look_at(self) -> float:
        """When the plan may differ without an event; infinite if never.

        Then a victim protected by its minimum run time becomes available, or a part that changes with time is due.
        """
        review = inf
        if self.policy.changes_with_time and (self.queue.groups or self._targets.may_change):
            review = self.now + self.policy.review_seconds
        return min(review, self._preemption.view.next_look_at if self.policy.preemption else inf)

    @property
    def shrinks(self) -> bool:
        """Whether a running gang has more tasks than its target."""
        return bool(self._targets.surplus or self._targets.ending)

    def run(self) -> None:
        """Run the cycle and fill `placed`, `evictions` and `reasons`."""
        self._shrink()
        self._nominees()
        self._claimed = bool(self._done)
        lists = self.queue.lists
        for part in (lists.usual, lists.opportunistic) if self.policy.fair else (lists.starting,):
            self._follow(part)
        if self.queue.grows:
            self._follow(lists.growing)
        self._move()

    def close(self) -> None:
        """Undo the charges to the queues; the trial is undone by its owner."""
        for request, amounts in self._charged:
            self._queues.charge(request.queue, request.user, request.groups, amounts, -1)
        for reservation in (self.head.known, *self._preemption.places):
            if reservation is not None:
                reservation.forget()
        self._preemption.view.memo.clear()  # what parts keep there refers to the view

    def _shrink(self) -> None:
        """Have running gangs give up the tasks beyond their targets, or all of them."""
        stopped = self._targets.stopped(self._preemption.view, self.policy.name)
        self._preemption.view.mark_evicted(victim for victim, _ in stopped)
        self.evictions += (eviction for _, eviction in stopped)
        for victims in self._targets.surplus:
            gang, tasks = victims[0].gang, tuple(sorted(task for each in victims for task in each.tasks))
            self._preemption.view.mark_evicted(victims)
            count = self._targets.by_job[gang.job].tasks
            self.evictions.append(
                Eviction(
                    job=gang.job,
                    job_attempt=gang.attempt,
                    rule=Rule.SHRINK,
                    message=f"The policy {self.policy.name} now allots it {counted(count, 'task')}.",
                    tasks=tasks,
                    cost_device_seconds=gang.cost_of(tasks, self.now),
                )
            )

    def _nominees(self) -> None:
        """Give the nominated gangs their places before all others, owners in their own cells first.

        A stronger waiting gang of the same queue may take such a place instead.
        """
        found = [entry for job in self.queue.nominated if (entry := self.queue.first(job)) is not None]
        entries = sorted(found, key=lambda entry: entry.key)
        for place in (place_owned, place_best):
            for entry in entries:
                if entry.key not in self._done and self._could_claim(entry.request, place):
                    for stronger in self._stronger(entry):
                        self._claim(stronger, place)
                    self._claim(entry, place)
        self.lapsed = {entry.request.job for entry in entries if entry.key not in self._done}

    def _could_claim(self, request: GangRequest, place: Placer) -> bool:
        allowed = self._allowed(request)
        if isinstance(allowed, Reasons):
            return self._preemption.fits_freed_place(smallest(request), place)
        with self.trial.tentative():
            fits = place(self.trial, allowed) is not None
        return fits or self._preemption.fits_freed_place(allowed, place)

    def _claim(self, entry: Entry, place: Placer) -> None:
        """Place a gang, or keep for it the place that leaving gangs will free."""
        if entry.key in self._done:
            return
        allowed, marks = self._allowed(entry.request), self.trial.marks()
        if isinstance(allowed, Reasons):
            allowed, placement = smallest(entry.request), None
        else:
            placement = place(self.trial, allowed)
        if placement is not None:
            self.trial.started(allowed, marks, self.now)
            self._take([entry.request], [placement])
            self._done.add(entry.key)
        elif self._preemption.reserve_freed_place(allowed, asked(allowed, self._queues), place):
            self._reports.one(entry, self._yielding_reasons())
            self._done.add(entry.key)

    def _stronger(self, entry: Entry) -> list[Entry]:
        """Return the first gang of each group and duration of the same queue with a higher priority, in order.

        A gang that needs more than the nominated one is left out if it would take the queue beyond its fair share. The
        queue would have to give that room back at once, in an endless loop.
        """
        found = [
            group.entries[keys[0]]
            for group in self.queue.groups.values()
            if group.starts and group.queue == entry.request.queue and group.priority > entry.request.priority
            for keys in group.durations.values()
        ]
        own, ask = self._queues.find(entry.request.queue), asked(entry.request, self._queues)

        def may(request: GangRequest) -> bool:
            needs = asked(request, self._queues)
            no_more = all(more <= amount for more, amount in zip(needs, ask, strict=True))
            return no_more or self._preemption.fairness.entitled(own, None, needs)

        waiting = [other for other in found if other.key not in self._done and may(other.request)]
        return sorted(waiting, key=lambda other: other.key)

    def _follow(self, listed: GroupList) -> None:
        groups = listed.groups
        if not groups:
            return
        order = self._order = QueueOrder(listed, self._queues, self.now, self.policy)
        walks, changes = dict[int, Walk](), self._changes
        while (following := order.pop()) is not None:
            at, first, other = following
            walk = walks.get(at) or walks.setdefault(at, Walk(groups[at]))
            after = self._handle(order, walk, at, first, other)
            if after is not None:
                order.push(at, after)
            if (now := self._changes) != changes:
                changes = now
                order.reopen()
        self._reports.groups()

    def _handle(self, order: QueueOrder, walk: Walk, at: int, first: int, other: QueueKey | None) -> int | None:
        """Look at the gang of a group at index `first`, or more of the run from it on; return the index of the next.

        `at` is the group's number in the order, and `other` the key of the next gang of any other group.
        """
        group, changes = walk.group, self._changes
        key = group.keys[first]
        if key in self._done:
            return walk.after(first, 1)
        entry = group.entries[key]
        if walk.refused_at == changes and self._refused_again(walk, entry):
            return walk.without(first)
        alike = self._refusals.of(group, entry, changes, self._preemption.kept)
        if alike is not None and walk.refused_at is None and alike.for_all(group):
            self._reports.later(group, first, alike.reasons)
            return None
        if alike is not None and alike.passable and self._passes(entry.request):
            alike = None
        if alike is not None:
            found: int | Reasons | None = alike.reasons
        else:
            found = self._still_refused(group, entry.request)
        if found is None:
            found = self._look(group, first, Run(group, first, partial(self._end, order, walk, at, first, other)))
        if isinstance(found, int):
            if walk.refused_at is not None:
                self._done.update(group.keys[first : first + found])
            return walk.after(first, found)
        if walk.refused_at is None:
            self._reports.later(group, first, found)
        else:
            self._reports.one(entry, found)
            self._done.add(key)
        walk.refused_at, walk.turn = changes, key[0]
        order.looked_at(at)
        return self._after_refusal(order, walk, first, found, alike)

    def _still_refused(self, group: Group, request: GangRequest) -> Reasons | None:
        """Return the cached refusal of a gang's group where only room decides; None if the gang must be tried."""
        known = group.verdict
        if not (self._plain and isinstance(known, Verdict) and self._holds(known, request)):
            return None
        self._maybe_head(request, known.reasons)
        return known.reasons

    @property
    def _changes(self) -> int:
        """The number of gangs that started, were evicted, or got a place kept for them: a refusal holds meanwhile."""
        return len(self.placed) + len(self.evictions) + len(self._preemption.places)

    def _refused_again(self, walk: Walk, entry: Entry) -> bool:
        """Return whether the gang is refused for what an earlier gang of its group was refused for."""
        if walk.turn != entry.key[0] or not self._preemption.in_queue_order:
            return False
        return not (walk.passable and self._passes(entry.request))

    def _after_refusal(
        self, order: QueueOrder, walk: Walk, first: int, reasons: Reasons, alike: RefusedGang | None
    ) -> int | None:
        """Return the index of the next gang of a group that may fare better than the one refused at `first`.

        Gangs later in order have no victims that an earlier one does not have. Where the earlier one could have none at
        all, only gangs that may pass the head are left; else those of other durations are left, for later changes.
        `alike` is the refusal of another gang that held for this one, if there was one.
        """
        group, changes, turn = walk.group, walk.refused_at or 0, walk.turn
        request = group.entries[group.keys[first]].request
        walk.passable = reasons.binding.code == BEHIND and self.policy.backfill
        if not self._preemption.in_queue_order:
            return walk.without(first)
        alone = (alike is not None and alike.alone) or not self.policy.preemption or not reasons.possible
        alone = alone or self._preemption.nobody_preemptible(request)
        if alike is None and not self._targets.by_job:
            noted = self._refusals.note(group, RefusedGang(changes, turn, walk.passable, alone, reasons))
            if noted and alone and self._closes(order):
                if not walk.passable:
                    order.close(group.finding, 0.0)
                elif not self._preemption.may_yield_later(request):
                    order.close(group.finding, self.head.longest_passing)
        if not alone or group.keys[-1][0] != turn:
            return walk.without(first)
        if not walk.passable or self._preemption.may_yield_later(request):
            return walk.without(first) if walk.passable else None
        longest = self.head.longest_passing
        if group.lead.shortest > longest:
            return None
        return walk.without(first, lambda duration: 0 < duration <= longest)

    def _closes(self, order: QueueOrder) -> bool:
        """Return whether a refusal that is `RefusedGang.for_all` needs no look at the groups that it holds for."""
        return self.queue.unexplained and order.one_turn and not self._claimed and not self._preemption.kept

    def _passes(self, request: GangRequest) -> bool:
        """Return whether a gang may use the head's place: it ends before the head starts, or it will yield to the head."""
        reservation = self.head.reservation
        if reservation is None:
            return False
        head = self.queue.first(reservation.job)
        yields = head is not None and self._preemption.yields_later(request, head.request)
        return yields or reservation.lets_pass(request.max_duration_seconds, self.now)

    def _end(self, order: QueueOrder, walk: Walk, at: int, first: int, other: QueueKey | None) -> int:
        """Return the index up to which gangs of a group may be placed before another group or duration is next."""
        keys = walk.group.keys
        if order.crowded(at, first) or self._targets.by_job or not self._queues.plain:
            return first + 1
        end = walk.run_end(first, len(keys) if other is None else bisect_left(keys, other, first))
        for key in self._done:
            place = bisect_left(keys, key, first, end)
            if place < end and keys[place] == key:
                end = place
        return end

    def _look(self, group: Group, first: int, run: Run) -> int | Reasons:
        """Place the first gangs of a run, or record why they wait.

        Returns the number of gangs handled, or why the first one waits if that holds for others too.
        """
        found = self._place(group, run)
        if isinstance(found, Reasons):
            if found.binding.code == YIELDING:
                self._reports.one(group.entries[group.keys[first]], found)
                return 1 + self._more_room(group, first, run[1:])
            if run[0].job in self._targets.by_job:
                self._reports.one(group.entries[group.keys[first]], found)
                return 1
            return found
        self._take(run[: len(found)], found)
        return len(found)

    def _take(self, requests: Sequence[GangRequest], placements: Sequence[Placement]) -> None:
        """Record gangs of one group as placed and charge their queue."""
        self.placed += [
            GangPlacement(request.job, request.job_attempt, placement)
            for request, placement in zip(requests, placements, strict=True)
        ]
        first = requests[0]
        amounts = placed_amounts(self.trial.cluster, first, placements)
        self._queues.charge(first.queue, first.user, first.groups, amounts)
        self._charged.append((first, amounts))
        self._preemption.fairness.charged()
        if self._order is not None:
            self._order.charged(first.queue, first.user)

    def _place(self, group: Group, run: Sequence[GangRequest]) -> Sequence[Placement] | Reasons:
        """Place some gangs of a run, at least the first, or return why the first one waits."""
        first = run[0]
        known, request = self._known(group, first), self._allowed(first)
        if isinstance(request, Reasons):
            return self._make_room(smallest(first), request) or request
        shape = group.shape if request is first else gang_shape(request)
        if request is not first:
            run = [request]
        if isinstance(known, Verdict) and self._holds(known, request):
            if made := self._make_room(request, known.reasons):
                return made
            self._maybe_head(request, known.reasons)
            return known.reasons
        if self.head.possible and not self.policy.backfill and self.head.reservation is not None:
            return self._behind("it waits for its turn")
        self._remember(group, run[0], None)
        if self.head.possible and (passing := self._past(group, shape, run)) is not None:
            return passing
        found = self._try(shape, run)
        if found:
            return found
        reasons = self._explain(self.trial, request, shape)
        self._remember(group, run[0], self._verdict(reasons, None))
        if made := self._make_room(request, reasons):
            return made
        self._maybe_head(request, reasons)
        return reasons

    def _allowed(self, request: GangRequest) -> GangRequest | Reasons:
        """Return the gang with as many tasks as target, queue and user bounds allow, or why they allow none."""
        wanted = self._targets.limited(request)
        if wanted is None:
            count = self._targets.by_job[request.job].tasks
            return Reasons(Reason(ALLOTTED, f"The policy {self.policy.name} allots it {counted(count, 'task')}."))
        request = wanted
        if self._queues.plain or (owner_of(self.trial, request) and self._fits_in_cells(request)):
            return request
        never = self._queues.never(request.queue, asked(request, self._queues), request.groups)
        if never:
            return Reasons(Reason(*never), possible=False)
        extra = sum(len(role.indexes) - role.minimum for role in request.roles)
        if not extra:
            refused = self._refusal(request)
            return Reasons(Reason(*refused)) if refused else request
        low, high = -1, extra
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if self._refusal(with_extra(request, middle)) else (middle, high)
        if low < 0 or (low == 0 and not starts_anew(request)):
            refused = self._refusal(with_extra(request, low + 1))
            return Reasons(Reason(*refused)) if refused else request
        return request if low == extra else with_extra(request, low)

    def _refusal(self, request: GangRequest) -> Refusal | None:
        ask = asked(request, self._queues, every=True)
        refused = self._queues.refusal(request.queue, request.user, request.groups, ask)
        return refused or self._preemption.refused(request, ask)

    def _fits_in_cells(self, request: GangRequest) -> bool:
        """Return whether its owner's cells have room for it.

        The head's reserved place in them counts as free only if the gang ends before the head starts.
        """
        if self.head.lets_pass(request.max_duration_seconds):
            self.head.lift()
        else:
            self.head.hold()
        with self.trial.tentative():
            return place_owned(self.trial, request) is not None

    def _try(self, shape: Hashable, requests: Sequence[GangRequest]) -> Sequence[Placement]:
        """Place the first gangs of a run; empty if the first one does not fit."""
        request = requests[0]
        owned = owner_of(self.trial, request)
        if not owned and has_room(self.trial, request, shape) is False:
            return ()
        found = [] if owned else place_alike(self.trial, requests, shape, self.now)
        if found:
            return found
        marks = self.trial.marks()
        placement = place_best(self.trial, request, shape) if owned else self.trial.place(request, shape)
        if placement is None:
            return ()
        self.trial.started(request, marks, self.now)
        return (placement,)

    def _known(self, group: Group, request: GangRequest) -> object:
        """Return what was found for a gang's group; nothing holds for a gang with a target but the gang itself."""
        return None if request.job in self._targets.by_job else group.verdict

    def _remember(self, group: Group, request: GangRequest, verdict: Verdict | None) -> None:
        if request.job not in self._targets.by_job:
            group.verdict = verdict

    def _holds(self, known: Verdict, request: GangRequest) -> bool:
        """Return whether what was found for a group is still true of this gang."""
        if known.against is None or known.against is not self.head.reservation:
            return known.against is None
        return not self._passes(request)

    def _verdict(self, reasons: Reasons, against: Reservation | None) -> Verdict:
        return Verdict(reasons, against, self.trial.cluster.freed_count, valid_for_cycle=bool(self._preemption.places))

    def _past(self, group: Group, shape: Hashable, run: Sequence[GangRequest]) -> Sequence[Placement] | Reasons | None:
        """Place a gang behind the head beside its reserved place, or anywhere if it ends before the head starts.

        Returns None if it fits and nothing is reserved.
        """
        request = run[0]
        self.head.lift()
        if not self._fits(request, shape):
            reasons = self._explain(self.trial, request, shape)
            self._remember(group, request, self._verdict(reasons, None))
            if self._preemption.in_queue_order:
                self.head.hold_later()
            else:  # an installed part may look at what is free
                self.head.hold()
            if made := self._make_room(request, reasons):
                return made
            self._maybe_head(request, reasons)
            return reasons
        reservation = self.head.reservation
        if reservation is None:
            return None
        self.head.hold()
        passes = self._passes(request)
        found = () if passes and owner_of(self.trial, request) else self._try(shape, run)
        if not found and passes:
            self.head.lift()
            found = self._try(shape, [request])
        if found:
            return found
        reasons = self._behind("starting this job now would delay that one")
        self._remember(group, request, self._verdict(reasons, reservation))
        return self._make_room(request, reasons) or reasons

    def _fits(self, request: GangRequest, shape: Hashable) -> bool:
        plainly = has_room(self.trial, request, shape)
        if plainly is not None:
            return plainly
        with self.trial.tentative():
            return place_best(self.trial, request, shape) is not None

    def _make_room(self, request: GangRequest, reasons: Reasons) -> Reasons | None:
        """Evict others for a gang that does not fit, or wait for those already leaving; None if neither applies."""
        if not self.policy.preemption or not reasons.possible or self._preemption.nobody_preemptible(request):
            return None
        if not starts_anew(request):
            return None
        ask = asked(request, self._queues)
        if not self._preemption.may_have_victims(request, ask):
            return None
        if self.head.reservation is not None:
            self.head.hold()
        if not self._preemption.reserve_freed_place(request, ask):
            victims = self._preemption.find(request, ask)
            if not victims:
                return None
            self.evictions += self._evictions(victims, request)
        return self._yielding_reasons()

    def _more_room(self, group: Group, first: int, rest: Sequence[GangRequest]) -> int:
        """Evict others for the following gangs of the same shape while there are victims.

        Returns the number of gangs for which room is made.
        """
        with self._preemption.future():
            for count, request in enumerate(rest):
                made = self._make_room(request, self._yielding_reasons())
                if made is None:
                    return count
                self._reports.one(group.entries[group.keys[first + 1 + count]], made)
        return len(rest)

    def _yielding_reasons(self) -> Reasons:
        count = len(self.trial.cluster.gangs.leaving | {eviction.job for eviction in self.evictions})
        message = f"Starts when {counted(count, 'preempted job')} {'has' if count == 1 else 'have'} ended."
        return Reasons(Reason(YIELDING, message, {"jobs": count}))

    def _evictions(self, victims: Sequence[Victim], request: GangRequest) -> Iterator[Eviction]:
        """Yield one eviction for each victim gang, with its return where somebody may ask."""
        return evictions(victims, request, self.now, None if self.queue.one_asks else self._estimates)

    def _move(self) -> None:
        """Move running gangs where the gain exceeds the cost: for the head, and for the growth of elastic gangs."""
        migrations = Migrations(self._preemption, self.policy.move_seconds, self._targets, self.now)
        if self.policy.consolidation and self.head.possible:
            self.head.lift()
            self._move_for_head(migrations)
        if self.policy.move_seconds and not self.placed and not self.evictions:
            self.head.settle()
            found = migrations.for_growth(self.queue)
            if found is not None:
                self.evictions += self._evictions([found[0]], found[1])

    def _move_for_head(self, migrations: Migrations) -> None:
        """Move gangs to make room for the head, where as many devices are free as it needs."""
        if self.head.known is None:
            needs = [asked(self._limited(request), self._queues)[0] for request in self.head.refused]
            if not migrations.has_devices(min(filter(None, needs), default=0)):
                return
        reservation = self.head.reservation
        entry = self.queue.first(reservation.job) if reservation is not None else None
        if entry is None or reservation is None:
            return
        request = self._limited(entry.request)
        victims = migrations.for_head(request, reservation.start, asked(request, self._queues))
        if victims:
            self.evictions += self._evictions(victims, entry.request)
            self._reports.one(entry, self._yielding_reasons())

    def _limited(self, request: GangRequest) -> GangRequest:
        return self._targets.limited(request) or request

    def _maybe_head(self, request: GangRequest, reasons: Reasons) -> None:
        """Note that a gang was refused: the first one that could run on the working machines is the head."""
        if reasons.possible:
            self.head.add(request)

    def _behind(self, why: str) -> Reasons:
        head = self.head.reservation.job if self.head.reservation else ""
        return Reasons(Reason(BEHIND, f"Behind job {head}, the first in the queue order: {why}."))


def _placed_until(
    preemption: Preemption, charged: Sequence[tuple[GangRequest, Sequence[int]]], now: float
) -> float | None:  # fmt: skip
    """Return until when the gangs run that were placed; None if the trial differs from the cluster in more."""
    if preemption.changes_trial:
        return None
    durations = [request.max_duration_seconds for request, _ in charged]
    if not durations:
        return -inf
    return now + max(durations) if all(durations) else inf
