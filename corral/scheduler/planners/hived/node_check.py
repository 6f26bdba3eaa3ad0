"""Check that HiveD's places meet a task's requirements besides devices, which HiveD does not count."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import Reason
from corral.model.requests import ALONE, GangRequest, RoleRequest
from corral.scheduler.cluster.allocation import task_allocation
from corral.scheduler.cluster.cluster import placed_allocation
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.node_fit import fitting_devices
from corral.scheduler.placement.shape import TaskShape, task_shape
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.hived.algorithm import PodPlacement
from corral.scheduler.planners.hived.pod_mapping import BoundTask, written
from corral.scheduler.planners.hived.state_fold import Hived
from corral.spec.placement import network, sharing, topology

_MOST_SHAPES = 256


def not_in_hived(request: GangRequest) -> Reason | None:
    """Return the reason naming requested features that HiveD does not support; None if there are none."""
    requirements = [
        *topology.outside_hived("the job", request.topology),
        *(
            requirement
            for role in request.roles
            for requirement in topology.outside_hived(f"role {role.role}", role.topology)
        ),
        *(requirement for role in request.roles for requirement in _devices(role)),
    ]
    models: dict[str, set[str]] = defaultdict(set)
    for role in request.roles:
        if role.devices.count and role.affinity != ALONE:
            models[role.affinity].add(role.devices.model)
    if any(len(each) > 1 for each in models.values()):
        requirements.append("devices of several models in one affinity group")
    requirements += sharing.outside_hived(request.company)
    requirements += network.outside_hived(request.network_rdma)
    if not requirements:
        return None
    message = f"The policy in force is hived, and HiveD does not know what the job asks for: {'; '.join(requirements)}."
    return Reason("not-in-hived", message, {"wishes": len(requirements)})


def _devices(role: RoleRequest) -> list[str]:
    requirements = []
    if role.devices.ids:
        requirements.append(f"named devices for role {role.role}")
    if role.devices.share is not None:
        requirements.append(f"parts of devices for role {role.role}")
    return requirements


class NodeChecker:
    """Checks the nodes of HiveD's engine, and holds placed tasks in the trial."""

    def __init__(self, trial: Trial, hived: Hived) -> None:
        self.trial = trial
        self.hived = hived
        found = trial.cluster.engines.get(hived.engine)
        self.index: EngineIndex | None = None if found is None or found.unknown else found
        self.names = frozenset(hived.algorithm.nodes)
        self.blamed: set[str] = set()
        """The nodes, by HiveD's names, that made the last placement fail."""

    def free(self) -> tuple[int, int]:
        """Return the number of free devices and of all devices."""
        assert self.index is not None
        nodes = self.index.tree.nodes
        return sum(mask.bit_count() for mask in self.index.free), sum(len(node.devices) for node in nodes)

    def unfit(self, request: GangRequest, *, emptied: bool) -> set[str]:
        """Return the nodes that take no task with devices of the gang, now or (with `emptied`) when empty."""
        index = self.trial.cluster.emptied(healed=False).engines[self.hived.engine] if emptied else self.index
        assert index is not None
        shapes = sorted({task_shape(role) for role in request.roles if role.devices.count}, key=repr)
        first, *others = [self._unfit_for(shape, index, emptied=emptied) for shape in shapes]
        return first.intersection(*others)

    def _unfit_for(self, shape: TaskShape, index: EngineIndex, *, emptied: bool) -> set[str]:
        """Return the unfit nodes for one shape, checking only nodes that changed since the last call."""
        memory, key = self.hived.unfit, (shape, emptied)
        kept = memory.pop(key, None)
        begun = index.changes - len(index.journal)
        positions: Iterable[int] = range(len(index.tree.nodes))
        unfit = set(self.names)
        if kept is not None and kept[0] is index and kept[1] >= begun:
            positions, unfit = set(index.journal[kept[1] - begun :]), kept[2]
        elif len(memory) >= _MOST_SHAPES:
            memory.clear()
        for at in positions:
            name = index.tree.nodes[at].name.removeprefix(f"{self.hived.engine}/")
            if name in self.names:
                (unfit.discard if _takes(index, shape, at, emptied=emptied) else unfit.add)(name)
        # a count from within a trial holds, as each plan of HiveD is committed as it was tried
        memory[key] = (index, index.changes, unfit)
        return unfit

    def place(
        self, request: GangRequest, places: Sequence[PodPlacement], chain: str, pinned: str, demoted: tuple[JobId, ...]
    ) -> Placement | str:
        """Place the gang's pods here and hold them in the trial.

        On failure it returns the lack of a node in words, sets `blamed`, and holds nothing.
        """
        assert self.index is not None
        marks = self.index.mark()
        rest = [role for role in request.roles if not role.devices.count]
        tasks = [_task(self.hived.engine, *each, chain, pinned) for each in _matched(request, places)]
        self.blamed = set()
        lacking = self._hold(request, tasks)
        if not lacking and rest:
            others = self.trial.place(_with_roles(request, rest))
            if others is None:
                lacking = "its tasks without devices find no room beside"
            else:
                tasks += others.tasks
        if lacking:
            self.index.undo(marks)
            return lacking
        return Placement(self.ordered(tasks), demoted=demoted)

    def ordered(self, tasks: Sequence[TaskPlacement]) -> tuple[TaskPlacement, ...]:
        """Return the tasks numbered along the topology."""
        found = sorted(tasks, key=lambda task: (self._position(task.node), task.devices, task.role, task.index))
        return tuple(msgspec.structs.replace(each, order=at) for at, each in enumerate(found))

    def _hold(self, request: GangRequest, tasks: Sequence[TaskPlacement]) -> str:
        """Hold the resources of the tasks; return the lack of the first unsuitable node in words, or ""."""
        assert self.index is not None
        shapes = {role.role: task_shape(role) for role in request.roles}
        held = {role.role: task_allocation(request, role) for role in request.roles}
        for task in tasks:
            at = self.index.tree.position.get(task.node, -1)
            lacking = self._lacks(shapes[task.role], at, sum(1 << device for device in task.devices))
            if lacking:
                self.blamed = {task.node.removeprefix(f"{self.hived.engine}/")}
                return f"{task.node} {lacking}"
            self.index.take(placed_allocation(task, at, held[task.role]))
        return ""

    def _lacks(self, shape: TaskShape, at: int, devices: int) -> str:
        index = self.index
        assert index is not None
        if at < 0:
            return "is not there any more"
        if not index.usable[at]:
            return f"takes no task ({index.tree.nodes[at].ready_reason or 'not ready'})"
        if index.free[at] & devices != devices:
            return "has them in use by what HiveD does not know of"
        if fitting_devices(index.tree, shape)[at] & devices != devices:
            return "has not the devices, labels or taints that it asks for"
        if index.tasks[at] < 1 or not index.slots(shape).amounts_room(index, at, 1):
            return "has not the processors, memory or other resources that it asks for"
        return ""

    def _position(self, node: str) -> int:
        assert self.index is not None
        return self.index.tree.position.get(node, len(self.index.tree.nodes))


def _takes(index: EngineIndex, shape: TaskShape, at: int, *, emptied: bool) -> bool:
    """Return whether a node meets the needs of a task shape, except for free devices."""
    if not emptied and (not index.usable[at] or index.tasks[at] < 1):
        return False
    slots = index.slots(shape)
    fits = fitting_devices(index.tree, shape)[at].bit_count() >= shape.devices
    return bool(index.tree.nodes[at].ready and fits and slots.amounts_room(index, at, 1))


def _matched(request: GangRequest, places: Sequence[PodPlacement]) -> list[tuple[TaskKey, PodPlacement]]:
    """Match each task that needs devices to a place of its size, both in order."""
    left: dict[int, deque[PodPlacement]] = defaultdict(deque)
    for place in places:
        left[len(place.devices)].append(place)
    return [
        (TaskKey(role.role, index), left[role.devices.count].popleft())
        for role in request.roles
        if role.devices.count
        for index in role.indexes
    ]


def _task(engine: str, key: TaskKey, place: PodPlacement, chain: str, pinned: str) -> TaskPlacement:
    cells = written(BoundTask(chain, pinned, place.owned_types))
    return TaskPlacement(key.role, key.index, f"{engine}/{place.node}", place.devices, cells=cells)


def _with_roles(request: GangRequest, roles: Sequence[RoleRequest]) -> GangRequest:
    return msgspec.structs.replace(request, roles=tuple(roles))
