"""Time the scheduler alone, in processor time, with thousands of jobs waiting.

The loads are those of other schedulers' benchmarks (KAI: 4,000 × 1 and 1,000 gangs × 4 on 500 nodes; Volcano: required
racks on 1,000 nodes; HiveD: random gangs on 65,536 devices), from committed events to a plan, reasons included.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from time import process_time

from msgspec import structs

from bench.described import gang, machines
from bench.explaining import explained
from bench.virtual_clusters import places
from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    Cluster,
    GangQueued,
    NodesSeen,
    Queue,
    TasksReleased,
    execute_plan,
    find_policy,
)

POLICY = find_policy()
"""The default policy of `corral up`."""


def measure() -> dict[str, float]:
    """Milliseconds of processor time; `place-*` are one gang from submission to placement applied."""
    gc.collect()
    gc.freeze()
    try:
        return {
            "fill-4000": _cycle(500, 32, [gang(at) for at in range(4000)]),
            "gangs-1000": _cycle(500, 32, [gang(at, tasks=4) for at in range(1000)]),
            "gangs-1000-running": _half_running(),
            "gangs-preempting": _preempting(),
            "topo-1000": _cycle(1000, 100, [gang(at, tasks=4, devices=8, required="rack") for at in range(188)]),
            "topo-block": _cycle(1000, 100, [gang(0, tasks=512, required="block")]),
            "hopeless": _hopeless(),
            "explain-20000": explained(),
            "steady": _steady(),
            **places(),
        }
    finally:
        gc.unfreeze()


def made(nodes: int, racks: int) -> Cluster:
    """An empty cluster."""
    cluster = Cluster()
    cluster.apply(NodesSeen(machines(nodes, racks)))
    return cluster


def waiting(requests: Iterable[GangRequest]) -> Queue:
    """A queue of these requests."""
    queue = Queue()
    for request in requests:
        queue.apply(GangQueued(request))
    return queue


def _timed(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return (process_time() - begun) * 1000


def _cycle(nodes: int, racks: int, requests: list[GangRequest]) -> float:
    """One cycle from indexes to plan, on machines that are all free at first."""
    cluster, queue = made(nodes, racks), waiting(requests)
    found: list[int] = []
    took = _timed(lambda: found.append(len(BuiltinPlanner(cluster, queue, POLICY).plan(0.0).placements)))
    if found != [len(requests)]:
        raise RuntimeError(f"{found[0]} of {len(requests)} gangs were placed")
    return took


def _start(cluster: Cluster, queue: Queue, requests: dict[JobId, GangRequest]) -> list[GangRequest]:
    """One cycle, committed; the requests that started."""
    planner = BuiltinPlanner(cluster, queue, POLICY)
    found = planner.plan(0.0)
    execute_plan(planner, found, 0.0)
    return [requests[placed.job] for placed in found.placements]


def _running(gangs: int) -> Cluster:
    """500 nodes on which `gangs` gangs of four run."""
    cluster = made(500, 32)
    first = {request.job: request for request in (gang(at, tasks=4) for at in range(gangs))}
    _start(cluster, waiting(first.values()), first)
    return cluster


def _half_running() -> float:
    """A full cycle with 500 gangs of four running and 500 more waiting."""
    cluster, queue = _running(500), waiting(gang(1000 + at, tasks=4) for at in range(500))
    return _timed(lambda: BuiltinPlanner(cluster, queue, POLICY).plan(0.0))


def _preempting() -> float:
    """1,000 gangs of four fill all devices; 250 of higher priority arrive, and each preempts one of them."""
    cluster = _running(1000)
    queue = waiting(structs.replace(gang(2000 + at, tasks=4), priority=100) for at in range(250))
    told: list[int] = []
    took = _timed(lambda: told.append(len(BuiltinPlanner(cluster, queue, POLICY).plan(10.0).evictions)))
    if told != [250]:
        raise RuntimeError(f"{told[0]} gangs were told to yield, not 250")
    return took


def _hopeless() -> float:
    """500 full nodes, 4,000 jobs waiting, and one gang of 64 nodes: a cycle that starts none and gives all a reason."""
    cluster = made(500, 32)
    full = {request.job: request for request in (gang(at, devices=8) for at in range(500))}
    _start(cluster, waiting(full.values()), full)
    queue = waiting([gang(1000, tasks=64, devices=8), *(gang(2000 + at) for at in range(4000))])
    return _timed(lambda: BuiltinPlanner(cluster, queue, POLICY).plan(0.0))


def _steady() -> float:
    """Percent of one processor: 20,000 jobs of 40 shapes wait on 2,000 full nodes, 100 tasks end each second."""
    cluster = made(2000, 125)
    full = {request.job: request for request in (gang(at) for at in range(16_000))}
    running = _start(cluster, waiting(full.values()), full)
    kinds = [(1 + at % 8, 1000 + 100 * (at // 8)) for at in range(40)]
    wanted = {
        request.job: request
        for request in (gang(100_000 + at, devices=kinds[at % 40][0], cpu=kinds[at % 40][1]) for at in range(20_000))
    }
    queue = waiting(wanted.values())
    BuiltinPlanner(cluster, queue, POLICY).plan(0.0)

    def second() -> None:
        for request in running[:100]:
            cluster.apply(TasksReleased(request.job, request.tasks))
            _start(cluster, queue, wanted)

    return _timed(second) / 10
