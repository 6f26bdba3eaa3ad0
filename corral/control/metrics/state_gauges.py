"""The state of jobs, queues, machines and devices as gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.control.core.machines import Machines
from corral.control.core.waiting_reason import waiting_reason
from corral.control.core.world import World
from corral.control.metrics.watchdog import node_counts, service_counts, task_counts
from corral.model.metrics.counts import gauges
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.model.phases import Phase, phase
from corral.model.queue_views import Amounts, QueueStanding
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.views import queue_standings

_UNKNOWN: Final = "unknown"
_MILLIS: Final = 1000
_STANDING: Final[Mapping[Metric, str]] = {
    Metric.QUEUE_GUARANTEED: "guaranteed",
    Metric.QUEUE_DESERVED: "deserved",
    Metric.QUEUE_FAIR: "fair",
    Metric.QUEUE_USED: "used",
    Metric.QUEUE_LIMIT: "limit",
    Metric.QUEUE_BORROWED: "borrowed",
    Metric.QUEUE_LENT: "lent",
    Metric.QUEUE_WANTED: "wanted",
}
"""The field of a queue's standing that each metric shows."""


def state_gauges(
    world: World,
    machines: Machines,
    away: Iterable[str],
    epoch: int,
    now: float,
    certificates: Mapping[tuple[str, str], float],
) -> Samples:
    """The gauges of a core's state; `away` are the engines that cannot be reached, `epoch` is that of the lease.

    `certificates` has the times when those of engines' clusters end, by engine and by whose they are.
    """
    closed = frozenset(away)
    values = [Value(Metric.LEASE_EPOCH, (), epoch)]
    values += _jobs(world)
    values += gauges(Metric.NODES, ((key, count) for key, count in _nodes(machines).items()))
    for name, index in world.cluster.engines.items():
        values += _devices(name, index)
    values += [Value(Metric.ENGINE_OPEN, (name,), float(name not in closed)) for name in world.cluster.engines]
    values += [Value(Metric.ENGINE_OPEN, (name,), 0.0) for name in sorted(closed - world.cluster.engines.keys())]
    values += [Value(Metric.ENGINE_CERTIFICATE_END, labels, ends) for labels, ends in certificates.items()]
    values += [*node_counts(machines), *service_counts(world.cluster.engines, closed), *task_counts(world.jobs)]
    standings = queue_standings(world.cluster, world.queue, now, world.planner.owners_of)
    for metric, field in _STANDING.items():
        values += gauges(metric, _amounts(standings, field))
    return Samples(tuple(values))


def _jobs(world: World) -> list[Value]:
    phases, reasons = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for job in world.jobs.values():
        queue, now_in = job.terms.queue, phase(job.run)
        phases[queue, str(now_in)] += 1
        if now_in is Phase.WAITING:
            why = waiting_reason(job, now_in, world.jobs)
            reasons[queue, _UNKNOWN if why is None else why.code] += 1
    return gauges(Metric.JOBS, phases.items()) + gauges(Metric.WAITING, reasons.items())


def _nodes(machines: Machines) -> Counter[tuple[str, ...]]:
    found = Counter[tuple[str, ...]]()
    for name, node in machines.nodes.items():
        state = "cordoned" if name in machines.cordons else "ready" if node.ready else "not-ready"
        found[name.partition("/")[0], state] += 1
    return found


def _devices(engine: str, index: EngineIndex) -> list[Value]:
    free = used = scattered = devices = 0
    for at, layout in enumerate(index.tree.layouts):
        free_here, held_here = index.free[at].bit_count(), index.held[at].bit_count()
        devices += layout.all.bit_count()
        free += free_here
        used += held_here
        if held_here:
            scattered += free_here
    counts = {"free": free, "used": used, "unavailable": devices - free - used}
    return [
        *(Value(Metric.DEVICES, (engine, state), count) for state, count in counts.items()),
        Value(Metric.SCATTERED, (engine,), scattered),
    ]


def _amounts(standings: Iterable[QueueStanding], field: str) -> Iterator[tuple[tuple[str, ...], float]]:
    for standing in standings:
        amounts: Amounts = getattr(standing, field)
        for resource, amount in amounts.items():
            yield (standing.name, resource), amount / _MILLIS if resource == "cpu" else amount
