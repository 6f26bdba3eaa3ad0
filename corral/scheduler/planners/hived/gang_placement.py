"""Ask HiveD for places for all affinity groups of a gang; either all of them get one, or none does.

HiveD places affinity groups, and Corral starts gangs. The groups of a gang are asked about one by one, each on a copy
of HiveD in which the earlier groups have their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement
from corral.model.plan import CellsReserved, Reason, Reasons
from corral.model.requests import ALONE, GangRequest
from corral.scheduler.events import gang_placed
from corral.scheduler.explain.shortage import why_not
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.hived.algorithm import Group, GroupState
from corral.scheduler.planners.hived.group_search import Found, GroupSearch, PreemptionNeeded
from corral.scheduler.planners.hived.node_check import NodeChecker, not_in_hived
from corral.scheduler.planners.hived.pod_mapping import job_in, parts_of
from corral.scheduler.planners.hived.state_fold import Hived
from corral.scheduler.policy.policy import Policy

YIELDING = "others-yield"
"""The reason code of a gang that starts as soon as the evicted gangs have ended."""
_MOST_NAMED = 4
_MOST_AT_ONCE = 256
"""The most groups of independent tasks placed in one look; the next look places the rest."""


class GangPlacer:
    """Asks HiveD about one gang at a time; results are held in the trial, and HiveD is not changed."""

    def __init__(self, trial: Trial, hived: Hived, policy: Policy, now: float) -> None:
        self.trial = trial
        self.hived = hived
        self.policy = policy
        self.now = now
        self._search = GroupSearch(trial, hived, now)

    @property
    def _checker(self) -> NodeChecker:
        return self._search.checker

    def about(self, request: GangRequest) -> Found | PreemptionNeeded | Reasons:
        """Return where a gang can go, which gangs are in the way, or why it waits."""
        foreign = not_in_hived(request)
        if foreign is not None:
            return Reasons(foreign, possible=False)
        if self._checker.index is None:
            return Reasons(Reason("engine-unknown", f"The engine {self.hived.engine} is not there or does not answer."))
        running = self.trial.cluster.gangs.by_job.get(request.job)
        if running is not None and not running.stays:
            return Reasons(Reason("leaving", "The rest of its job is ending, and starts again with it."))
        kept = self._kept(request)
        if kept:
            return self._after_others(request, kept)
        refused: Reasons | None = None
        for each in _sizes(request):
            found = self._new(each)
            if not isinstance(found, Reasons):
                return found
            refused = refused or found
        return refused or Reasons(Reason("no-devices", "It asks for nothing."), possible=False)

    def keeps(self, job: JobId) -> bool:
        """Return whether cells are reserved for a gang of this job."""
        groups = self.hived.algorithm.groups
        names = {pod.group for pod in self.hived.pods(job).values()}
        return any(name in groups and groups[name].state is GroupState.PREEMPTING for name in names)

    def _kept(self, request: GangRequest) -> list[Group]:
        """Return the groups of a gang for which cells are already reserved."""
        if not self.keeps(request.job):
            return []
        known = self.hived.algorithm.groups
        names = dict.fromkeys(self.hived.group_for(part) for part in parts_of(request))
        groups = [known[name] for name in names if name in known]
        return [group for group in groups if group.state is GroupState.PREEMPTING]

    def _after_others(self, request: GangRequest, kept: Sequence[Group]) -> Found | Reasons:
        """Start a gang in its reserved cells once no other group uses them."""
        groups = {group.name: group for group in kept}
        mine = {task for task, pod in self.hived.pods(request.job).items() if pod.group in groups}
        smaller = _only(request, mine)
        if not mine <= set(smaller.tasks) or not _enough(request, mine):
            return Reasons(
                Reason("hived-waits", "Cells are reserved for other tasks of the job than those that wait now.")
            )
        for group in kept:
            if any(cell.user is not None for cell, _ in group.held()):
                return kept_for_it(group)
        mark, placed = self._mark(), list[Found]()
        for part in parts_of(smaller):
            group = groups[self.hived.group_for(part)]
            found = self._checker.place(part, group.placements(), group.chain, group.pinned_cell, ())
            if isinstance(found, str):
                self._undo(mark)
                return self._search.lacking(found)
            placed.append(Found(part, found))
        return self._together(smaller, placed, mark)

    def _new(self, request: GangRequest) -> Found | PreemptionNeeded | Reasons:
        """Place a gang of which no group has a place or a reservation yet."""
        if not any(role.devices.count for role in request.roles):
            placement = self.trial.place(request)
            return Found(request, placement) if placement else why_not(self.trial, request)
        preempts = self.policy.preemption and any(role.minimum for role in request.roles)
        parts = parts_of(request)
        if parts == [request]:
            return self._whole(request, preempts=preempts)
        found = self._free_parts(request, parts)
        if isinstance(found, Found) or not preempts:
            return found
        return self._taken_parts(_first(request, [role.minimum for role in request.roles]), found)

    def _whole(self, request: GangRequest, *, preempts: bool) -> Found | PreemptionNeeded | Reasons:
        """Place a gang that is one group, in places that its group left, else in free or preempted cells."""
        left = self._search.left(request)
        if left is not None:
            return left
        found = self._search.free(request)
        return self._search.taken(request) if preempts and isinstance(found, Reasons) else found

    def _free_parts(self, request: GangRequest, parts: Sequence[GangRequest]) -> Found | Reasons:
        """Place all groups of a gang, or as many as suffice, without preemption."""
        strict = all(role.minimum == len(role.indexes) for role in request.roles)
        refused = self._refused_alone(parts) if strict else None
        if refused is not None:
            return refused
        mark, search, placed = self._mark(), self._search, list[Found]()
        hopeless: set[str] = set()
        for part in parts:
            if not strict and len(placed) >= _MOST_AT_ONCE and _enough(request, _tasks(placed)):
                break
            alone = _alone(part)
            if alone and alone in hopeless:
                continue
            answer = search.left(part) or search.free(part)
            if isinstance(answer, Found):
                placed.append(answer)
                search = self._with(search, answer) if part is not parts[-1] else search
                continue
            refused = refused or answer
            hopeless.add(alone)
            if strict:
                break
        if refused is not None and not (placed and _enough(request, _tasks(placed))):
            self._undo(mark)
            return refused
        return self._together(request, placed, mark)

    def _with(self, search: GroupSearch, found: Found) -> GroupSearch:
        """Return a search on a copy of HiveD in which one more group has its place."""
        if search is self._search:
            search = GroupSearch(self.trial, self.hived.copy(), self.now)
        search.hived.apply(gang_placed(found.request, found.placement, self.now))
        return search

    def _refused_alone(self, parts: Sequence[GangRequest], *, preempt: bool = False) -> Reasons | None:
        """Return why one of the groups would find no place even if it were the only one; this needs no copy."""
        known: set[str] = set()
        for part in parts:
            alone = _alone(part)
            if alone and alone in known:
                continue
            known.add(alone)
            mark = self._mark()
            answer: Found | PreemptionNeeded | Reasons = self._search.left(part) or self._search.free(part)
            if preempt and isinstance(answer, Reasons):
                answer = self._search.taken(part)
            self._undo(mark)
            if isinstance(answer, Reasons):
                return answer
        return None

    def _taken_parts(self, request: GangRequest, waits: Reasons) -> PreemptionNeeded | Reasons:
        """Reserve cells for all groups of a gang, some of them used by others; else return `waits`."""
        parts = parts_of(request)
        refused = self._refused_alone(parts, preempt=True)
        if refused is not None:
            return refused
        mark, reserved, others_yield = self._mark(), list[CellsReserved](), False
        search = GroupSearch(self.trial, self.hived.copy(), self.now)
        for part in parts:
            answer: Found | PreemptionNeeded | Reasons = search.free(part)
            if isinstance(answer, Reasons):
                answer = search.taken(part)
            if isinstance(answer, Reasons):
                waits = answer
                break
            if isinstance(answer, PreemptionNeeded):
                others_yield, event = True, msgspec.structs.replace(answer.reserved[0], beside_others=True)
            else:
                event = CellsReserved(part, self.now, answer.without, answer.pinned_cell, beside_others=True)
            if not search.hived.apply(event):
                break
            reserved.append(event)
        self._undo(mark)
        return PreemptionNeeded(tuple(reserved)) if others_yield and len(reserved) == len(parts) else waits

    def _together(self, request: GangRequest, placed: Sequence[Found], mark: int) -> Found | Reasons:
        """Join the places of all groups and add those of the tasks without devices; on failure nothing is held."""
        tasks = [task for each in placed for task in each.placement.tasks]
        keys = {task.key for task in tasks}
        whole = _only(request, keys)
        rest = tuple(role for role in whole.roles if not {TaskKey(role.role, at) for at in role.indexes} <= keys)
        if rest:
            others = self.trial.place(msgspec.structs.replace(whole, roles=rest))
            if others is None:
                self._undo(mark)
                return self._search.lacking("its tasks without devices find no room beside")
            tasks += others.tasks
        demoted = tuple(dict.fromkeys(job for each in placed for job in each.placement.demoted))
        return Found(whole, Placement(self._checker.ordered(tasks), demoted=demoted))

    def _mark(self) -> int:
        assert self._checker.index is not None
        return self._checker.index.mark()

    def _undo(self, mark: int) -> None:
        assert self._checker.index is not None
        self._checker.index.undo(mark)


def kept_for_it(group: Group) -> Reasons:
    """Return the reason of a gang that waits for the groups using its reserved cells."""
    users = list(dict.fromkeys(job_in(cell.user.name) for cell, _ in group.held() if cell.user is not None))
    more = f" and {len(users) - _MOST_NAMED} more" if len(users) > _MOST_NAMED else ""
    message = f"Its cells are reserved for it until these have ended: {', '.join(users[:_MOST_NAMED])}{more}."
    return Reasons(Reason(YIELDING, message, {"groups": len(users)}))


def _sizes(request: GangRequest) -> Iterator[GangRequest]:
    """Yield the gang in shrinking sizes to try: the whole first.

    A gang with a smaller minimum is tried with that next; growth without a minimum is halved repeatedly.
    """
    yield request
    if any(role.minimum for role in request.roles):
        if any(role.minimum < len(role.indexes) for role in request.roles):
            yield _first(request, [role.minimum for role in request.roles])
        return
    counts = [len(role.indexes) for role in request.roles]
    while max(counts) > 1:
        counts = [(count + 1) // 2 for count in counts]
        yield _first(request, counts)


def _alone(part: GangRequest) -> str:
    """Return the role of a task that forms its own group, since such tasks are alike; "" for other groups."""
    return part.roles[0].role if part.roles[0].affinity == ALONE else ""


def _tasks(placed: Sequence[Found]) -> set[TaskKey]:
    """Return all tasks that have a place."""
    return {task.key for each in placed for task in each.placement.tasks}


def _enough(request: GangRequest, tasks: set[TaskKey]) -> bool:
    """Return whether these tasks reach the gang's minimum for every role with devices."""
    return all(
        sum(TaskKey(role.role, index) in tasks for index in role.indexes) >= role.minimum
        for role in request.roles
        if role.devices.count
    )


def _first(request: GangRequest, counts: Sequence[int]) -> GangRequest:
    """Return the gang reduced to the first `counts` tasks of its roles."""
    keys = {
        TaskKey(role.role, index)
        for role, count in zip(request.roles, counts, strict=True)
        for index in role.indexes[:count]
    }
    return _only(request, keys)


def _only(request: GangRequest, tasks: set[TaskKey]) -> GangRequest:
    """Return the gang reduced to these tasks and all tasks without devices."""
    roles = []
    for role in request.roles:
        indexes = tuple(at for at in role.indexes if not role.devices.count or TaskKey(role.role, at) in tasks)
        if indexes:
            roles.append(msgspec.structs.replace(role, indexes=indexes, minimum=min(role.minimum, len(indexes))))
    return msgspec.structs.replace(request, roles=tuple(roles))
