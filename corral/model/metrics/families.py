"""The table of all metrics: names, types, labels and meanings. The reference page is made from it.

Corral's own names follow Prometheus' conventions: base units, `_total` for counters, the unit as a suffix. Names that
others have given keep their form, so that rules and boards made for them can be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from corral.model.metrics.device_families import DEVICE_FAMILIES
from corral.model.metrics.family import QUEUE as QUEUE
from corral.model.metrics.family import Family as Family
from corral.model.metrics.family import Kind as Kind
from corral.model.metrics.node_families import NODE_FAMILIES
from corral.model.metrics.service_families import SERVICE_FAMILIES
from corral.model.metrics.task_families import TASK_FAMILIES

_WAITS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0)
_STEPS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metric(StrEnum):
    """The names of all metrics."""

    INFO = "corral_info"
    SCHEDULER_UP = "corral_scheduler_up"
    LEASE_EPOCH = "corral_lease_epoch"
    ENGINE_OPEN = "corral_engine_open"
    ENGINE_CERTIFICATE_END = "corral_engine_certificate_end_seconds"
    AGENTS = "corral_agents"
    PROCESS_CPU = "corral_process_cpu_seconds_total"
    PROCESS_MEMORY = "corral_process_resident_memory_bytes"
    STEPS = "corral_scheduler_step_seconds"
    COMMITS = "corral_store_commit_seconds"
    JOBS = "corral_jobs"
    WAITING = "corral_jobs_waiting"
    PLACED = "corral_placements_total"
    WAITS = "corral_job_wait_seconds"
    PREEMPTED = "corral_preemptions_total"
    SHRUNK = "corral_shrinks_total"
    ENDED = "corral_jobs_ended_total"
    NODES = "corral_nodes"
    DEVICES = "corral_devices"
    SCATTERED = "corral_devices_scattered"
    QUEUE_GUARANTEED = "corral_queue_guaranteed"
    QUEUE_DESERVED = "corral_queue_deserved"
    QUEUE_FAIR = "corral_queue_fair_share"
    QUEUE_USED = "corral_queue_used"
    QUEUE_LIMIT = "corral_queue_limit"
    QUEUE_BORROWED = "corral_queue_borrowed"
    QUEUE_LENT = "corral_queue_lent"
    QUEUE_WANTED = "corral_queue_wanted"


_RESOURCE: Final = (
    "by resource: `devices`, `devices/MODEL`, `cpu` (cores), `memory` (bytes). With the queues below the queue"
)
_PER_QUEUE: Final = (QUEUE, "resource")


def _queue(name: Metric, meaning: str) -> Family:
    return Family(name, Kind.GAUGE, f"{meaning}, {_RESOURCE}.", _PER_QUEUE, in_totals=False)


_TABLE: Final = (
    Family(Metric.INFO, Kind.GAUGE, "Always 1; the version of the server that answers.", ("version",)),
    Family(
        Metric.SCHEDULER_UP,
        Kind.GAUGE,
        "1 if the scheduler answers and leads, else 0; the other metrics of the scheduler are then missing.",
    ),
    Family(Metric.LEASE_EPOCH, Kind.GAUGE, "The number of times that a scheduler has begun to lead."),
    Family(Metric.ENGINE_OPEN, Kind.GAUGE, "1 if the engine can be reached, else 0.", ("engine",)),
    Family(
        Metric.ENGINE_CERTIFICATE_END,
        Kind.GAUGE,
        "When a certificate ends that the engine's cluster shows, in seconds since 1970: that of its `api`, or of the "
        "`registry` of its own.",
        ("engine", "of"),
    ),
    Family(
        Metric.AGENTS,
        Kind.GAUGE,
        "Agents of other machines that the server asks, by state: `answering` or `silent`.",
        ("state",),
    ),
    Family(
        Metric.PROCESS_CPU,
        Kind.COUNTER,
        "Processor time of a process of the server, with its ended children.",
        ("process",),
    ),
    Family(Metric.PROCESS_MEMORY, Kind.GAUGE, "Resident memory of a process of the server.", ("process",)),
    Family(
        Metric.STEPS,
        Kind.HISTOGRAM,
        "How long the scheduler takes to take its inputs and decide, once for each step.",
        buckets=_STEPS,
    ),
    Family(
        Metric.COMMITS,
        Kind.HISTOGRAM,
        "How long the store takes to commit what a step has decided.",
        buckets=_STEPS,
    ),
    Family(Metric.JOBS, Kind.GAUGE, "Jobs that are not over.", (QUEUE, "phase")),
    Family(
        Metric.WAITING,
        Kind.GAUGE,
        "Jobs that wait, by the code of the reason that `corral explain` gives; `unknown` before the first look.",
        (QUEUE, "reason"),
    ),
    Family(Metric.PLACED, Kind.COUNTER, "Placements of jobs, and of tasks that join a running job.", (QUEUE,)),
    Family(
        Metric.WAITS,
        Kind.HISTOGRAM,
        "How long jobs waited before they started, counted at each start.",
        (QUEUE,),
        _WAITS,
    ),
    Family(
        Metric.PREEMPTED,
        Kind.COUNTER,
        "Jobs that had to give all their devices back, by the rule that their receipts name.",
        (QUEUE, "rule"),
    ),
    Family(
        Metric.SHRUNK,
        Kind.COUNTER,
        "Elastic jobs that had to give some of their tasks back, by rule.",
        (QUEUE, "rule"),
    ),
    Family(Metric.ENDED, Kind.COUNTER, "Jobs that ended, by result.", (QUEUE, "result")),
    Family(
        Metric.NODES,
        Kind.GAUGE,
        "Machines by state: `ready`, `not-ready`, or `cordoned` (which takes no new tasks).",
        ("engine", "state"),
    ),
    Family(
        Metric.DEVICES,
        Kind.GAUGE,
        "Devices by state: `free`, `used` (wholly or in part), or `unavailable` (unhealthy, or its machine is).",
        ("engine", "state"),
    ),
    Family(
        Metric.SCATTERED,
        Kind.GAUGE,
        "Free devices of machines on which others are in use; large gangs cannot have such a machine whole.",
        ("engine",),
    ),
    _queue(Metric.QUEUE_GUARANTEED, "What is reserved for a queue and never lent"),
    _queue(Metric.QUEUE_DESERVED, "What a queue has of its own and lends while idle"),
    _queue(Metric.QUEUE_FAIR, "The fair share of a queue given the demand of all"),
    _queue(Metric.QUEUE_USED, "What the jobs of a queue hold"),
    _queue(Metric.QUEUE_LIMIT, "The most that a queue may hold; missing where there is no limit"),
    _queue(Metric.QUEUE_BORROWED, "What a queue holds beyond its own"),
    _queue(Metric.QUEUE_LENT, "What others hold of a queue's own devices"),
    _queue(Metric.QUEUE_WANTED, "What the waiting jobs of a queue need to begin"),
)
FAMILIES: Final[Mapping[str, Family]] = {
    each.name: each for each in (*_TABLE, *SERVICE_FAMILIES, *TASK_FAMILIES, *DEVICE_FAMILIES, *NODE_FAMILIES)
}
"""All metrics by name, in the order of the page."""
