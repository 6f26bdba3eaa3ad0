"""Time what control's loop computes for one explain answer: why a job waits, and its smallest changes."""

from __future__ import annotations

from statistics import median
from time import process_time

from msgspec import structs

from bench.described import gang, machines
from corral.kernel.ids import JobId
from corral.scheduler import BuiltinPlanner, GangQueued, NodesSeen, Planner, execute_plan

_ASKED = (1000, 7777, 19_999)
_BOUND = 3600


def explained() -> float:
    """Milliseconds of an answer, the median of three: 20,000 jobs of 240 kinds wait on 2,000 full nodes.

    A full garbage collection during one of them costs 140 ms more.
    """
    planner = BuiltinPlanner()
    planner.fold(NodesSeen(machines(2000, 125)))
    running = [structs.replace(gang(at), max_duration_seconds=_BOUND + at if at % 2 else 0) for at in range(16_000)]
    for request in running:
        planner.fold(GangQueued(request))
    execute_plan(planner, planner.plan(0.0), 0.0)
    kinds = [(1 + at % 8, 1000 + 100 * (at // 8)) for at in range(40)]
    for at in range(20_000):
        devices, cpu = kinds[at % 40]
        planner.fold(GangQueued(gang(100_000 + at, tasks=1 + at % 3, devices=devices, cpu=cpu)))
    planner.plan(1.0)
    return median(_one(planner, gang(100_000 + at).job) for at in _ASKED)


def _one(planner: Planner, job: JobId) -> float:
    begun = process_time()
    reasons = planner.explain(job, 2.0)
    if reasons is None:
        raise RuntimeError(f"{job} does not wait")
    planner.smallest_changes(job, reasons, 2.0)
    return (process_time() - begun) * 1000
