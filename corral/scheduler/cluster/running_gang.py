"""The running gangs, indexed by job, and by queue and priority for preemption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping

from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE
from corral.model.requests import DeviceRequest, GangRequest
from corral.scheduler.events import Checkpointed, GangPlaced, TasksLeaving
from corral.scheduler.placement.shape import gang_shape


class RunningGang:
    """One running gang; `amounts` are its holdings, as a queue resource vector."""

    __slots__ = (
        "amounts", "attempt", "cells", "charges", "checkpointed_at", "groups", "job", "leaving", "placed_at",
        "preemptible", "priority", "queue", "request", "shape", "user",
    )  # fmt: skip

    def __init__(self, event: GangPlaced, size: int) -> None:
        request = event.request
        self.job = request.job
        self.attempt = request.job_attempt
        self.queue = request.queue
        self.user = request.user
        self.groups = request.groups
        self.priority = request.priority
        self.preemptible = request.preemptible
        self.request = request if request.roles else None
        """The request of its tasks, including tasks it may still grow by; None if unknown."""
        self.shape: Hashable = None
        """The shape of its request, computed on first use."""
        self.placed_at = event.placed_at
        self.checkpointed_at = 0.0
        """When it last saved a checkpoint, in seconds since 1970; 0: never."""
        self.charges: dict[TaskKey, tuple[int, ...]] = {}
        self.amounts = [0] * size
        self.leaving: set[TaskKey] = set()
        self.cells: dict[TaskKey, tuple[str, ...]] = {}
        """For each task, the cells of its queue that guarantee its place; a task without cells is a guest."""

    @property
    def holder(self) -> tuple[str, str, tuple[str, ...]]:
        """Return the queue, user and groups that it counts against."""
        return (self.queue, self.user, self.groups)

    @property
    def guaranteed(self) -> bool:
        """Return whether any of its tasks is in cells of its queue."""
        return bool(self.cells)

    @property
    def stays(self) -> bool:
        """Return whether some of its tasks are not terminating."""
        return len(self.leaving) < len(self.charges)

    def join(self, request: GangRequest) -> None:
        """Merge the request of newly placed tasks into its own."""
        self.request, self.shape = joined(self.request, request if request.roles else None), None

    @property
    def elastic(self) -> bool:
        """Return whether it can run with fewer than all its tasks."""
        request = self.request
        return request is not None and any(role.minimum < len(role.indexes) for role in request.roles)

    def spare(self) -> Iterator[TaskKey]:
        """Yield the tasks it can spare, highest index first; each role keeps at least its minimum and one task."""
        for role in self.request.roles if self.request else ():
            held = sorted((key for key in self.charges.keys() - self.leaving if key.role == role.role), reverse=True)
            yield from held[: max(0, len(held) - max(role.minimum, 1))]

    def cost(self, now: float) -> float:
        """Return the device-seconds of work lost if it ends now, counted from its last checkpoint or its start.

        A gang without devices counts as one device.
        """
        since = self.placed_at if self.placed_at > self.checkpointed_at else self.checkpointed_at
        return (self.amounts[0] / DEVICE or 1.0) * (now - since) if now > since else 0.0

    def cost_of(self, tasks: Iterable[TaskKey], now: float) -> float:
        """Return the device-seconds of work lost if only these tasks end now."""
        devices = sum(self.charges[task][0] for task in tasks) / DEVICE or 1.0
        return devices * max(0.0, now - max(self.placed_at, self.checkpointed_at))

    def charge(self, task: TaskKey, amounts: tuple[int, ...]) -> None:
        """Add a task's amounts."""
        self.charges[task] = amounts
        for at, amount in enumerate(amounts):
            self.amounts[at] += amount

    def discharge(self, task: TaskKey) -> tuple[int, ...]:
        """Remove a task and return the amounts that it held."""
        amounts = self.charges.pop(task)
        self.leaving.discard(task)
        for at, amount in enumerate(amounts):
            self.amounts[at] -= amount
        return amounts

    def copy(self) -> RunningGang:
        """Return an independent copy."""
        twin = object.__new__(RunningGang)
        for name in RunningGang.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.charges, twin.amounts, twin.leaving = dict(self.charges), self.amounts[:], set(self.leaving)
        twin.cells = dict(self.cells)
        return twin


def joined(first: GangRequest | None, more: GangRequest | None) -> GangRequest | None:
    """Merge two requests of one gang: the tasks of both, with the larger minimum per role."""
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


Asked = tuple[int, DeviceRequest]
"""What one task asks for: thousandths of processors, and devices."""


class RunningGangs:
    """Every running gang, by job, and by queue and priority."""

    def __init__(self) -> None:
        self.by_job: dict[JobId, RunningGang] = {}
        self.by_queue: dict[str, dict[int, dict[JobId, RunningGang]]] = {}
        self.elastic: dict[str, dict[JobId, RunningGang]] = {}
        """For each queue, the gangs that can run with fewer than all their tasks."""
        self.leaving: set[JobId] = set()
        """The gangs with terminating tasks."""
        self._asked: Counter[Asked] | None = None
        """The answer of `asked`; None until somebody needs it."""
        self._by_shape: dict[Hashable, dict[JobId, RunningGang]] | None = None
        """The answer of `by_shape`; None until somebody needs it."""

    def add(self, gang: RunningGang) -> None:
        """Add a gang that now holds resources."""
        self.by_job[gang.job] = gang
        self.by_queue.setdefault(gang.queue, {}).setdefault(gang.priority, {})[gang.job] = gang
        self._count(gang, 1)
        self._index_shape(gang)
        self._index_elastic(gang)

    def join(self, gang: RunningGang, request: GangRequest) -> None:
        """Merge the request of newly placed tasks into that of their gang."""
        self._count(gang, -1)
        self._forget_shape(gang)
        gang.join(request)
        self._count(gang, 1)
        self._index_shape(gang)
        self._index_elastic(gang)

    def asked(self) -> Mapping[Asked, int]:
        """Return the number of tasks by what one asks for, those by which gangs may grow included.

        The first call counts all gangs. From then on each change of a gang is counted, in O(roles).
        """
        if self._asked is None:
            self._asked = Counter()
            for gang in self.by_job.values():
                self._count(gang, 1)
        return self._asked

    def _count(self, gang: RunningGang, sign: int) -> None:
        """Add the tasks of a gang to the count by what one asks for, or take them off."""
        if self._asked is None or gang.request is None:
            return
        for role in gang.request.roles:
            key = (role.cpu_millis, role.devices)
            self._asked[key] += sign * len(role.indexes)
            if not self._asked[key]:
                del self._asked[key]

    def by_shape(self) -> Mapping[Hashable, Mapping[JobId, RunningGang]]:
        """Return the gangs with a known request by the shape of it.

        The first call looks at all gangs. From then on each change of a gang is noted, in O(roles).
        """
        if self._by_shape is None:
            self._by_shape = {}
            for gang in self.by_job.values():
                self._index_shape(gang)
        return self._by_shape

    def _index_shape(self, gang: RunningGang) -> None:
        if self._by_shape is None or gang.request is None:
            return
        if gang.shape is None:
            gang.shape = gang_shape(gang.request)
        self._by_shape.setdefault(gang.shape, {})[gang.job] = gang

    def _forget_shape(self, gang: RunningGang) -> None:
        if self._by_shape is None or gang.request is None:
            return
        alike = self._by_shape[gang.shape]
        del alike[gang.job]
        if not alike:
            del self._by_shape[gang.shape]

    def _index_elastic(self, gang: RunningGang) -> None:
        if gang.elastic:
            self.elastic.setdefault(gang.queue, {})[gang.job] = gang

    def remove(self, gang: RunningGang) -> None:
        """Remove a gang that holds nothing any more."""
        del self.by_job[gang.job]
        self._count(gang, -1)
        self._forget_shape(gang)
        self.leaving.discard(gang.job)
        if self.elastic.get(gang.queue, {}).pop(gang.job, None) and not self.elastic[gang.queue]:
            del self.elastic[gang.queue]
        of_queue = self.by_queue[gang.queue]
        del of_queue[gang.priority][gang.job]
        if not of_queue[gang.priority]:
            del of_queue[gang.priority]
        if not of_queue:
            del self.by_queue[gang.queue]

    def hear(self, event: TasksLeaving | Checkpointed) -> bool:
        """Apply an eviction order or a checkpoint report; return whether it changed anything."""
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

    def released(self, gang: RunningGang) -> None:
        """Update the indexes after tasks of the gang ended."""
        if not gang.charges:
            self.remove(gang)
        elif not gang.leaving:
            self.leaving.discard(gang.job)

    def below(self, queue: str, priority: int) -> Iterator[RunningGang]:
        """Yield the gangs of a queue with a lower priority that are not wholly leaving."""
        for level, gangs in self.by_queue.get(queue, {}).items():
            if level < priority:
                yield from (gang for gang in gangs.values() if gang.stays)

    def consistent(self) -> bool:
        """Return whether `asked` and `by_shape` equal those of a new index, for tests and audits."""
        fresh = RunningGangs()
        for gang in self.by_job.values():
            fresh.add(gang)
        return fresh.asked() == self.asked() and fresh.by_shape() == self.by_shape()

    def copy(self) -> RunningGangs:
        """Return an independent copy."""
        twin = RunningGangs()
        for gang in self.by_job.values():
            twin.add(gang.copy())
        twin.leaving = set(self.leaving)
        twin._asked = None if self._asked is None else self._asked.copy()
        return twin

    def columns(self) -> list[tuple[object, ...]]:
        """Return the state of all gangs in the order of job ids, for hashing and comparing."""
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
