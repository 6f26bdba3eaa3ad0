"""Ask HiveD about one affinity group until it has a valid place, is blocked by others, or has a reason to wait.

HiveD knows only devices. Every place it names is checked against a task's other requirements, and nodes that fail are
excluded from the next try.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.kernel.errors import InvalidInput
from corral.kernel.units import counted
from corral.model.placement import Placement
from corral.model.plan import CellsReserved, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.hived.algorithm import Bind, Preempt
from corral.scheduler.planners.hived.node_check import NodeChecker
from corral.scheduler.planners.hived.pod_mapping import job_in, label_for, model_of, pinned_cell_of, pods_of, sizes_of
from corral.scheduler.planners.hived.state_fold import Hived

_MOST_TRIES = 8
"""The most places requested for one group when nodes lack something that HiveD does not count."""


@dataclass(frozen=True)
class Found:
    """The place where a gang can go now."""

    request: GangRequest
    placement: Placement
    without: tuple[str, ...] = ()
    """The nodes (`engine/node`) that were excluded."""
    pinned_cell: str = ""


@dataclass(frozen=True)
class PreemptionNeeded:
    """Other gangs use a gang's cells and have to yield; one reservation per affinity group."""

    reserved: tuple[CellsReserved, ...]


class GroupSearch:
    """Asks HiveD about one affinity group; results are held in the trial, and HiveD is not changed."""

    def __init__(self, trial: Trial, hived: Hived, now: float) -> None:
        self.trial = trial
        self.hived = hived
        self.now = now
        self.checker = NodeChecker(trial, hived)

    def left(self, part: GangRequest) -> Found | Reasons | None:
        """Place it where ended tasks of its own running group were; None if there are no such places."""
        group = self.hived.empty_places(part.job, [size for _, size in sizes_of(part) if size], label_for(part))
        if group is None:
            return None
        empty = tuple(place for slot, place in zip(group.slots, group.placements(), strict=True) if slot.pod is None)
        found = self.checker.place(part, empty, group.chain, group.pinned_cell, ())
        return self.lacking(found) if isinstance(found, str) else Found(part, found)

    def free(self, part: GangRequest) -> Found | Reasons:
        """Place it in unused cells."""
        answer = self._in_cells(part, preempt=False)
        assert not isinstance(answer, PreemptionNeeded)
        return answer

    def taken(self, part: GangRequest) -> Found | PreemptionNeeded | Reasons:
        """Place it in cells that others may have to leave."""
        return self._in_cells(part, preempt=True)

    def _in_cells(self, part: GangRequest, *, preempt: bool) -> Found | PreemptionNeeded | Reasons:
        """Try the pinned cells that it may use, one after the other."""
        last: Reasons | None = None
        for pinned in self._pinned(part):
            answer = self._search(part, pinned, preempt=preempt)
            if not isinstance(answer, Reasons):
                return answer
            last = answer
        assert last is not None
        return last

    def lacking(self, sentence: str) -> Reasons:
        """Return the reason that HiveD has free devices, but their nodes lack something else."""
        return Reasons(Reason("beside-devices", f"HiveD has devices for it, but {sentence}."))

    def _pinned(self, part: GangRequest) -> Iterator[str]:
        """Yield the pinned cell that it names; otherwise "" and then each pinned cell of its virtual cluster."""
        pinned = pinned_cell_of(part)
        yield pinned
        if pinned:
            return
        tenant = self.hived.algorithm.state.forest.tenants.get(part.queue)
        if tenant is not None and part.priority >= 0:
            yield from tenant.pinned

    def _search(self, part: GangRequest, pinned: str, *, preempt: bool) -> Found | PreemptionNeeded | Reasons:
        """Ask HiveD and check its answer, excluding failed nodes, until an answer is valid or that cannot help."""
        pods = pods_of(
            part.job,
            part.queue,
            part.priority,
            sizes_of(part),
            self.hived.group_for(part),
            leaf_type=model_of(part),
            lazy_preemption=self.hived.lazy_preemption or part.lazy_preemption,
            pinned_cell=pinned,
        )
        pod = next(iter(pods.values()))
        without = self.checker.unfit(part, emptied=preempt)
        lacking = ""
        for _ in range(_MOST_TRIES):
            try:
                answer, demoted, ending = self.hived.algorithm.peek(
                    pod, self.checker.names - without if without else self.checker.names
                )
            except InvalidInput as error:
                return Reasons(Reason(error.code, error.message), possible=False)
            nodes = tuple(sorted(f"{self.hived.engine}/{name}" for name in without))
            if isinstance(answer, Preempt):
                if not preempt:
                    return Reasons(Reason("cells-in-use", "Its cells are in use."))
                return self._protected(ending) or PreemptionNeeded((CellsReserved(part, self.now, nodes, pinned),))
            if not isinstance(answer, Bind):
                return self._waits(part, lacking or answer.reason, len(without))
            yielding = tuple(dict.fromkeys(job_in(name) for name in demoted))
            found = self.checker.place(part, answer.group, answer.chain, pinned, yielding)
            if not isinstance(found, str):
                return Found(part, found, nodes, pinned)
            lacking = found
            without = without | self.checker.blamed
            if preempt:
                break
        return self.lacking(lacking)

    def _protected(self, ending: Sequence[str]) -> Reasons | None:
        """Return the reason if a guaranteed gang that must end is not preemptible; None if there is no such gang."""
        gangs = self.trial.cluster.gangs.by_job
        jobs = [job_in(name) for name in ending]
        found = [job for job in jobs if job in gangs and not gangs[job].preemptible]
        if not found:
            return None
        message = f"HiveD would preempt {found[0]} for it, which is not preemptible and owns its cells."
        return Reasons(Reason("not-preemptible", message, {"jobs": len(found)}))

    def _waits(self, part: GangRequest, sentence: str, without: int) -> Reasons:
        needed, (free, total) = sum(size for _, size in sizes_of(part)), self.checker.free()
        counts = {"needed": needed, "free": free, "total": total, "nodesLeftOut": without}
        left_out = f"; {counted(without, 'node')} left out" if without else ""
        message = (
            f"HiveD finds no place in virtual cluster {part.queue} for {counted(needed, 'device')}: {sentence} "
            f"({free} of {total} devices are free{left_out})."
        )
        return Reasons(Reason("hived-waits", message, counts))
