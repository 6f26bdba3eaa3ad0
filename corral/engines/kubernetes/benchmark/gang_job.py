"""The Job of one gang of a workload, as the cluster's own scheduler gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from corral.benchmarks.suite.jobs import LABEL
from corral.benchmarks.workloads.document import Arrival

GANG: Final = "corral.dev/benchmark-gang"
"""The label with the number of a gang."""


@dataclass(frozen=True)
class Asked:
    """What each pod asks for, and what its scheduler is told."""

    namespace: str
    resource: str
    """As Kubernetes names it, such as `cpu` or `nvidia.com/gpu`."""
    unit_millis: int
    """Thousandths of it in a unit."""
    image: str
    scheduler: str
    """The `schedulerName`; "": the cluster's default."""
    queues: tuple[str, ...]
    queue_label: str
    """The label that names a gang's queue, of its Job and its pods."""
    priority_classes: Mapping[int, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Of the pods; `{seconds}` in a value stands for how long the gang runs."""
    wait_seconds: float
    """How long nothing may happen before the rest is deleted."""


def job_of(arrival: Arrival, number: int, run: str, asked: Asked) -> dict[str, Any]:
    """Return the Job of one gang: all its pods at once, none of them again unless it was evicted."""
    kind = arrival.kind
    labels = {**asked.labels, LABEL: run, GANG: str(number)}
    if asked.queues:
        labels[asked.queue_label] = asked.queues[arrival.queue % len(asked.queues)]
    millis = kind.units * asked.unit_millis
    wanted = {asked.resource: f"{millis}m" if millis % 1000 else str(millis // 1000)}
    container = {
        "name": "main",
        "image": asked.image,
        "command": ["sleep", f"{kind.runs:g}"],
        "resources": {"requests": wanted} | ({} if asked.resource in {"cpu", "memory"} else {"limits": wanted}),
    }
    pod: dict[str, Any] = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    pod |= {"schedulerName": asked.scheduler} if asked.scheduler else {}
    if kind.priority in asked.priority_classes:
        pod["priorityClassName"] = asked.priority_classes[kind.priority]
    notes = {name: value.replace("{seconds}", f"{kind.runs:g}") for name, value in asked.annotations.items()}
    evicted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{run}-{number}", "labels": labels},
        "spec": {
            "parallelism": kind.tasks,
            "completions": kind.tasks,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [evicted]},
            "template": {"metadata": {"labels": labels, "annotations": notes}, "spec": pod},
        },
    }
