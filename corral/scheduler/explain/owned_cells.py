"""Explain a wait by the owner's own jobs using its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from corral.kernel.ids import JobId
from corral.kernel.units import counted, devices
from corral.model.plan import Reason
from corral.model.requests import GangRequest
from corral.scheduler.cells.owned_placement import owner_of
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.placement.trial import Trial
from corral.scheduler.queues.fair_share import DEVICES
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.lending import owned_devices
from corral.spec.placement.level_name import spoken

_MOST_NAMED = 3
_SINGLE = TaskShape(1, "", "", (), 0, 0, 0, ())


def own_cells_in_use(trial: Trial, request: GangRequest) -> Reason | None:
    """Return the reason that the owner's cells are in use by its own jobs, or None if something else binds.

    It is not the binding reason if the gang asks for more devices than its owner's cells have, or none of them is in
    use.
    """
    owner = owner_of(trial, request)
    if not owner:
        return None
    ownership = trial.cluster.ownership
    needed = asked(request, trial.cluster.queues)[DEVICES]
    if not 0 < needed <= owned_devices(ownership).get(owner, 0):
        return None
    owned, used, free = Counter[str](), 0, 0
    for cells in ownership.cells.values():
        for kind, count in cells.quotas.get(owner, {}).items():
            owned[cells.index.tree.levels[kind.depth]] += count
            used += count - cells.remaining(owner, kind)
        if owner in cells.own:
            free += int(cells.own[owner].slots(_SINGLE).totals[0][0])
    users = list(islice(_users(trial, owner), _MOST_NAMED + 1))
    if not users:
        return None
    counts: dict[str, int | float] = {"needed": devices(needed), "owned": owned.total(), "used": used, "free": free}
    return Reason("own-cells-in-use", _sentence(owner, owned, used, free, users), counts)


def _users(trial: Trial, owner: str) -> Iterator[RunningGang]:
    """Yield the gangs that are guaranteed in an owner's cells."""
    gangs, ownership = trial.cluster.gangs, trial.cluster.ownership
    for queue in sorted(gangs.by_queue):
        if ownership.owner(queue) == owner:
            for _, members in sorted(gangs.by_queue[queue].items(), reverse=True):
                yield from (gang for gang in members.values() if gang.guaranteed)


def _sentence(owner: str, owned: Counter[str], used: int, free: int, users: list[RunningGang]) -> str:
    kinds = [counted(count, f"{spoken(level)} cell") for level, count in owned.items()]
    total = owned.total()
    which = f"{used} of them {'are' if used > 1 else 'is'}"
    if used >= total:
        which = {1: "it is", 2: "both are"}.get(total, f"all {total} are")
    names = [gang.job for gang in users[:_MOST_NAMED]]
    ending = [gang.job for gang in users[:_MOST_NAMED] if not gang.stays]
    used_by = _named(names, more=len(users) > _MOST_NAMED)
    said = f"Queue {owner} owns {' and '.join(kinds)}; {which} in use by its own {used_by}"
    if ending:
        said += f" ({', '.join(ending)} {'are' if len(ending) > 1 else 'is'} ending)"
    left = f"{counted(free, 'device')} in {'it' if used == 1 else 'them'} {'is' if free == 1 else 'are'} free"
    return f"{said}. {left}."


def _named(jobs: list[JobId], *, more: bool) -> str:
    if more:
        return f"jobs {', '.join(jobs)} and others"
    listed = " and ".join(filter(None, (", ".join(jobs[:-1]), jobs[-1])))
    return f"{'jobs' if len(jobs) > 1 else 'job'} {listed}"
