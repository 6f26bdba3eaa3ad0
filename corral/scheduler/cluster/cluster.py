"""The scheduler's model of all machines, updated from committed events and never rebuilt for a cycle."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE
from corral.model.inventory import Inventory, Node
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import Reason
from corral.model.requests import GangRequest
from corral.scheduler.cells.ownership_registry import Ownership
from corral.scheduler.cluster.allocation import Allocation, DeviceFraction, ExtraAllocation, task_allocation
from corral.scheduler.cluster.device_count import held
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.future_record import FutureRecord, Place
from corral.scheduler.cluster.running_gang import RunningGang, RunningGangs
from corral.scheduler.cluster.topology_tree import Tree
from corral.scheduler.events import (
    FOREVER,
    Checkpointed,
    ClusterEvent,
    EndedRecalled,
    EngineUnknown,
    GangPlaced,
    HistoryRecalled,
    JobOver,
    NodesSeen,
    QueuesConfigured,
    TasksLeaving,
    TasksReleased,
    UsageRecalled,
    WorkReported,
)
from corral.scheduler.policy.history import History
from corral.scheduler.queues.queue_tree import BASE, QueueTree

_MOST_FREED_PLACES = 1024
_NOTHING = Allocation(-1, 0, 1, 0, 0, 0)
"""What a task holds besides devices if its request is not known."""


class Hold(NamedTuple):
    """The resources that one task holds; of `devices`, those listed in `extra.shares` are held only in part."""

    node: str
    devices: int
    cpu: int
    memory: int
    shm: int
    tasks: int = 1
    extra: ExtraAllocation | None = None


class Cluster:
    """The held and free resources of every engine.

    It changes only by `apply`. Planning tries gangs on it and undoes them: `digest` is the same before and after.
    """

    def __init__(self) -> None:
        self.revision = 0
        """Counts the applied events."""
        self.freed_count = 0
        """Counts the events that may let a refused gang fit; a refusal stays valid until it changes."""
        self.machine_revision = 0
        """Counts those of them that changed machines or configuration."""
        self.freed_places: list[tuple[str, int]] = []
        """The last (engine, node position) pairs where resources were released."""
        self.release_count = 0
        """Counts all entries that `freed_places` ever had."""
        self.engines: dict[str, EngineIndex] = {}
        """By engine name, sorted."""
        self.queues = QueueTree()
        """The queues with their configured amounts and current usage."""
        self.gangs = RunningGangs()
        """The running gangs."""
        self.ownership = Ownership({}, {}, self.gangs)
        """Which virtual cluster owns which cells."""
        self.history = History()
        """What each job has received so far."""
        self.ends: list[tuple[float, JobId]] = []
        """The jobs with a bounded end, soonest first."""
        self.future = FutureRecord()
        """Since when holdings at times to come are known."""
        self._holds: dict[JobId, dict[TaskKey, Hold]] = {}
        self._ends_at: dict[JobId, float] = {}
        self._allocations: dict[JobId, list[tuple[EngineIndex, Allocation]]] = {}
        """The answers of `allocations` about all tasks; a cache."""
        self._seen: dict[str, Inventory] = {}
        self.refusals: dict[Hashable, list[Reason]] = {}
        """By gang shape, why it does not fit here; a cache that only the `emptied` copies use."""
        self.room_checks: dict[Hashable, object] = {}
        """By gang shape, how its room is told on these machines; a cache of `room_check`."""
        self._emptied: dict[tuple[bool, bool], Cluster] = {}

    def apply(self, event: ClusterEvent) -> None:
        """Fold one committed event.

        Raises Conflict when a placement gives away a device that is held: the events do not belong together.
        """
        match event:
            case NodesSeen(inventory=inventory):
                if not self._see(inventory):
                    return
                self._forget_machines()
                self.freed_count += 1
                self.machine_revision += 1
            case EngineUnknown(engine=engine, reason=reason):
                known = self.engines.get(engine)
                if known is None or known.unknown:
                    return
                known.set_unknown(reason or "the engine does not answer")
                self._forget_machines()
                self.freed_count += 1
                self.machine_revision += 1
            case GangPlaced():
                self._place(event)
            case TasksReleased():
                if not self._release(event.job, event.tasks, event.at):
                    return
                self.freed_count += 1
            case JobOver(job=job):
                self.history.forget(job)
                return
            case EndedRecalled(attained=attained):
                self.history.ended = self.history.ended.with_jobs(attained)
                return
            case TasksLeaving() | Checkpointed() | UsageRecalled() | WorkReported() | HistoryRecalled():
                if not self._hear(event):
                    return
            case QueuesConfigured(queues=queues):
                self._configure(QueueTree(queues).following(self.queues))
                self._own()
                self._forget_machines()
                self.freed_count += 1
                self.machine_revision += 1
        self.revision += 1

    def _forget_machines(self) -> None:
        """Drop what was kept about the machines and the configuration."""
        self._emptied = {}
        self.room_checks = {}

    def _hear(self, event: TasksLeaving | Checkpointed | UsageRecalled | WorkReported | HistoryRecalled) -> bool:
        """Apply an event about running gangs, past usage or history; return whether it changed anything."""
        if isinstance(event, HistoryRecalled):
            return self.history.recall(event.job, event.served)
        if isinstance(event, WorkReported):
            held = self.holds(event.job)
            size = (sum(hold.devices.bit_count() for hold in held.values()), len({hold.node for hold in held.values()}))
            return bool(held) and self.history.report(event, size)
        if isinstance(event, UsageRecalled):
            self.queues.recall(event.usages)
            self.queues.users.recall(event.of_users)
            return True
        return self.gangs.hear(event)

    def _own(self) -> None:
        """Rebuild cell ownership and rebind guaranteed tasks.

        A task in a cell that its queue no longer owns becomes a guest.
        """
        for engine in self.engines.values():
            engine.forget_views()
        self.ownership = Ownership(self.queues.specs, self.engines, self.gangs)

    def holds(self, job: JobId) -> dict[TaskKey, Hold]:
        """Return the holdings of a job by task; empty if it holds nothing."""
        return self._holds.get(job, {})

    def allocations(self, job: JobId, *, without: Collection[TaskKey] = ()) -> list[tuple[EngineIndex, Allocation]]:
        """Return a job's holdings without some tasks, as (engine index, allocation) pairs; missing nodes are left out.

        The list must not be changed.
        """
        known = None if without else self._allocations.get(job)
        if known is not None:
            return known
        holds = [hold for task, hold in self.holds(job).items() if task not in without]
        at_nodes = [(self._engine_of(hold.node), hold) for hold in holds]
        found = [(at[0], _allocation(at[1], hold)) for at, hold in at_nodes if at is not None]
        if found and not without:
            self._allocations[job] = found
        return found

    def holders(self) -> dict[str, dict[int, tuple[JobId, TaskKey]]]:
        """Return for each node and device index the job and task that hold the device."""
        out: dict[str, dict[int, tuple[JobId, TaskKey]]] = {}
        for job, tasks in self._holds.items():
            for task, hold in tasks.items():
                for device in indexes(hold.devices):
                    out.setdefault(hold.node, {})[device] = (job, task)
        return out

    def devices_of(self, placement: Placement) -> list[int]:
        """Return the thousandths of a placement's devices: in total, then for each model that the queues name."""
        total = [0] * (1 + len(self.queues.models))
        for task in placement.tasks:
            hold = _hold(task, sum(1 << device for device in task.devices), _NOTHING)
            devices, _, _, *of_models = self._amounts(hold)
            total = [was + more for was, more in zip(total, (devices, *of_models), strict=True)]
        return total

    def nodes(self) -> tuple[Node, ...]:
        """Return every known node, by engine in topology order."""
        return tuple(node for engine in self.engines.values() for node in engine.tree.nodes)

    def inventories(self) -> tuple[Inventory, ...]:
        """Return the last seen machines of every engine."""
        return tuple(self._seen.values())

    def fork(self) -> Cluster:
        """Return an independent copy: events applied to one do not affect the other."""
        twin = Cluster()
        twin.revision, twin.freed_count, twin.machine_revision = self.revision, self.freed_count, self.machine_revision
        twin.freed_places, twin.release_count = self.freed_places[:], self.release_count
        twin.engines = {name: engine.copy() for name, engine in self.engines.items()}
        twin.queues, twin.gangs = self.queues.copy(), self.gangs.copy()
        twin.history = self.history.copy()
        twin._own()
        twin.ends, twin.future = self.ends[:], self.future.copy()
        twin._holds = {job: dict(tasks) for job, tasks in self._holds.items()}
        twin._ends_at = dict(self._ends_at)
        twin._seen = dict(self._seen)
        return twin

    def emptied(self, *, healed: bool, owned: bool = False) -> Cluster:
        """Return the same machines with nothing running; with `healed`, all of them are healthy and known.

        `owned` adds the cells that virtual clusters own. The copy is shared until the machines change: callers may try
        and undo on it, but must apply no event.
        """
        twin = self._emptied.get((healed, owned))
        if twin is None:
            twin = self._emptied[healed, owned] = Cluster()
            twin.engines = {name: engine.emptied(healed=healed) for name, engine in self.engines.items()}
            twin.queues = QueueTree(self.queues.specs.values())
            twin._measure(twin.queues)
            if owned:
                twin._own()
        return twin

    def digest(self) -> str:
        """Return a hash of the whole state, independent of the order in which dictionaries were filled."""
        state = (
            self.revision,
            self.freed_count,
            [(name, self._seen[name], str(index.columns())) for name, index in self.engines.items()],
            sorted((job, sorted(tasks.items())) for job, tasks in self._holds.items()),
            self.ends,
            self.queues.columns(),
            [self.queues.past_use(node) for node in self.queues.decaying],
            [*self.queues.users.usages()],
            self.gangs.columns(),
            self.history.columns(),
            self.history.ended.parts,
            str(self.ownership.columns()),
        )
        return blake2b(msgspec.json.encode(state, order="deterministic", enc_hook=str), digest_size=16).hexdigest()

    def consistent(self) -> bool:
        """Return whether all indexes equal a rebuild from inventories and holdings, for tests and audits."""
        if not self.gangs.consistent():
            return False
        kept_apart, self._allocations = self._allocations, {}
        if any(self.allocations(job) != found for job, found in kept_apart.items()):
            return False
        rebuilt = Cluster()
        for inventory in self._seen.values():
            rebuilt._index(inventory, self._holds)
        for name, engine in self.engines.items():
            if engine.unknown:
                rebuilt.engines[name].set_unknown(engine.unknown)
        rebuilt.gangs, rebuilt._holds = self.gangs.copy(), self._holds
        rebuilt._configure(QueueTree(self.queues.specs.values()))
        if rebuilt.queues.columns() != self.queues.columns() or rebuilt.gangs.columns() != self.gangs.columns():
            return False
        rebuilt._own()
        if rebuilt.gangs.columns() != self.gangs.columns() or rebuilt.ownership.columns() != self.ownership.columns():
            return False
        kept = {name: engine.columns() for name, engine in self.engines.items()}
        fresh = {name: engine.columns() for name, engine in rebuilt.engines.items()}
        views = [view for engine in self.engines.values() for view in (engine, *engine.views)]
        return kept == fresh and all(view.consistent() for view in views)

    def _see(self, inventory: Inventory) -> bool:
        known = self.engines.get(inventory.engine)
        if known is not None and not known.unknown and self._seen[inventory.engine] == inventory:
            return False
        if known is None or not known.refresh(inventory):
            self._index(inventory, self._holds)
            self._own()
        self._seen[inventory.engine] = inventory
        had_slices = self.queues.has_slices
        self._measure(self.queues)
        if self.queues.models or self.queues.has_slices or had_slices:
            self._configure(self.queues.cleared())
        return True

    def _configure(self, queues: QueueTree) -> None:
        """Install new queues and recount the usage of every gang."""
        self.queues = queues
        self._measure(queues)
        for gang in self.gangs.by_job.values():
            gang.amounts = [0] * len(queues.names)
            for task in list(gang.charges):
                gang.charge(task, self._amounts(self._holds[gang.job][task]))
            queues.charge(gang.queue, gang.user, gang.groups, gang.amounts)

    def _amounts(self, hold: Hold) -> tuple[int, ...]:
        """Return a task's holdings as a queue resource vector; devices of a node that is gone have no model."""
        models = self.queues.models
        shares = hold.extra.shares if hold.extra is not None else ()
        if not (models or shares or self.queues.has_slices):
            return (hold.devices.bit_count() * DEVICE, hold.cpu, hold.memory)
        found = self._engine_of(hold.node)
        known = found[0].tree.nodes[found[1]].devices if found else ()
        devices, *of_models = held(known, hold.devices, shares, ("devices", *models))
        return (devices, hold.cpu, hold.memory, *of_models)

    def _measure(self, queues: QueueTree) -> None:
        """Set the total capacity of the queues; slices count only as devices of their own model."""
        queues.trees = tuple(engine.tree for engine in self.engines.values())
        queues.has_slices = any(tree.slice_conflicts for tree in queues.trees)
        nodes = [node for tree in queues.trees for node in tree.nodes]
        devices = sum(len(node.devices) for node in nodes)
        if queues.has_slices:
            devices -= sum(device.parent >= 0 for node in nodes for device in node.devices)
        queues.total = [
            devices * DEVICE,
            sum(node.cpu_millis for node in nodes),
            sum(node.memory_bytes for node in nodes),
        ]
        for name in queues.names[len(BASE) :]:
            model = name.removeprefix("devices/")
            queues.total.append(DEVICE * sum(device.model == model for node in nodes for device in node.devices))

    def _index(self, inventory: Inventory, holds: dict[JobId, dict[TaskKey, Hold]]) -> None:
        """Build the index of an engine; holdings on a node that disappeared count again when it comes back."""
        index = EngineIndex(Tree(inventory))
        for tasks in holds.values():
            for hold in tasks.values():
                at = index.tree.position.get(hold.node)
                if at is not None:
                    index.add(_allocation(at, hold))
        self._allocations.clear()
        self.engines[inventory.engine] = index
        self.engines = dict(sorted(self.engines.items()))

    def _place(self, event: GangPlaced) -> None:
        request = event.request
        job = request.job
        tasks = self._holds.setdefault(job, {})
        self._allocations.pop(job, None)
        gang, places = self.gangs.by_job.get(job), set[Place]()
        joins = gang is not None
        if gang is None:
            gang = RunningGang(event, len(self.queues.names))
            self.gangs.add(gang)
        else:
            self.gangs.join(gang, request)
            self.future.note_early()
        before = gang.amounts[:]
        by_role = {role.role: task_allocation(request, role) for role in request.roles}
        for placed in event.placement.tasks:
            mask = sum(1 << device for device in placed.devices)
            index = self._engine_of(placed.node)
            hold = _hold(placed, mask, by_role.get(placed.role, _NOTHING))
            key = placed.key
            if tasks.get(key) == hold:
                continue
            allocation = _allocation(index[1], hold) if index is not None else None
            if key in tasks or (index is not None and allocation is not None and not index[0].may_add(allocation)):
                raise Conflict(
                    "device-held-twice",
                    f"{job} {key} was given what is held on {placed.node}; rebuild the index from the store.",
                )
            tasks[key] = hold
            gang.charge(key, self._amounts(hold))
            if placed.cells and self.ownership.hold(gang, key, placed.cells):
                gang.cells[key] = placed.cells
            if index is not None and allocation is not None:
                index[0].add(allocation)
                places.add((index[0].tree.engine, index[1]))
        if not joins:
            self.future.note(event.ends_at, places)
        more = [now - was for now, was in zip(gang.amounts, before, strict=True)]
        self.queues.remember(gang.queue, gang.user, event.placed_at)
        self.queues.charge(gang.queue, gang.user, gang.groups, more)
        self.history.holds(job, gang.amounts[0], event.placed_at, self.model_of(job))
        if event.ends_at < self._ends_at.get(job, FOREVER):
            self._forget_end(job)
            self._ends_at[job] = event.ends_at
            insort(self.ends, (event.ends_at, job))

    def device_models(self, node: str) -> dict[int, str]:
        """Return the models of a node's devices by index; empty for a node that is gone."""
        at = self._engine_of(node)
        return {device.index: device.model for device in at[0].tree.nodes[at[1]].devices} if at is not None else {}

    @property
    def names_models(self) -> bool:
        """Return whether any device, or slice of one, has a model."""
        return any(index.tree.names_models for index in self.engines.values())

    def model_of(self, job: JobId) -> str:
        """Return the one model of all devices that a job holds; "" if they are of several, or it holds none."""
        if all(index.tree.models in ((), ("",)) for index in self.engines.values()):
            return ""
        found: set[str] = set()
        for hold in self.holds(job).values():
            models = self.device_models(hold.node) if hold.devices else {}
            found |= {model for index, model in models.items() if hold.devices >> index & 1}
        return found.pop() if len(found) == 1 else ""

    def _release(self, job: JobId, keys: tuple[TaskKey, ...], at: float) -> bool:
        tasks = self._holds.get(job)
        if tasks is None:
            return False
        gang = self.gangs.by_job[job]
        released = [(key, tasks.pop(key)) for key in keys if key in tasks]
        if not released:
            return False
        self._allocations.pop(job, None)
        if at >= self._ends_at.get(job, FOREVER):
            self.future.note(-FOREVER)
        else:
            self.future.note_early()
        self.queues.remember(gang.queue, gang.user, at)
        for key, hold in released:
            self.ownership.release(gang, key)
            self.queues.charge(gang.queue, gang.user, gang.groups, gang.discharge(key), -1)
            index = self._engine_of(hold.node)
            if index is not None:
                index[0].remove(_allocation(index[1], hold))
                self._note_freed(index[0].tree.engine, index[1])
        self.gangs.released(gang)
        self.history.released(job, gang.amounts[0], at, wholly=not tasks, model=self.model_of(job))
        if not tasks:
            del self._holds[job]
            self._forget_end(job)
        return True

    def freed_since(self, count: int) -> set[tuple[str, int]] | None:
        """Return where resources were released after `release_count` was `count`; None if the record begins later."""
        new = self.release_count - count
        return set(self.freed_places[len(self.freed_places) - new :]) if new <= len(self.freed_places) else None

    def _note_freed(self, engine: str, at: int) -> None:
        self.freed_places.append((engine, at))
        self.release_count += 1
        if len(self.freed_places) > 2 * _MOST_FREED_PLACES:
            del self.freed_places[:_MOST_FREED_PLACES]

    def _forget_end(self, job: JobId) -> None:
        ends_at = self._ends_at.pop(job, None)
        if ends_at is not None:
            del self.ends[bisect_left(self.ends, (ends_at, job))]

    def _engine_of(self, node: str) -> tuple[EngineIndex, int] | None:
        """Return the engine index and position of a node; node ids are `engine/node`."""
        for index in self.engines.values():
            at = index.tree.position.get(node)
            if at is not None:
                return index, at
        return None


def placed_allocation(placed: TaskPlacement, at: int, held: Allocation) -> Allocation:
    """Return the allocation of a task on the node at a position; `held` are its holdings besides devices."""
    return _allocation(at, _hold(placed, sum(1 << device for device in placed.devices), held))


def placed_again(gang: RunningGang, holds: Mapping[TaskKey, Hold]) -> GangPlaced:
    """Return a placement event that describes a gang's current holdings.

    Tasks that hold device shares are left out.
    """
    tasks = tuple(
        TaskPlacement(task.role, task.index, hold.node, tuple(indexes(hold.devices)), cells=gang.cells.get(task, ()))
        for task, hold in sorted(holds.items())
        if not (hold.extra and hold.extra.shares)
    )
    request = gang.request or GangRequest(gang.job, gang.attempt, "", "", 0, 0.0, ())
    placed = msgspec.structs.replace(request, queue=gang.queue, priority=gang.priority)
    return GangPlaced(placed, Placement(tasks), gang.placed_at)


def _hold(placed: TaskPlacement, mask: int, held: Allocation) -> Hold:
    """Return the holdings of a placed task; `held` are those besides devices."""
    extra = held.extra
    if placed.share is not None and placed.devices:
        parts = tuple(DeviceFraction(each, placed.share.compute, placed.share.memory) for each in placed.devices)
        extra = (extra or ExtraAllocation())._replace(shares=parts)
    return Hold(placed.node, mask, held.cpu, held.memory, held.shm, held.tasks, extra)


def _allocation(at: int, hold: Hold) -> Allocation:
    whole = 0 if hold.extra is not None and hold.extra.shares else hold.devices
    return Allocation(at, whole, hold.tasks, hold.cpu, hold.memory, hold.shm, hold.extra)
