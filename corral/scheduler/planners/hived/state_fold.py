"""Keep HiveD's state for one engine up to date from the same committed events as the indexes.

Planning must not change it, but tries one gang after another. It therefore works on a *draft*, a copy to which every
event that planning expects is applied in advance. If those events are then folded here in the same order, the draft
remains a true copy. If others are folded, it is dropped, and the next planning copies again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from corral.kernel.garbage import uncollected
from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Inventory
from corral.model.placement import TaskPlacement
from corral.model.plan import CellsReserved
from corral.model.requests import GangRequest
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.events import GangPlaced, NodesSeen, NominationLapsed, TasksReleased
from corral.scheduler.planners.hived.algorithm import (
    Bind,
    Changes,
    Group,
    GroupState,
    HivedAlgorithm,
    Phase,
    PodPlacement,
    PodRequest,
)
from corral.scheduler.planners.hived.pod_index import Pods
from corral.scheduler.planners.hived.pod_mapping import (
    bind_of,
    group_name,
    job_in,
    label_for,
    label_of,
    model_of,
    pod_name,
    pods_of,
    read,
    sizes_of,
)
from corral.scheduler.planners.hived.settings import HivedSettings

HivedEvent = NodesSeen | GangPlaced | TasksReleased | CellsReserved | NominationLapsed


class Hived:
    """The cells, virtual clusters and groups of one engine; changed only by `apply`."""

    def __init__(self, configured: HivedSettings) -> None:
        """Start with nothing running and every node bad until it is seen.

        Raises InvalidInput with the numbers when the virtual clusters own more than there is.
        """
        self.engine = configured.engine
        self.lazy_preemption = configured.lazy_preemption
        with uncollected():
            self.algorithm = HivedAlgorithm(configured.cluster)
            for node in self.algorithm.nodes:
                self.algorithm.set_node_health(node, healthy=False)
        self.changes: Changes | None = None
        """The effects of the last configuration on the groups that ran."""
        self.unfit: dict[Hashable, tuple[EngineIndex, int, set[str]]] = {}
        """For each shape, the nodes that take no task of it, with the index and change count of that check; a cache."""
        self._pods = Pods()
        self._draft: Hived | None = None
        self._expected: list[HivedEvent] = []

    def reconfigured(self, configured: HivedSettings, at: float = 0.0) -> Hived:
        """Return the same engine on another configuration with all running groups; this one is not changed.

        Raises InvalidInput as the constructor does.
        """
        twin = object.__new__(Hived)
        twin.engine, twin.lazy_preemption = configured.engine, configured.lazy_preemption
        with uncollected():
            twin.algorithm, twin.changes = self.algorithm.reconfigured(configured.cluster, now=at)
            for node in set(twin.algorithm.nodes) - set(self.algorithm.nodes):
                twin.algorithm.set_node_health(node, healthy=False)
        twin._pods = self._pods.copy()
        twin._draft, twin._expected, twin.unfit = None, [], {}
        return twin

    def copy(self) -> Hived:
        """Return an independent copy: O(cells)."""
        twin = object.__new__(Hived)
        twin.engine, twin.lazy_preemption, twin.changes = self.engine, self.lazy_preemption, self.changes
        with uncollected():
            twin.algorithm = self.algorithm.copy()
        twin._pods = self._pods.copy()
        twin._draft, twin._expected, twin.unfit = None, [], {}
        return twin

    def draft(self) -> Hived:
        """Return a true copy for planning; events applied to it with `expect` should be applied here next."""
        if self._draft is None or self._expected:
            self._draft, self._expected = self.copy(), []
        return self._draft

    def expect(self, event: HivedEvent) -> bool:
        """Apply an event to the draft that is going to be committed; return whether it changed anything."""
        assert self._draft is not None
        changed = self._draft._fold(event)
        if changed:
            self._expected.append(event)
        return changed

    def abandon(self) -> None:
        """Drop the draft, because its events will not be committed."""
        self._draft, self._expected = None, []

    def apply(self, event: HivedEvent) -> bool:
        """Fold one committed event; return whether it changed anything.

        Raises Conflict when a device was given twice: the events do not belong together.
        """
        changed = self._fold(event)
        if changed and self._draft is not None:
            if not self._expected:
                self._draft._fold(event)
            elif _same(self._expected[0], event):
                del self._expected[0]
            else:
                self.abandon()
        return changed

    def group_of(self, job: JobId, tasks: Iterable[TaskKey], label: str = "") -> str:
        """Return the name of the group that tasks of one label belong to or would form.

        The first group of a label has no task in its name.
        """
        first = min(tasks)
        reserved = self._pods.of(job).get(first)
        if reserved is not None:
            return reserved.group
        return group_name(job, label, first if self._pods.alike(job, label) else None)

    def group_for(self, part: GangRequest) -> str:
        """Return the group name of a gang, or of one of its affinity groups."""
        return self.group_of(part.job, part.tasks, label_for(part))

    def demoted(self) -> tuple[JobId, ...]:
        """Return the jobs that lost their guarantee through the last configuration."""
        changes = self.changes
        return tuple(dict.fromkeys(job_in(group) for group in changes.lazily_preempted)) if changes is not None else ()

    def preemptor(self, job: JobId) -> str:
        """Return the group that took a job's guarantee (its own for a new configuration); "" for none."""
        lost = (self.algorithm.groups.get(pod.group) for pod in self._pods.of(job).values())
        return next(
            (group.lazily_preempted_by for group in lost if group is not None and group.lazily_preempted_by), ""
        )

    def lost(self) -> tuple[JobId, ...]:
        """Return the jobs that keep running without the guarantee they had."""
        return tuple(
            dict.fromkeys(job_in(group.name) for group in self.algorithm.groups.values() if group.lazily_preempted_by)
        )

    def recall_loss(self, job: JobId, by: str, at: float) -> None:
        """Restore after a restart which group took a job's guarantee, and when."""
        for name in dict.fromkeys(pod.group for pod in self._pods.of(job).values()):
            group = self.algorithm.groups.get(name)
            if group is not None and group.lazily_preempted_by:
                group.lazily_preempted_by, group.lazily_preempted_at = by or group.lazily_preempted_by, at

    def pods(self, job: JobId) -> Mapping[TaskKey, PodRequest]:
        """Return the pods of a job that run or have cells reserved."""
        return self._pods.of(job)

    def empty_places(self, job: JobId, sizes: Sequence[int], label: str = "") -> Group | None:
        """Return a running group of that label with enough ended pods of these sizes to reuse their places."""
        for name in dict.fromkeys(pod.group for pod in self._pods.alike(job, label).values()):
            group = self.algorithm.groups.get(name)
            if group is None or group.state is GroupState.PREEMPTING:
                continue
            left = [slot.size for slot in group.slots if slot.pod is None]
            if all(left.count(size) >= sizes.count(size) for size in sizes):
                return group
        return None

    def digest(self) -> str:
        """Return a hash of everything that later decisions depend on."""
        return self.algorithm.digest()

    def _fold(self, event: HivedEvent) -> bool:
        match event:
            case NodesSeen(inventory=inventory):
                return self._see(inventory)
            case GangPlaced():
                return self._place(event)
            case TasksReleased(job=job, tasks=tasks):
                return self._release(job, tasks)
            case CellsReserved():
                return self._reserve(event)
            case NominationLapsed(job=job):
                return self._cancel(job)

    def _see(self, inventory: Inventory) -> bool:
        if inventory.engine != self.engine:
            return False
        bad_before = (set(self.algorithm.state.bad_nodes), set(self.algorithm.state.bad_devices))
        known = {node.name.removeprefix(f"{self.engine}/"): node for node in inventory.nodes}
        for name in self.algorithm.nodes:
            node = known.get(name)
            self.algorithm.set_node_health(name, healthy=node is not None and node.ready)
            for device in node.devices if node is not None else ():
                self.algorithm.set_device_health(name, device.index, healthy=device.healthy)
        return bad_before != (self.algorithm.state.bad_nodes, self.algorithm.state.bad_devices)

    def _place(self, event: GangPlaced) -> bool:
        mine = self._pods.of(event.job)
        tasks = [
            task
            for task in event.placement.tasks
            if task.devices and task.share is None and task.node.startswith(f"{self.engine}/")
        ]
        tasks = [task for task in tasks if (pod := mine.get(task.key)) is None or not self._runs(pod)]
        if not tasks:
            return False
        parts = _by_label(event, tasks)
        label, first = next(iter(parts.items()))
        by = self.group_of(event.job, [task.key for task in first], label)
        for job in event.placement.demoted:
            for name in dict.fromkeys(pod.group for pod in self._pods.of(job).values()):
                self.algorithm.demote(name, by, now=event.placed_at)
        for label, part in parts.items():
            if not self._rejoin(event, part, label):
                self._start(event, part, label)
        return True

    def _runs(self, pod: PodRequest) -> bool:
        group = self.algorithm.groups.get(pod.group)
        return group is not None and any(each.pod == pod.pod for each in group.pods)

    def _rejoin(self, event: GangPlaced, tasks: Sequence[TaskPlacement], label: str) -> bool:
        """Start tasks in places of a running group that other tasks of the job left; False if they do not match."""
        group = self.empty_places(event.job, [len(task.devices) for task in tasks], label)
        if group is None:
            return False
        free = {(slot.node, slot.devices): slot for slot in group.slots if slot.pod is None}
        if any((task.node.removeprefix(f"{self.engine}/"), task.devices) not in free for task in tasks):
            return False
        for task in tasks:
            pod = replace(group.pods[0], pod=pod_name(event.job, task.key), leaves=len(task.devices))
            self._bind(event, task, pod, group.placements())
        return True

    def _start(self, event: GangPlaced, tasks: Sequence[TaskPlacement], label: str) -> None:
        """Account for a group that starts, or that ran before a restart."""
        name = self.group_of(event.job, [task.key for task in tasks], label)
        bound = read(tasks[0].cells)
        pods = pods_of(
            event.job,
            event.request.queue,
            event.request.priority,
            [(task.key, len(task.devices)) for task in tasks],
            name,
            lazy_preemption=self.lazy_preemption or event.request.lazy_preemption,
            pinned_cell=bound.pinned_cell,
        )
        self._forget_waiting(event.job, label)
        places = bind_of(self.engine, tasks).group
        kept = self.algorithm.groups.get(name)
        if kept is not None and _where(kept.placements()) == _where(places):
            places = kept.placements()
        elif kept is not None:
            self.algorithm.cancel(name)
        for task in tasks:
            self._bind(event, task, pods[task.key], places)

    def _bind(self, event: GangPlaced, task: TaskPlacement, pod: PodRequest, places: tuple[PodPlacement, ...]) -> None:
        node, chain = task.node.removeprefix(f"{self.engine}/"), read(task.cells).chain
        self.algorithm.add_allocated(pod, Bind(node, task.devices, chain, places), now=event.placed_at)
        self._pods.put(event.job, task.key, pod)

    def _release(self, job: JobId, tasks: Iterable[TaskKey]) -> bool:
        changed = False
        for task in tasks:
            pod = self._pods.drop(job, task)
            if pod is None:
                continue
            changed = True
            if self._runs(pod):
                self.algorithm.delete_allocated(pod)
            else:
                self.algorithm.delete_unallocated(pod)
        return changed

    def _reserve(self, event: CellsReserved) -> bool:
        request = event.request
        name = self.group_for(request)
        pods = pods_of(
            request.job,
            request.queue,
            request.priority,
            sizes_of(request),
            name,
            leaf_type=model_of(request),
            lazy_preemption=self.lazy_preemption or request.lazy_preemption,
            pinned_cell=event.pinned_cell,
        )
        without = {node.removeprefix(f"{self.engine}/") for node in event.without}
        suggested = set(self.algorithm.nodes) - without
        for pod in pods.values():
            self.algorithm.schedule(pod, suggested, Phase.PREEMPTING, now=event.at, keep=event.beside_others)
        group = self.algorithm.groups.get(name)
        if group is None:
            return False
        self._forget_waiting(request.job, label_for(request))
        for task, pod in pods.items():
            self._pods.put(request.job, task, pod)
        return True

    def _forget_waiting(self, job: JobId, label: str) -> None:
        """Forget the pods of a label that do not run, because cells are now reserved for others of it, or for none."""
        for task in [task for task, pod in self._pods.alike(job, label).items() if not self._runs(pod)]:
            self._pods.drop(job, task)

    def _cancel(self, job: JobId) -> bool:
        """Cancel the preemption by a job."""
        mine = dict(self._pods.of(job))
        names = dict.fromkeys(pod.group for pod in mine.values())
        ended = [name for name in names if self.algorithm.cancel(name)]
        for task in [task for task, pod in mine.items() if pod.group in ended]:
            self._pods.drop(job, task)
        return bool(ended)


def _by_label(event: GangPlaced, tasks: Iterable[TaskPlacement]) -> dict[str, list[TaskPlacement]]:
    """Group the tasks of a gang by affinity group."""
    roles = {role.role: role for role in event.request.roles}
    found: dict[str, list[TaskPlacement]] = defaultdict(list)
    for task in tasks:
        role = roles.get(task.role)
        found[label_of(role, task.index) if role is not None else ""].append(task)
    return found


def _where(places: Iterable[PodPlacement]) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((place.node, place.devices) for place in places)


def _same(expected: HivedEvent, event: HivedEvent) -> bool:
    """Return whether the expected event happened; ranks and resources besides devices do not matter here."""
    if not isinstance(expected, GangPlaced) or not isinstance(event, GangPlaced):
        return expected == event
    here, there = (
        (each.job, each.request.queue, each.request.priority, each.placed_at, each.placement.demoted, _tasks(each))
        for each in (expected, event)
    )
    return here == there


def _tasks(event: GangPlaced) -> list[tuple[TaskKey, str, tuple[int, ...], tuple[str, ...]]]:
    return [(task.key, task.node, task.devices, task.cells) for task in event.placement.tasks]
