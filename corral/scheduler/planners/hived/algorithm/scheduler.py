"""HiveD's scheduling algorithm as one deterministic object: events in, decisions out.

Source: HiveD (Zhao et al., OSDI'20) and microsoft/hivedscheduler's pkg/algorithm, including its tie-breaks. Deliberate
differences: lists keep the order of the configuration instead of history, victims are not drawn at random, doomed cells
are settled once after each event and never at the cost of a guarantee, and a preempting group ignores suggested nodes
when its request says so (HiveD forgets that).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from corral.kernel.errors import Conflict, InvalidInput
from corral.scheduler.planners.hived.algorithm import consistency
from corral.scheduler.planners.hived.algorithm.cells import PhysicalCell
from corral.scheduler.planners.hived.algorithm.forest import build
from corral.scheduler.planners.hived.algorithm.free_list import Order
from corral.scheduler.planners.hived.algorithm.groups import (
    Bind,
    Decision,
    Group,
    GroupState,
    Phase,
    PodRequest,
    Preempt,
    Slot,
    Wait,
    placements_of,
)
from corral.scheduler.planners.hived.algorithm.placement import Demoted, Found, find_placement, undo
from corral.scheduler.planners.hived.algorithm.reconfiguration import Changes, move_groups
from corral.scheduler.planners.hived.algorithm.recovery import restore
from corral.scheduler.planners.hived.algorithm.state import State
from corral.scheduler.planners.hived.algorithm.state_copy import copied
from corral.spec.hived.configuration import HivedCluster


class Peek(NamedTuple):
    """A decision that was not carried out."""

    decision: Decision
    demoted: tuple[str, ...] = ()
    """The groups that would lose their guarantee and keep running."""
    ending: tuple[str, ...] = ()
    """The groups that would be ended in cells guaranteed to them."""


class HivedAlgorithm:
    """The cells, virtual clusters and gangs of one cluster, for one caller at a time; every event is atomic.

    A pod is *allocated* only after `add_allocated`. `schedule` alone reserves nothing, except that in the preempting
    phase a group that needs victims reserves its cells at once.
    """

    def __init__(
        self,
        cluster: HivedCluster,
        *,
        chain_order: Iterable[str] | None = None,
        order: Order = Order.CONFIGURATION,
        bad_nodes: Iterable[str] = (),
    ) -> None:
        """Start with nothing running and all nodes healthy except `bad_nodes`.

        Chains are tried in document order, or in `chain_order`. `order` is the order of the free lists.

        Raises InvalidInput with the numbers when the cells of the virtual clusters do not fit into the cluster.
        """
        self.cluster = cluster
        self.chain_order = None if chain_order is None else list(chain_order)
        self.order = order
        self.state = State(build(cluster, self.chain_order), order)
        short = self.broken_guarantees()
        if short:
            raise InvalidInput("impossible-quotas", f"The virtual clusters own more than there is: {'; '.join(short)}.")
        for node in dict.fromkeys(bad_nodes):
            self.set_node_health(node, healthy=False)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return every node of the cluster in the order of its devices."""
        return tuple(self.state.forest.on_node)

    @property
    def groups(self) -> dict[str, Group]:
        """Return the groups that hold or have reserved devices, by name; read-only."""
        return self.state.groups

    def schedule(
        self,
        request: PodRequest,
        suggested: Set[str],
        phase: Phase = Phase.PREEMPTING,
        *,
        now: float = 0.0,
        keep: bool = False,
    ) -> Decision:
        """Decide about a pod: bind it, preempt victims first, or wait.

        A pod of a placed group gets its own place; otherwise a place is sought for the whole group. `suggested` are the
        nodes that the caller would accept. In the preempting phase `keep` reserves a new group's cells even if all of
        them are free. Raises InvalidInput when the request is invalid or names something that does not exist.
        """
        self.state.now = now
        group = self.state.groups.get(request.group)
        if group is not None and group.state is GroupState.PREEMPTING:
            if phase is Phase.PREEMPTING and _unusable(group, suggested):
                self.state.cancel(group)
                group = None
            else:
                slot = _slot_of(group.slots, request)
                group.preempting[request.pod] = request
                return self._preempt_or_bind(group.slots, group.chain, slot)
        if group is not None:
            decision = self._next_pod(group, request)
        else:
            decision = self._new_group(request, suggested, phase, keep)
        self.state.settle()
        return decision

    def peek(self, request: PodRequest, suggested: Set[str]) -> Peek:
        """Decide about a group that holds nothing, and list the groups it would cost, without changing anything.

        Raises InvalidInput as `schedule` does.
        """
        demoted: list[Demoted] = []
        found, reason = find_placement(self.state, request, suggested, demoted)
        if found is None:
            return Peek(Wait(reason))
        decision = self._preempt_or_bind(found.slots, found.chain, _slot_of(found.slots, request))
        users = dict.fromkeys(cell.user for slot in found.slots for cell, _ in slot.held() if cell.user is not None)
        ending = tuple(user.name for user in users if user.guaranteed)
        undo(self.state, demoted)
        return Peek(decision, tuple(group.name for group, _ in demoted), ending)

    def demote(self, name: str, by: str, *, now: float = 0.0) -> None:
        """Preempt a group lazily: it keeps running without its guarantee. A group without one is left alone."""
        group = self.state.groups.get(name)
        if group is not None and group.guaranteed and group.state is not GroupState.PREEMPTING:
            self.state.now = now
            self.state.demote(group, by)

    def cancel(self, name: str) -> bool:
        """Cancel the preemption by a group; return whether it had one."""
        group = self.state.groups.get(name)
        if group is None or group.state is not GroupState.PREEMPTING:
            return False
        self.state.cancel(group)
        self.state.settle()
        return True

    def copy(self) -> HivedAlgorithm:
        """Return an independent copy that makes the same decisions: O(cells)."""
        return copied(self)

    def _next_pod(self, group: Group, request: PodRequest) -> Decision:
        slot = next((slot for slot in group.slots if slot.size == request.leaves and slot.pod is None), None)
        if slot is None:
            count = sum(slot.size == request.leaves for slot in group.slots)
            message = f'Group "{group.name}" has {count} pods of {request.leaves} devices, and all of them run.'
            raise InvalidInput("too-many-pods", message)
        return Bind(slot.node, slot.devices, slot.chain(group.chain), group.placements())

    def _new_group(self, request: PodRequest, suggested: Set[str], phase: Phase, keep: bool) -> Decision:
        try:
            found, reason = find_placement(self.state, request, suggested)
        except InvalidInput:
            self.state.settle()
            raise
        if found is None:
            return Wait(reason)
        victims = any(cell.user is not None for slot in found.slots for cell, _ in slot.held())
        if phase is Phase.PREEMPTING:
            rivals = [cell.reserver for slot in found.slots for cell, _ in slot.held()]
            for rival in dict.fromkeys(rivals):
                if rival is not None:
                    self.state.cancel(rival)
            if victims or keep:
                self.state.reserve(_preempting(request, found))
        return self._preempt_or_bind(found.slots, found.chain, _slot_of(found.slots, request))

    def _preempt_or_bind(self, slots: list[Slot], chain: str, slot: Slot) -> Decision:
        """Preempt the groups that still use the placement's devices, one node's pods per answer, or bind the pod."""
        users = dict.fromkeys(cell.user for each in slots for cell, _ in each.held() if cell.user is not None)
        running = [(each.node, each.pod.pod) for user in users for each in user.slots if each.pod is not None]
        if users and not running:
            return Wait(f"groups without running pods hold its devices: {', '.join(user.name for user in users)}")
        if running:
            node = running[0][0]
            return Preempt(node, tuple(pod for at, pod in running if at == node))
        return Bind(slot.node, slot.devices, slot.chain(chain), placements_of(slots))

    def delete_unallocated(self, request: PodRequest) -> None:
        """Remove a waiting pod; the preemption ends with the last pod waiting for it."""
        group = self.state.groups.get(request.group)
        if group is None or group.state is not GroupState.PREEMPTING:
            return
        group.preempting.pop(request.pod, None)
        if not group.preempting:
            self.state.cancel(group)
            self.state.settle()

    def add_allocated(self, request: PodRequest, bound: Bind, *, now: float = 0.0) -> None:
        """Account for a pod that was bound now or before a restart; the first pod of a group allocates the whole group.

        Raises Conflict, and changes nothing, when a device is in use by another group or the pod is not at its group's
        place.
        """
        self.state.now = now
        place = _place_of(bound, request)
        group = self.state.groups.get(request.group)
        if group is None:
            group = restore(self.state, request, bound)
        slot = group.slots[place] if len(bound.group) == len(group.slots) else None
        if slot is None or slot.node != bound.node or bound.devices[0] not in slot.devices:
            message = f'Pod "{request.pod}" is said to run on {bound.node}, which is not its group\'s place for it.'
            raise Conflict("other-place", message)
        if slot.pod is not None and slot.pod.pod != request.pod:
            message = f'Pod "{slot.pod.pod}" runs where pod "{request.pod}" of the same group is said to run.'
            raise Conflict("device-in-use", message)
        if group.state is GroupState.PREEMPTING:
            self._finish_preemption(group)
        slot.pod = request
        self.state.settle()

    def _finish_preemption(self, group: Group) -> None:
        users = [cell.user.name for cell, _ in group.held() if cell.user is not None]
        if users:
            raise Conflict("device-in-use", f'Group "{group.name}" cannot start: "{users[0]}" uses its devices.')
        for cell, _ in group.held():
            cell.reserver, cell.user = None, group
        group.state = GroupState.ALLOCATED
        group.preempting.clear()

    def delete_allocated(self, request: PodRequest) -> None:
        """Remove a bound pod that ended; with its last pod the group is gone and its devices are free."""
        group = self.state.groups.get(request.group)
        if group is None:
            return
        for slot in group.slots:
            if slot.pod is not None and slot.pod.pod == request.pod:
                slot.pod = None
        if group.state is not GroupState.PREEMPTING and not group.pods:
            self.state.release(group)
            self.state.settle()

    def set_node_health(self, node: str, *, healthy: bool) -> None:
        """Record that a node became bad or healthy; a node outside the configuration has no effect."""
        if healthy == (node not in self.state.bad_nodes):
            return
        (self.state.bad_nodes.discard if healthy else self.state.bad_nodes.add)(node)
        self._set_health(self.state.forest.on_node.get(node, ()))

    def set_device_health(self, node: str, device: int, *, healthy: bool) -> None:
        """Record that a device became bad or healthy; every cell that contains a bad device is bad."""
        if healthy == ((node, device) not in self.state.bad_devices):
            return
        (self.state.bad_devices.discard if healthy else self.state.bad_devices.add)((node, device))
        leaf = self.state.forest.devices.get((node, device))
        self._set_health((leaf,) if leaf is not None else ())

    def _set_health(self, leaves: Iterable[PhysicalCell]) -> None:
        for leaf in leaves:
            ledger = self.state.ledger_of(leaf)
            (ledger.set_healthy if self.state.is_healthy(leaf) else ledger.set_bad)(leaf)
        self.state.settle()

    def reconfigured(
        self, cluster: HivedCluster, *, chain_order: Iterable[str] | None = None, now: float = 0.0
    ) -> tuple[HivedAlgorithm, Changes]:
        """Return an algorithm on another configuration with all running groups, and how it changed them.

        This one is not changed. Raises InvalidInput as the constructor does.
        """
        fresh = HivedAlgorithm(
            cluster, chain_order=chain_order, order=self.order, bad_nodes=sorted(self.state.bad_nodes)
        )
        for node, device in sorted(self.state.bad_devices):
            fresh.set_device_health(node, device, healthy=False)
        fresh.state.now = now
        return fresh, move_groups(self.state, fresh.state)

    def broken_guarantees(self) -> list[str]:
        """Describe where fewer cells are left than the virtual clusters own and do not use; always empty."""
        return consistency.broken_guarantees(self.state)

    def differences(self) -> list[str]:
        """Describe every difference between the kept state and a recount; always empty."""
        return consistency.differences(self.state)

    def consistent(self) -> bool:
        """Return whether free lists, counts and bindings equal a recount, for tests and audits."""
        return not self.differences()

    def digest(self) -> str:
        """Return a hash of everything that later decisions depend on; equal events give equal hashes."""
        return consistency.digest(self.state)


def _preempting(request: PodRequest, found: Found) -> Group:
    return Group(
        request.group, request.vc, request.priority, request.lazy_preemption, request.ignore_suggested,
        request.pinned_cell, found.chain, GroupState.PREEMPTING, found.slots, True, {request.pod: request},
    )  # fmt: skip


def _slot_of(slots: list[Slot], request: PodRequest) -> Slot:
    """Return the first slot of the pod's size."""
    for slot in slots:
        if slot.size == request.leaves:
            return slot
    message = f'Group "{request.group}" has no pod of {request.leaves} devices, as pod "{request.pod}" asks.'
    raise InvalidInput("bad-group", message)


def _place_of(bound: Bind, request: PodRequest) -> int:
    """Return the index of the pod's own placement in its group."""
    for index, place in enumerate(bound.group):
        mine = len(place.devices) == request.leaves and place.node == bound.node
        if mine and bound.devices and bound.devices[0] in place.devices:
            return index
    message = f'Pod "{request.pod}" on {bound.node} is not among the placements that it was bound with.'
    raise InvalidInput("bad-binding", message)


def _unusable(group: Group, suggested: Set[str]) -> bool:
    return any(
        not cell.healthy or not (group.ignore_suggested or cell.nodes[0] in suggested) for cell, _ in group.held()
    )
