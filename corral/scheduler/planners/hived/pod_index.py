"""The HiveD pods of each job, indexed by task and by affinity group; a job may have thousands of groups."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from corral.kernel.ids import JobId, TaskKey
from corral.scheduler.planners.hived.algorithm import PodRequest
from corral.scheduler.planners.hived.pod_mapping import in_name, label_in

_NONE: Final[Mapping[TaskKey, PodRequest]] = MappingProxyType({})


class Pods:
    """The pods of all jobs that run or have cells reserved."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, dict[TaskKey, PodRequest]] = {}
        self._labels: dict[tuple[JobId, str], dict[TaskKey, PodRequest]] = {}

    def of(self, job: JobId) -> Mapping[TaskKey, PodRequest]:
        """Return all pods of a job."""
        return self._jobs.get(job, _NONE)

    def alike(self, job: JobId, label: str) -> Mapping[TaskKey, PodRequest]:
        """Return the pods of a job in groups of one label."""
        return self._labels.get((job, in_name(label)), _NONE)

    def put(self, job: JobId, task: TaskKey, pod: PodRequest) -> None:
        """Record the pod of a task."""
        self.drop(job, task)
        self._jobs.setdefault(job, {})[task] = pod
        self._labels.setdefault((job, label_in(pod.group)), {})[task] = pod

    def drop(self, job: JobId, task: TaskKey) -> PodRequest | None:
        """Remove and return the pod of a task; None if it has none."""
        mine = self._jobs.get(job, {})
        pod = mine.pop(task, None)
        if pod is None:
            return None
        if not mine:
            del self._jobs[job]
        key = (job, label_in(pod.group))
        del self._labels[key][task]
        if not self._labels[key]:
            del self._labels[key]
        return pod

    def copy(self) -> Pods:
        """Return an independent copy."""
        twin = Pods()
        twin._jobs = {job: dict(pods) for job, pods in self._jobs.items()}
        twin._labels = {key: dict(pods) for key, pods in self._labels.items()}
        return twin
