"""Time one cycle of the scheduler on the loads of Kueue's own benchmarks of topology-aware scheduling.

Source: Kueue's `SchedulerTAS` (1,000 nodes, 30 kinds of resource, a workload that preempts) and `TASFlavorAssignment`
(workers preferred in one rack of empty nodes). Kueue times the second without the rest of its cycle.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from time import process_time
from typing import Final

from bench.core import plain_loop
from bench.scheduler import POLICY, waiting
from bench.stats import median
from corral.kernel.ids import JobId
from corral.model.inventory import Inventory, Node
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import Plan
from corral.model.requests import GangRequest, RoleRequest, TopologyRequest
from corral.scheduler import BuiltinPlanner, Cluster, NodesSeen, gang_placed

_RUNS: Final = 5
_NODES: Final = 1000
_CPUS, _GIB, _PODS = 10, 100, 110
_KINDS: Final = tuple(f"example.com/kind{number}" for number in range(28))
_NODES_OF_BLOCK: Final = 31
_LEVELS: Final = ("block", "rack", "node", "device")
_VICTIMS: Final = 12


def measure() -> dict[str, float]:
    """Milliseconds of processor time of one cycle, the median of five; `loop` is a fixed loop of plain Python."""
    gc.collect()
    gc.freeze()
    try:
        cycles = {
            "SchedulerTAS": [_preempting() for _ in range(_RUNS)],
            "TASFlavorAssignment-100": [_assigned(100) for _ in range(_RUNS)],
            "TASFlavorAssignment-500": [_assigned(500) for _ in range(_RUNS)],
            "TASFlavorAssignment-2500": [_assigned(2500) for _ in range(_RUNS)],
            "TASFlavorAssignment-leader": [_assigned(2500, leader=True) for _ in range(_RUNS)],
        }
    finally:
        gc.unfreeze()
    return {name: median(taken) for name, taken in cycles.items()} | {"loop": plain_loop() * 1000}


def _cycle(cluster: Cluster, request: GangRequest) -> tuple[Plan, float]:
    """One cycle from indexes to plan with one gang waiting, and its milliseconds."""
    planner = BuiltinPlanner(cluster, waiting([request]), POLICY)
    begun = process_time()
    found = planner.plan(0.0)
    return found, (process_time() - begun) * 1000


def _preempting() -> float:
    """A gang of 200 pods for an eighth of the nodes, all of which are filled, preempts twelve."""
    cluster = Cluster()
    cluster.apply(NodesSeen(Inventory("bench", tuple(map(_node, range(_NODES))), _LEVELS)))
    _fill(cluster)
    request = _workload(0, pods=200, cpus=5, gib=50, priority=1_000_000, selector={"node-group": "group-1"})
    found, taken = _cycle(cluster, request)
    if len(found.evictions) != _VICTIMS:
        raise RuntimeError(f"{len(found.evictions)} gangs were told to yield, not {_VICTIMS}")
    return taken


def _node(at: int) -> Node:
    block = at // _NODES_OF_BLOCK
    return Node(
        f"bench/n{at}",
        (("block", f"b{block}"),),
        cpu_millis=_CPUS * 1000,
        memory_bytes=_GIB * 2**30,
        max_tasks=_PODS,
        resources=dict.fromkeys(_KINDS, _CPUS),
        labels={"node-group": f"group-{block % 8 + 1}"},
    )


def _workload(
    number: int, *, pods: int, cpus: int, gib: int, priority: int, selector: dict[str, str] | None = None
) -> GangRequest:
    role = RoleRequest(
        "worker",
        tuple(range(pods)),
        pods,
        cpus * 1000,
        gib * 2**30,
        node_selector=selector or {},
        resources=dict.fromkeys(_KINDS, cpus),
    )
    return GangRequest(JobId(f"job{number:08}"), 0, "ada", "default", priority, float(number), (role,))


def _fill(cluster: Cluster) -> None:
    """Start workloads of growing priority, each pod on the first node with room, until one does not fit."""
    free = [[_CPUS, _GIB, _PODS] for _ in range(_NODES)]
    number = 1
    while places := _first_fit(free, 10 * number % 31 + 1, number % 10 + 1, number % 100 + 1):
        cpus, gib = number % 10 + 1, number % 100 + 1
        request = _workload(number, pods=len(places), cpus=cpus, gib=gib, priority=number)
        tasks = tuple(TaskPlacement("worker", at, f"bench/n{node}") for at, node in enumerate(places))
        cluster.apply(gang_placed(request, Placement(tasks), 0.0))
        number += 1


def _first_fit(free: Sequence[list[int]], pods: int, cpus: int, gib: int) -> list[int]:
    """The node of each pod, taken from `free` ([CPUs, GiB, pods] by node); empty if they do not all fit."""
    places: list[int] = []
    for at, left in enumerate(free):
        room = min(left[0] // cpus, left[1] // gib, left[2], pods - len(places))
        places += [at] * room
        if len(places) == pods:
            break
    if len(places) < pods:
        return []
    for at in places:
        for index, amount in enumerate((cpus, gib, 1)):
            free[at][index] -= amount
    return places


def _assigned(nodes: int, *, leader: bool = False) -> float:
    """Nine workers for each of up to 256 empty nodes, preferred in one rack, and perhaps a leader beside them."""
    cluster = Cluster()
    machines = (
        Node(f"bench/n{at}", (("block", f"b{at // 256}"), ("rack", f"r{at // 16}")), cpu_millis=96_000, max_tasks=_PODS)
        for at in range(nodes)
    )
    cluster.apply(NodesSeen(Inventory("bench", tuple(machines), _LEVELS)))
    workers = min(nodes, 256) * 9
    roles = [RoleRequest("worker", tuple(range(workers)), workers, 8000)]
    if leader:
        roles.append(RoleRequest("leader", (0,), 1, 72_000))
    request = GangRequest(JobId("job"), 0, "ada", "default", 10, 0.0, tuple(roles), TopologyRequest(preferred="rack"))
    found, taken = _cycle(cluster, request)
    if [len(placed.placement.tasks) for placed in found.placements] != [workers + leader]:
        raise RuntimeError(f"{len(found.placements)} gangs were placed, not one of {workers + leader} tasks")
    return taken
