"""The metrics of tasks, which the collector of a node measures.

Names, labels and units of `task_*` are those of job-exporter, a part of Microsoft's PAI: percent is 0 to 100 for one
core, network is bytes a second, block I/O is the bytes since the task began.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.model.metrics.family import Family, Kind

TASK_LABELS: Final = ("username", "job_name", "role_name", "task_index", "job_instance_id", "virtual_cluster")
"""User, `USER~JOB`, role, index, job id and queue of a task."""
_BY_DEVICE: Final = (*TASK_LABELS, "minor_number")
_EXPORTER: Final = "job-exporter"


class TaskMetric(StrEnum):
    """The names of all metrics of tasks."""

    CPU = "task_cpu_percent"
    MEMORY = "task_mem_usage_byte"
    MEMORY_LIMIT = "task_mem_limit_byte"
    MEMORY_PERCENT = "task_mem_usage_percent"
    NETWORK_IN = "task_net_in_byte"
    NETWORK_OUT = "task_net_out_byte"
    BLOCK_IN = "task_block_in_byte"
    BLOCK_OUT = "task_block_out_byte"
    DEVICE = "task_gpu_percent"
    DEVICE_MEMORY = "task_gpu_mem_percent"
    POWER = "corral_task_power_watts"
    CPU_SECONDS = "corral_task_cpu_seconds_total"
    SHARED_MEMORY = "corral_task_shared_memory_bytes"
    PROCESSES = "corral_task_processes"
    THREADS = "corral_task_threads"
    TASKS = "corral_agent_tasks"
    COLLECTIONS = "corral_agent_collections_total"
    FAILURES = "corral_agent_failures_total"
    COST = "corral_agent_cpu_seconds_total"
    CHECK = "corral_agent_check_failed"


def _task(name: TaskMetric, meaning: str, labels: tuple[str, ...] = TASK_LABELS) -> Family:
    return Family(name, Kind.GAUGE, meaning, labels, in_totals=False, named_by=_EXPORTER)


def _own(name: TaskMetric, meaning: str, kind: Kind = Kind.GAUGE) -> Family:
    return Family(name, kind, meaning, TASK_LABELS, in_totals=False)


TASK_FAMILIES: Final = (
    _task(TaskMetric.CPU, "Processor use of a task in percent of one core: 200 is two cores."),
    _task(TaskMetric.MEMORY, "Memory of a task in bytes, without cached files that the kernel can drop."),
    _task(TaskMetric.MEMORY_LIMIT, "The most memory that a task may have, in bytes; without a limit the machine's."),
    _task(TaskMetric.MEMORY_PERCENT, "Memory of a task in percent of its limit."),
    _task(TaskMetric.NETWORK_IN, "Bytes a second that a task with a network of its own (a container) received."),
    _task(TaskMetric.NETWORK_OUT, "Bytes a second that a task with a network of its own (a container) sent."),
    _task(TaskMetric.BLOCK_IN, "Bytes that a task has read from disks since it began."),
    _task(TaskMetric.BLOCK_OUT, "Bytes that a task has written to disks since it began."),
    _task(TaskMetric.DEVICE, "Use of a device that a task holds, in percent (0 to 100).", _BY_DEVICE),
    _task(TaskMetric.DEVICE_MEMORY, "Memory in use of a device that a task holds, in percent.", _BY_DEVICE),
    _own(
        TaskMetric.POWER,
        "Power of the devices that a task holds, in watts; tasks that share a device have equal parts.",
    ),
    _own(TaskMetric.CPU_SECONDS, "Processor time of a task since it began, or since the collector did.", Kind.COUNTER),
    _own(
        TaskMetric.SHARED_MEMORY, "Shared memory of a task, `/dev/shm` and tmpfs files included, where it is counted."
    ),
    _own(TaskMetric.PROCESSES, "Processes of a task."),
    _own(TaskMetric.THREADS, "Threads of all processes of a task."),
    Family(
        TaskMetric.TASKS,
        Kind.GAUGE,
        "Tasks that the collector found, by state: `measured`, or `left-out` beyond its bound of 2,000.",
        ("state",),
    ),
    Family(TaskMetric.COLLECTIONS, Kind.COUNTER, "Rounds of a collector.", ("collector",)),
    Family(TaskMetric.FAILURES, Kind.COUNTER, "Rounds that failed; their series are missing.", ("collector",)),
    Family(TaskMetric.COST, Kind.COUNTER, "Processor time that a collector itself took.", ("collector",)),
    Family(
        TaskMetric.CHECK,
        Kind.GAUGE,
        "1 if a check script found a problem of the node, 0 if all is well; missing while it cannot tell.",
        ("check",),
    ),
)
