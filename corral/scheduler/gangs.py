"""Why: who must yield is asked of what runs, by queue and priority: the running gangs are kept so, never searched for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE
from corral.model.requests import GangRequest
from corral.scheduler.events import Checkpointed, GangPlaced, TasksLeaving


class Running:
    """One gang that holds something. `amounts` are what all its tasks hold, in the terms of the queues."""

    __slots__ = (
        "amounts", "attempt", "cells", "charges", "checkpointed_at", "groups", "job", "leaving", "placed_at",
        "preemptible", "priority", "queue", "request", "shape", "user",
    )  # fmt: skip

    def __init__(self, event: GangPlaced, size: int) -> None:
        self.job = event.job
        self.attempt = event.job_attempt
        self.queue = event.queue
        self.user = event.user
        self.groups = event.groups
        self.priority = event.priority
        self.preemptible = event.preemptible
        self.request = event.request
        """What its tasks asked for, those that it may still grow by too; None when nobody said."""
        self.shape: Hashable = None
        """Its request's shape once somebody wanted to know."""
        self.placed_at = event.placed_at
        self.checkpointed_at = 0.0
        """When it last saved its work; 0: it never said so."""
        self.charges: dict[TaskKey, tuple[int, ...]] = {}
        self.amounts = [0] * size
        self.leaving: set[TaskKey] = set()
        self.cells: dict[TaskKey, tuple[str, ...]] = {}
        """By task the cells of its queue that guarantee it what it holds; what has none is a guest."""

    @property
    def holder(self) -> tuple[str, str, tuple[str, ...]]:
        """Against whose bounds it counts."""
        return (self.queue, self.user, self.groups)

    @property
    def guaranteed(self) -> bool:
        """Whether it is in cells of its queue."""
        return bool(self.cells)

    @property
    def stays(self) -> bool:
        """Whether some of it was not told to end."""
        return len(self.leaving) < len(self.charges)

    def join(self, request: GangRequest | None) -> None:
        """More of its tasks were placed."""
        self.request, self.shape = joined(self.request, request), None

    @property
    def elastic(self) -> bool:
        """Whether it can do with less than all its tasks."""
        request = self.request
        return request is not None and any(role.minimum < len(role.indexes) for role in request.roles)

    def spare(self) -> Iterator[TaskKey]:
        """The tasks that it can do without, highest index first; its first task (the rendezvous) stays."""
        for role in self.request.roles if self.request else ():
            held = sorted((key for key in self.charges.keys() - self.leaving if key.role == role.role), reverse=True)
            yield from held[: max(0, len(held) - max(role.minimum, 1))]

    def cost(self, now: float) -> float:
        """Device-seconds of work that are lost if it ends now: since its last checkpoint, else since its start."""
        return _devices(self.amounts[0]) * self._unsaved(now)

    def cost_of(self, tasks: Iterable[TaskKey], now: float) -> float:
        """Device-seconds of work that are lost if these tasks end now, and the others go on."""
        return _devices(sum(self.charges[task][0] for task in tasks)) * self._unsaved(now)

    def _unsaved(self, now: float) -> float:
        return max(0.0, now - max(self.placed_at, self.checkpointed_at))

    def charge(self, task: TaskKey, amounts: tuple[int, ...]) -> None:
        """Count a task."""
        self.charges[task] = amounts
        for at, amount in enumerate(amounts):
            self.amounts[at] += amount

    def discharge(self, task: TaskKey) -> tuple[int, ...]:
        """Count a task no more; what it held."""
        amounts = self.charges.pop(task)
        self.leaving.discard(task)
        for at, amount in enumerate(amounts):
            self.amounts[at] -= amount
        return amounts

    def copy(self) -> Running:
        """An independent copy."""
        twin = object.__new__(Running)
        for name in Running.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.charges, twin.amounts, twin.leaving = dict(self.charges), self.amounts[:], set(self.leaving)
        twin.cells = dict(self.cells)
        return twin


def _devices(thousandths: int) -> float:
    """How many devices' time counts; that of a gang that has none counts as that of one."""
    return thousandths / DEVICE or 1.0


def joined(first: GangRequest | None, more: GangRequest | None) -> GangRequest | None:
    """What a gang asks for that asked twice: the tasks of both, with the larger minimum."""
    if first is None or more is None:
        return first or more
    known = {role.role: role for role in first.roles}
    for role in more.roles:
        old = known.get(role.role)
        if old is None:
            known[role.role] = role
            continue
        indexes = tuple(sorted({*old.indexes, *role.indexes}))
        known[role.role] = structs.replace(old, indexes=indexes, minimum=max(old.minimum, role.minimum))
    return structs.replace(first, roles=tuple(known.values()))


class Gangs:
    """Every running gang, by job, and by queue and priority."""

    def __init__(self) -> None:
        self.by_job: dict[JobId, Running] = {}
        self.by_queue: dict[str, dict[int, dict[JobId, Running]]] = {}
        self.elastic: dict[str, dict[JobId, Running]] = {}
        """By queue those that can do with less than all their tasks."""
        self.leaving: set[JobId] = set()
        """The gangs with tasks that were told to end."""

    def add(self, gang: Running) -> None:
        """A gang began to hold something."""
        self.by_job[gang.job] = gang
        self.by_queue.setdefault(gang.queue, {}).setdefault(gang.priority, {})[gang.job] = gang
        self.grown(gang)

    def grown(self, gang: Running) -> None:
        """It asked for more, or for the first time."""
        if gang.elastic:
            self.elastic.setdefault(gang.queue, {})[gang.job] = gang

    def remove(self, gang: Running) -> None:
        """It holds nothing any more."""
        del self.by_job[gang.job]
        self.leaving.discard(gang.job)
        self.elastic.get(gang.queue, {}).pop(gang.job, None)
        of_queue = self.by_queue[gang.queue]
        del of_queue[gang.priority][gang.job]
        if not of_queue[gang.priority]:
            del of_queue[gang.priority]
        if not of_queue:
            del self.by_queue[gang.queue]

    def hear(self, event: TasksLeaving | Checkpointed) -> bool:
        """Tasks of a gang were told to end, or it has saved its work; whether that is news."""
        gang = self.by_job.get(event.job)
        if gang is None:
            return False
        if isinstance(event, Checkpointed):
            if gang.attempt != event.job_attempt or event.at <= gang.checkpointed_at:
                return False
            gang.checkpointed_at = event.at
            return True
        fresh = {task for task in event.tasks if task in gang.charges} - gang.leaving
        gang.leaving |= fresh
        if fresh:
            self.leaving.add(event.job)
        return bool(fresh)

    def released(self, gang: Running) -> None:
        """Some of its tasks ended."""
        if not gang.charges:
            self.remove(gang)
        elif not gang.leaving:
            self.leaving.discard(gang.job)

    def below(self, queue: str, priority: int) -> Iterator[Running]:
        """The gangs of a queue with a lower priority that stay."""
        for level, gangs in self.by_queue.get(queue, {}).items():
            if level < priority:
                yield from (gang for gang in gangs.values() if gang.stays)

    def copy(self) -> Gangs:
        """An independent copy."""
        twin = Gangs()
        for gang in self.by_job.values():
            twin.add(gang.copy())
        twin.leaving = set(self.leaving)
        return twin

    def columns(self) -> list[tuple[object, ...]]:
        """All that is known of them, in the order of job ids."""
        return [
            (
                gang.job,
                gang.queue,
                gang.priority,
                gang.placed_at,
                gang.checkpointed_at,
                sorted(gang.leaving),
                gang.amounts,
                sorted(gang.cells.items()),
            )
            for _, gang in sorted(self.by_job.items())
        ]
