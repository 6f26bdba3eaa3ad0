"""Why: one gang is put to HiveD as often as it takes to have a place that holds, somebody in the way, or a reason.

HiveD knows devices only: every place that it names is checked against what else a task needs, and nodes that fail are left
out of what it may choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import counted
from corral.model.placement import Placement
from corral.model.plan import CellsReserved, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.explaining import why_not
from corral.scheduler.hived import Bind, Group, GroupState, Preempt
from corral.scheduler.hived_binding import model_of, pods_of, sizes_of
from corral.scheduler.hived_checking import Checker, not_in_hived
from corral.scheduler.hived_fold import Hived
from corral.scheduler.placing import Trial
from corral.scheduler.policy import Policy

YIELDING = "others-yield"
"""The code of a gang that starts as soon as those have ended that were told to."""
_MOST_NAMED = 4
_MOST_TRIES = 8
"""So often another place is asked for, after one whose nodes lack something that HiveD does not count."""


@dataclass(frozen=True)
class Found:
    """Where a gang can go now."""

    request: GangRequest
    placement: Placement


@dataclass(frozen=True)
class InTheWay:
    """A gang's cells are used by others who have to yield."""

    reserved: CellsReserved


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
        running = self.trial.cluster.gangs.by_job.get(request.job)
        if running is not None and not running.stays:
            return Reasons(Reason("leaving", "The rest of its job was told to end, and starts anew with it."))
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

    def keeps(self, job: JobId) -> bool:
        """Whether cells are kept for a gang of this job."""
        groups = self.hived.algorithm.groups
        names = {pod.group for pod in self.hived.pods(job).values()}
        return any(name in groups and groups[name].state is GroupState.PREEMPTING for name in names)

    def _kept(self, request: GangRequest) -> Group | None:
        """The group for which cells are kept already."""
        group = self.hived.algorithm.groups.get(self.hived.group_of(request.job, request.tasks))
        return group if group is not None and group.state is GroupState.PREEMPTING else None

    def _after_others(self, request: GangRequest, group: Group) -> Found | Reasons:
        """A gang whose cells are kept starts when nobody uses them any more."""
        if any(cell.user is not None for cell, _ in group.held()):
            return kept_for_it(group)
        mine = {task for task, pod in self.hived.pods(request.job).items() if pod.group == group.name}
        smaller = _only(request, mine)
        if not mine <= set(smaller.tasks) or not _enough(request, mine):
            return Reasons(Reason("hived-waits", "Cells were kept for other tasks of it than wait now."))
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
        """The pinned cell that it names; else none of them, then each that its virtual cluster owns."""
        yield request.pinned_cell
        if request.pinned_cell:
            return
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
            lazy_preemption=self.hived.lazy_preemption or request.lazy_preemption,
            pinned_cell=pinned,
        )
        pod = next(iter(pods.values()))
        without = self.checker.unfit(request, emptied=preempt)
        lacking = ""
        for _ in range(_MOST_TRIES):
            try:
                answer, demoted, ending = self.hived.algorithm.peek(
                    pod, self.checker.names - without if without else self.checker.names
                )
            except InvalidInput as error:
                return Reasons(Reason(error.code, error.message), possible=False)
            if isinstance(answer, Preempt):
                if not preempt:
                    return Reasons(Reason("cells-in-use", "Its cells are in use."))
                protected = self._protected(ending)
                if protected is not None:
                    return protected
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

    def _protected(self, ending: Sequence[str]) -> Reasons | None:
        """Guaranteed gangs that may not be told to yield keep their cells, as under every policy."""
        gangs = self.trial.cluster.gangs.by_job
        jobs = [JobId(name.partition("+")[0]) for name in ending]
        found = [job for job in jobs if job in gangs and not gangs[job].preemptible]
        if not found:
            return None
        message = f"HiveD would end {found[0]} for it, which is not preemptible and has a right to its cells."
        return Reasons(Reason("not-preemptible", message, {"jobs": len(found)}))

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


def kept_for_it(group: Group) -> Reasons:
    """A gang waits for those that use its cells."""
    users = list(dict.fromkeys(cell.user.name for cell, _ in group.held() if cell.user is not None))
    more = f" and {len(users) - _MOST_NAMED} more" if len(users) > _MOST_NAMED else ""
    message = f"Its cells are kept for it until those have ended that use them: {', '.join(users[:_MOST_NAMED])}{more}."
    return Reasons(Reason(YIELDING, message, {"groups": len(users)}))


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


def _enough(request: GangRequest, tasks: set[TaskKey]) -> bool:
    """Whether these are as many tasks with devices as the gang needs."""
    return all(
        sum(TaskKey(role.role, index) in tasks for index in role.indexes) >= role.minimum
        for role in request.roles
        if role.devices.count
    )


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
