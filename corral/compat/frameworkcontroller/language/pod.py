"""Translate the pod template of a role: fields that a job file has become the role's, the rest its podTemplate.

Fields for other schedulers and controllers that Corral cannot honour are refused, each with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from corral.compat.frameworkcontroller.language.barrier import Barrier, barrier_of, is_barrier
from corral.compat.frameworkcontroller.language.container import TASK, side_container, task_container
from corral.compat.frameworkcontroller.language.container_resources import asked, resources, together
from corral.compat.frameworkcontroller.language.node_selection import node_rules
from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.pod_annotations import is_of_a_scheduler, request_of
from corral.spec.priority import PRIORITY_CLASSES
from corral.spec.retry_rules import ALWAYS, UNBOUNDED

_REFUSED: Final = {
    "topologySpreadConstraints": "say how far apart the tasks are in a job file (topology.spread)",
    "schedulingGates": "Corral is the scheduler; a job that waits for another says dependsOn in a job file",
    "hostname": "Corral names the task",
    "subdomain": "Corral names the task",
    "ephemeralContainers": "they are no part of a template",
    "resourceClaims": "Corral claims devices itself; ask for them by count, such as nvidia.com/gpu: 1",
    "resources": "ask for resources in the containers",
    "preemptionPolicy": "who yields to whom is a matter of priorities and queues",
}
RESTARTS: Final = {"Always": ALWAYS, "OnFailure": UNBOUNDED, "Never": None}
"""A pod's restart policy to the equivalent maxRetries of a task; None keeps the task's own policy."""
_BARRIERS_ACCOUNT: Final = "frameworkbarrier"
_PRIORITY_END: Final = "-priority"


@dataclass
class Pod:
    """The contents of a role's pod template."""

    role: dict[str, Any]
    job: dict[str, Any] = field(default_factory=dict)
    """Fields of the job's spec, on which all roles must agree."""
    cells: dict[str, str] = field(default_factory=dict)
    """The tasks' cells, as requested by annotation: `pinnedCell`, `affinityGroup`."""
    barrier: Barrier | None = None
    rdma: bool = False
    restart: str = "Never"
    grace: int | None = None
    deadline: int | None = None


def read_pod(pod: Fields) -> Pod:
    """Translate a pod template."""
    metadata, spec = pod.inner("metadata"), pod.inner("spec", needed=True)
    metadata.ignore(("name", "namespace", "creationTimestamp"))
    labels, notes = metadata.texts("labels"), metadata.inner("annotations")
    ask = request_of(notes)
    annotations = {key: notes.text(key) for key in notes.data if not is_of_a_scheduler(key)}
    metadata.done()
    pod.done()
    containers = spec.items("containers")
    if not containers:
        spec.problem(("containers",), "missing; the first container is the task")
        return Pod({})
    initial = spec.items("initContainers")
    barriers = [each for each in initial if is_barrier(each)]
    before = [each for each in initial if not is_barrier(each)]
    amounts = together(map(asked, containers), map(asked, before))
    said, rdma = resources(amounts, containers[0])
    if ask is not None:
        said["devices"] = {key: value for key, value in ask.devices.items() if value}
    role, task = task_container(containers[0])
    role |= {"resources": said}
    found = Pod(role, rdma=rdma) if ask is None else Pod(role, ask.job, ask.cells, rdma=rdma)
    if barriers:
        found.barrier = barrier_of(barriers[0], containers[0])
    _settle(spec, found)
    template: dict[str, Any] = {
        "containers": [*([{"name": TASK} | task] if task else []), *map(side_container, containers[1:])],
        "initContainers": [side_container(each) for each in before],
    }
    template |= spec.rest()
    if barriers and template.get("serviceAccountName") == _BARRIERS_ACCOUNT:
        del template["serviceAccountName"]
    if kept := _without_nothing({"labels": labels, "annotations": annotations}, template):
        role["kubernetes"] = {"podTemplate": kept}
    return found


def _settle(spec: Fields, pod: Pod) -> None:
    """Read the fields of a pod's spec that a job has, and refuse those that it cannot have."""
    for name, why in _REFUSED.items():
        spec.refuse(name, why)
    spec.ignore(("schedulerName", "shareProcessNamespace"))
    pod.role["nodeSelector"] = spec.texts("nodeSelector")
    pod.role["nodes"] = node_rules(spec)
    secrets = [each.text("name", None) for each in spec.items("imagePullSecrets")]
    if secrets:
        pod.role["imagePullSecrets"] = secrets
    pod.restart = spec.text("restartPolicy", "Always", choices=tuple(RESTARTS))
    if "terminationGracePeriodSeconds" in spec:
        pod.grace = spec.whole("terminationGracePeriodSeconds", most=86_400)
    if "activeDeadlineSeconds" in spec:
        pod.deadline = spec.whole("activeDeadlineSeconds", least=1)
    _priority(spec, pod)


def _priority(spec: Fields, pod: Pod) -> None:
    """Set the priority: the annotation of another scheduler first, then the number, then the class."""
    name, number = spec.text("priorityClassName"), spec.take("priority")
    if "priority" in pod.job:
        return
    if isinstance(number, int) and not isinstance(number, bool):
        pod.job["priority"] = str(number)
    elif name:
        known = name.removesuffix(_PRIORITY_END)
        if known not in PRIORITY_CLASSES:
            why = f"Corral's classes are {', '.join(PRIORITY_CLASSES)}"
            spec.problem(("priorityClassName",), f"{why}; say it in the annotation corral.dev/priority instead")
        pod.job["priority"] = known


def _without_nothing(metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    kept = {
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": {key: value for key, value in spec.items() if value not in (None, [], {})},
    }
    return {key: value for key, value in kept.items() if value}
