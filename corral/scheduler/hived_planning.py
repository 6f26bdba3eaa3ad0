"""Why: under the *hived* preset HiveD's algorithm says who goes where and who yields; this carries its word out.

The gangs are asked about in the policy's order. HiveD knows devices only, so every place that it names is checked against
what else a task needs (processors, memory, labels, what is really free), and nodes that fail are left out of what it may
choose from. Cells are reserved for at most one gang in a cycle, after all placements: so what is planned and what is
committed come in one order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import msgspec

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import counted
from corral.model.placement import Placement
from corral.model.plan import CellsReserved, Eviction, GangPlacement, Plan, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.amounts import asked, placed_amounts
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import NominationLapsed, gang_placed
from corral.scheduler.explaining import why_not
from corral.scheduler.hived import Bind, Group, GroupState, Preempt
from corral.scheduler.hived_binding import model_of, pods_of, sizes_of
from corral.scheduler.hived_checking import Checker, not_in_hived
from corral.scheduler.hived_fold import Hived
from corral.scheduler.hived_victims import evictions
from corral.scheduler.placing import Trial
from corral.scheduler.policy import OrderKey, Policy
from corral.scheduler.queue import Entry, Queue
from corral.scheduler.queue import Group as Alike

YIELDING = "others-yield"
_MOST_TRIES = 8
"""So often another place is asked for, after one whose nodes lack something that HiveD does not count."""


@dataclass
class HivedMemory:
    """For which revisions of cluster and queue nothing could be done."""

    cluster: Cluster
    policy: Policy
    seen: tuple[int, int]


@dataclass(frozen=True)
class Found:
    """Where a gang can go now."""

    request: GangRequest
    placement: Placement


@dataclass(frozen=True)
class InTheWay:
    """A gang's cells are used by others who have to yield."""

    reserved: CellsReserved


def plan_hived(cluster: Cluster, queue: Queue, policy: Policy, now: float) -> Plan:
    """What HiveD would start now, who yields, and why the others wait; `cluster` and `queue` stay as they are."""
    assert cluster.hived is not None
    queue.arrange(policy.order)
    memory, state = queue.memory, (cluster.revision, queue.revision)
    if isinstance(memory, HivedMemory) and memory == HivedMemory(cluster, policy, state) and not queue.expected:
        return Plan(cluster.revision)
    if not len(queue):
        return Plan(cluster.revision)
    trial = Trial(cluster)
    turn = _Turn(trial, queue, policy, now)
    try:
        turn.run()
    finally:
        trial.undo()
        turn.close()
    queue.expected = {placed.job for placed in turn.placed}
    settled = not (turn.placed or turn.reserved or turn.evictions or turn.lapsed)
    queue.memory = HivedMemory(cluster, policy, state) if settled else None
    return Plan(
        cluster.revision,
        tuple(turn.placed),
        turn.reasons,
        tuple(turn.evictions),
        tuple(turn.lapsed),
        now if turn.stopped else None,
        tuple(turn.reserved),
    )


def explain_hived(cluster: Cluster, queue: Queue, policy: Policy, job: JobId, now: float) -> Reasons | None:
    """Why a job waits, asked of HiveD anew; None when it does not wait. Nothing is changed."""
    entry = queue.first(job)
    if entry is None:
        return None
    assert cluster.hived is not None
    trial = Trial(cluster)
    with trial.supposing():
        found = Asking(trial, cluster.hived, policy, now).about(entry.request)
    ahead = queue.position(job) or 0
    if isinstance(found, Found):
        told = entry.told
        if told is not None and told.binding.code == "queue-limit":
            return msgspec.structs.replace(told, ahead=ahead)
        return Reasons(Reason("starts-now", "There is room: it starts with the next cycle."), ahead=ahead)
    if isinstance(found, InTheWay):
        return Reasons(
            Reason(YIELDING, "Others that use its cells are told to yield with the next cycle."), ahead=ahead
        )
    return msgspec.structs.replace(found, ahead=ahead)


class Asking:
    """Asks HiveD about one gang after the other; the trial holds what was found, HiveD is not changed."""

    def __init__(self, trial: Trial, hived: Hived, policy: Policy, now: float) -> None:
        self.trial = trial
        self.hived = hived
        self.policy = policy
        self.now = now
        self.checker = Checker(trial, hived)

    def about(self, request: GangRequest) -> Found | InTheWay | Reasons:
        """Where a gang can go, or who is in the way, or why it waits."""
        foreign = not_in_hived(request)
        if foreign is not None:
            return Reasons(foreign, possible=False)
        if self.checker.index is None:
            return Reasons(Reason("engine-unknown", f"The engine {self.hived.engine} is not there or does not answer."))
        kept = self._kept(request)
        if kept is not None:
            return self._after_others(request, kept)
        tries = list(_sizes(request))
        refused: Reasons | None = None
        for each in tries:
            found = self._new(each)
            if not isinstance(found, Reasons):
                return found
            refused = refused or found
        return refused or Reasons(Reason("no-devices", "It asks for nothing."), possible=False)

    def _kept(self, request: GangRequest) -> Group | None:
        """The group for which cells are kept already."""
        group = self.hived.algorithm.groups.get(self.hived.group_of(request.job, request.tasks))
        return group if group is not None and group.state is GroupState.PREEMPTING else None

    def _after_others(self, request: GangRequest, group: Group) -> Found | Reasons:
        """A gang whose cells are kept starts when nobody uses them any more."""
        users = dict.fromkeys(cell.user.name for cell, _ in group.held() if cell.user is not None)
        if users:
            jobs = ", ".join(users)
            message = f"Its cells are kept for it until those have ended that still use them: {jobs}."
            return Reasons(Reason(YIELDING, message, {"groups": len(users)}))
        mine = set(self.hived.pods(request.job))
        smaller = _only(request, mine)
        found = self.checker.place(smaller, group.placements(), group.chain, group.pinned_cell, ())
        if isinstance(found, str):
            return self._lacking(smaller, found)
        return Found(smaller, found)

    def _new(self, request: GangRequest) -> Found | InTheWay | Reasons:
        sizes = sizes_of(request)
        devices = [size for _, size in sizes if size]
        if not devices:
            placement = self.trial.place(request)
            return Found(request, placement) if placement else why_not(self.trial, request)
        group = self.hived.empty_places(request.job, devices)
        if group is not None:
            empty = tuple(
                place for slot, place in zip(group.slots, group.placements(), strict=True) if slot.pod is None
            )
            found = self.checker.place(request, empty, group.chain, group.pinned_cell, ())
            return self._lacking(request, found) if isinstance(found, str) else Found(request, found)
        starts = any(role.minimum for role in request.roles)
        last: Reasons | None = None
        for pinned in self._pinned(request):
            answer = self._search(request, pinned, preempt=False)
            if isinstance(answer, Found):
                return answer
            assert isinstance(answer, Reasons)
            last = answer
        for pinned in self._pinned(request) if starts and self.policy.preemption else ():
            answer = self._search(request, pinned, preempt=True)
            if not isinstance(answer, Reasons):
                return answer
            last = answer
        assert last is not None
        return last

    def _pinned(self, request: GangRequest) -> Iterator[str]:
        """None of the pinned cells, then each that its virtual cluster owns: no job document names one."""
        yield ""
        tenant = self.hived.algorithm.state.forest.tenants.get(request.queue)
        if tenant is not None and request.priority >= 0:
            yield from tenant.pinned

    def _search(self, request: GangRequest, pinned: str, *, preempt: bool) -> Found | InTheWay | Reasons:
        """Ask HiveD, and check its answer, until that holds or nodes to leave out are not the reason that it does not."""
        pods = pods_of(
            request.job,
            request.queue,
            request.priority,
            sizes_of(request),
            self.hived.group_of(request.job, request.tasks),
            leaf_type=model_of(request),
            lazy_preemption=self.hived.lazy_preemption,
            pinned_cell=pinned,
        )
        pod = next(iter(pods.values()))
        without = self.checker.unfit(request, emptied=preempt)
        lacking = ""
        for _ in range(_MOST_TRIES):
            try:
                answer, demoted = self.hived.algorithm.peek(
                    pod, self.checker.names - without if without else self.checker.names
                )
            except InvalidInput as error:
                return Reasons(Reason(error.code, error.message), possible=False)
            if isinstance(answer, Preempt):
                if not preempt:
                    return Reasons(Reason("cells-in-use", "Its cells are in use."))
                nodes = tuple(sorted(f"{self.hived.engine}/{name}" for name in without))
                return InTheWay(CellsReserved(request, self.now, nodes, pinned))
            if not isinstance(answer, Bind):
                return self._waits(request, lacking or answer.reason, len(without))
            yielding = tuple(JobId(name.partition("+")[0]) for name in demoted)
            found = self.checker.place(request, answer.group, answer.chain, pinned, yielding)
            if not isinstance(found, str):
                return Found(request, found)
            lacking = found
            without = without | self.checker.blamed
            if preempt:
                break
        return self._lacking(request, lacking)

    def _waits(self, request: GangRequest, sentence: str, without: int) -> Reasons:
        needed, (free, total) = sum(size for _, size in sizes_of(request)), self.checker.free()
        counts = {"needed": needed, "free": free, "total": total, "nodesLeftOut": without}
        left_out = f"; {counted(without, 'node')} left out" if without else ""
        message = (
            f"HiveD finds no place in virtual cluster {request.queue} for {counted(needed, 'device')}: {sentence} "
            f"({free} of {total} devices are free{left_out})."
        )
        return Reasons(Reason("hived-waits", message, counts))

    def _lacking(self, request: GangRequest, sentence: str) -> Reasons:
        """HiveD's devices are free, and their nodes lack something else."""
        return Reasons(Reason("beside-devices", f"HiveD has devices for it, but {sentence}."))


class _Turn:
    """One pass over what waits, on HiveD's draft."""

    def __init__(self, trial: Trial, queue: Queue, policy: Policy, now: float) -> None:
        assert trial.cluster.hived is not None
        self.trial = trial
        self.queue = queue
        self.now = now
        self.placed: list[GangPlacement] = []
        self.reserved: list[CellsReserved] = []
        self.evictions: list[Eviction] = []
        self.lapsed: list[JobId] = []
        self.reasons: dict[str, Reasons] = {}
        self.stopped = False
        """Whether the rest of the line is for another cycle."""
        self._hived = trial.cluster.hived
        self._asking = Asking(trial, self._hived.draft(), policy, now)
        self._queues = trial.cluster.queues
        self._charged: list[tuple[GangRequest, Sequence[int]]] = []

    def run(self) -> None:
        """Look at every gang in order, once for all that are alike."""
        groups = list(self.queue.groups.values())
        line = [(group.keys[0], at, 0) for at, group in enumerate(groups)]
        heapify(line)
        while line and not self.stopped:
            _, at, place = heappop(line)
            group = groups[at]
            if self._look(group, group.keys[place]):
                if place + 1 < len(group.keys):
                    heappush(line, (group.keys[place + 1], at, place + 1))
            else:
                for key in group.keys[place + 1 :]:
                    self._tell(group.entries[key], self.reasons_of(group, group.keys[place]))

    def close(self) -> None:
        """Give back what was charged to the queues."""
        for request, amounts in self._charged:
            self._queues.charge(request.queue, request.user, request.groups, amounts, -1)

    def reasons_of(self, group: Alike, key: OrderKey) -> Reasons:
        """What was just found out about a gang."""
        told = group.entries[key].told
        assert told is not None
        return told

    def _look(self, group: Alike, key: OrderKey) -> bool:
        """Decide about one gang; whether those that are alike may fare otherwise."""
        entry = group.entries[key]
        found = self._limited(entry.request) or self._asking.about(entry.request)
        if isinstance(found, Found):
            self._place(found)
            return True
        if isinstance(found, InTheWay):
            self._reserve(entry, found.reserved)
            return True
        if entry.request.job in self.queue.nominated and found.binding.code != YIELDING:
            self._lapse(entry.request.job)
        self._tell(entry, found)
        return found.binding.code == YIELDING

    def _limited(self, request: GangRequest) -> Reasons | None:
        """The bounds of queues, users and groups hold as under every policy."""
        if self._queues.plain:
            return None
        refused = self._queues.refusal(request.queue, request.user, request.groups, asked(request, self._queues.names))
        return Reasons(Reason(*refused)) if refused else None

    def _place(self, found: Found) -> None:
        request = found.request
        self.placed.append(GangPlacement(request.job, request.job_attempt, found.placement))
        self._hived.expect(gang_placed(request, found.placement, self.now))
        amounts = placed_amounts(self.trial.cluster, request, [found.placement])
        self._queues.charge(request.queue, request.user, request.groups, amounts)
        self._charged.append((request, amounts))

    def _reserve(self, entry: Entry, reserved: CellsReserved) -> None:
        """Have its cells kept, and those yield that use them."""
        draft, request = self._asking.hived, reserved.request
        self.stopped = self._hived.expect(reserved)
        group = draft.algorithm.groups.get(draft.group_of(request.job, request.tasks))
        if group is None:
            return
        self.reserved.append(reserved)
        self.evictions += evictions(self.trial.cluster, group, request, self.now)
        count = len({each.job for each in self.evictions})
        message = f"{counted(count, 'job')} that use its cells were told to yield; the cells are kept for it."
        self._tell(entry, Reasons(Reason(YIELDING, message, {"jobs": count})))

    def _lapse(self, job: JobId) -> None:
        """What others were told to leave for this one went elsewhere, or is no good any more."""
        self.lapsed.append(job)
        self.stopped = self._hived.expect(NominationLapsed(job)) or self.stopped

    def _tell(self, entry: Entry, reasons: Reasons) -> None:
        told = entry.told
        if told is None or told.binding != reasons.binding or told.possible != reasons.possible:
            entry.told = msgspec.structs.replace(reasons, ahead=self.queue.ahead(entry.key))
            self.reasons[entry.request.job] = entry.told


def _sizes(request: GangRequest) -> Iterator[GangRequest]:
    """The whole gang; if it can do with less then the least of it, and what only grows half of it, a quarter, and so on."""
    yield request
    if any(role.minimum for role in request.roles):
        if any(role.minimum < len(role.indexes) for role in request.roles):
            yield _first(request, [role.minimum for role in request.roles])
        return
    counts = [len(role.indexes) for role in request.roles]
    while max(counts) > 1:
        counts = [(count + 1) // 2 for count in counts]
        yield _first(request, counts)


def _first(request: GangRequest, counts: Sequence[int]) -> GangRequest:
    """So many of the first tasks of each role."""
    keys = {
        TaskKey(role.role, index)
        for role, count in zip(request.roles, counts, strict=True)
        for index in role.indexes[:count]
    }
    return _only(request, keys)


def _only(request: GangRequest, tasks: set[TaskKey]) -> GangRequest:
    """The same gang with these tasks, and all that need no device."""
    roles = []
    for role in request.roles:
        indexes = tuple(at for at in role.indexes if not role.devices.count or TaskKey(role.role, at) in tasks)
        if indexes:
            roles.append(msgspec.structs.replace(role, indexes=indexes, minimum=min(role.minimum, len(indexes))))
    return msgspec.structs.replace(request, roles=tuple(roles))
