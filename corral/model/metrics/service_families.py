"""The metrics of the server's own parts, of its machines and of the tasks of jobs, under the names of Microsoft's PAI.

`service_*` are names of its job-exporter, `pai_*` of its watchdog, which counts each machine, service and task as 1 with
its state in labels. Rules and boards that were made for them work with Corral.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.model.metrics.family import Family, Kind

_EXPORTER: Final = "job-exporter"
_WATCHDOG: Final = "watchdog"


class ServiceMetric(StrEnum):
    """The names of all metrics of services, and of what the watchdog counts."""

    CPU = "service_cpu_percent"
    MEMORY = "service_mem_usage_byte"
    MEMORY_LIMIT = "service_mem_limit_byte"
    MEMORY_PERCENT = "service_mem_usage_percent"
    BLOCK_IN = "service_block_in_byte"
    BLOCK_OUT = "service_block_out_byte"
    NODES = "pai_node_count"
    SERVICES = "pai_pod_count"
    TASKS = "pai_job_pod_count"


def _service(name: ServiceMetric, meaning: str) -> Family:
    return Family(name, Kind.GAUGE, meaning, ("name",), named_by=_EXPORTER)


SERVICE_FAMILIES: Final = (
    _service(
        ServiceMetric.CPU,
        "Processor use of a process of the server (`front`, `control`, `node-agent`) in percent of one core.",
    ),
    _service(ServiceMetric.MEMORY, "Resident memory of a process of the server in bytes."),
    _service(ServiceMetric.MEMORY_LIMIT, "Memory of the machine in bytes, or of the container that the process is in."),
    _service(ServiceMetric.MEMORY_PERCENT, "Resident memory of a process of the server in percent of that limit."),
    _service(ServiceMetric.BLOCK_IN, "Bytes that a process of the server has read from disks since it began."),
    _service(ServiceMetric.BLOCK_OUT, "Bytes that a process of the server has written to disks since it began."),
    Family(
        ServiceMetric.NODES,
        Kind.GAUGE,
        "1 for each machine, by its conditions (`true`, `false`); 2,000 machines at most, those that are not ready first.",
        ("node_name", "ready", "unschedulable", "disk_pressure", "memory_pressure"),
        in_totals=False,
        named_by=_WATCHDOG,
        kept=False,
    ),
    Family(
        ServiceMetric.SERVICES,
        Kind.GAUGE,
        "1 for each part of the server: `front`, `control`, and an engine's connection (`engine-NAME`), by its state.",
        ("service_name", "name", "namespace", "phase", "ready", "initialized", "pod_scheduled", "node_name"),
        in_totals=False,
        named_by=_WATCHDOG,
        kept=False,
    ),
    Family(
        ServiceMetric.TASKS,
        Kind.GAUGE,
        "Tasks of jobs that are not over, by job, role (`name`) and state; `pod_bound` says whether they have a place.",
        ("job_name", "name", "phase", "pod_bound", "pod_scheduled", "initialized", "ready"),
        in_totals=False,
        named_by=_WATCHDOG,
        kept=False,
    ),
)
